"""A lake whose tables are elsewhere: every command that reads it says so, before Java starts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from engine.compile import compile_project
from engine.lake.catalog.catalog_settings import prepare
from engine.project import load_project
from tests.lab import Lab, Result, writable_catalog
from tests.projects import LAB as PROJECT

READING = [["build"], ["plan"], ["show", "m"], ["show", "--table", "base"], ["maintain"], ["sql", "select * from base"]]


@pytest.fixture
def old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    """A project with a table in its lake."""
    return make(tmp_path / "old", capsys)


def make(root: Path, capsys: pytest.CaptureFixture[str], warehouse: str = "") -> Lab:
    lab = Lab(root, None, capsys)
    lab.write("project.yml", PROJECT)
    lab.model("base", "/*---\nmaterialized: table\n---*/\nselect 1 as id")
    lab.model("m", "/*---\nmaterialized: table\n---*/\nselect id from {{ ref('base') }}")
    catalog = compile_project(load_project(lab.root)).target.catalog
    prepare(catalog)
    opened = writable_catalog(catalog.path, warehouse)
    opened.create_namespace("s")
    opened.create_table("s.base", pa.schema([("id", pa.int32())])).append(pa.table({"id": pa.array([1], pa.int32())}))
    opened.close()
    return lab


@pytest.mark.slow
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_renamed_folder_is_named_with_the_way_back(old: Lab, command: list[str]) -> None:
    before = old.root
    old.root = before.rename(before.with_name("new"))
    result = old.run(*command)
    assert (result.code, result.codes()) == (1, ["lake-moved"]), result.text
    assert f"the warehouse was moved from {before}/.engine/lake to {old.root}/.engine/lake" in result.text
    (hint,) = [e["hint"] for e in result.events if e["event"] == "Diagnosed"]
    assert f"ln -s {old.root}/.engine/lake {before}/.engine/lake" in hint

    # The link that the hint names does it.
    (before / ".engine").mkdir(parents=True)
    (before / ".engine" / "lake").symlink_to(old.root / ".engine" / "lake")
    shown = old.run("show", "--table", "base")
    assert shown.code == 0, shown.text


@pytest.mark.slow
def test_debug_and_the_site_say_it_too(old: Lab, caplog: pytest.LogCaptureFixture) -> None:
    before = old.root
    old.root = before.rename(before.with_name("new"))
    assert "the warehouse was moved from" in old.run("debug").text
    assert old.run("docs", "generate").code == 0
    assert "the warehouse was moved from" in caplog.text
    assert old.run("ls").code == 0


def hint_of(result: Result) -> str:
    (found,) = [e["hint"] for e in result.events if e["event"] == "Diagnosed"]
    return str(found)


# As earlier versions wrote: they gave Hadoop, which decodes nothing, an encoded address.
@pytest.mark.parametrize("name", ["a b", "é", "a+b", "50%", "[x]", "a#b", "it's"])
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_tables_in_the_encoded_folder_are_found_and_brought_back_as_the_hint_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, command: list[str]
) -> None:
    root = tmp_path / name
    lab = make(root, capsys, (root / ".engine/lake/warehouse").as_uri())
    encoded = Path(f"{tmp_path}/{quote(name)}/.engine/lake/warehouse")
    assert any(encoded.rglob("*.parquet"))
    assert not any(root.rglob("*.parquet"))
    result = lab.run(*command)
    assert (result.code, result.codes()) == (1, ["lake-moved"]), result.text
    (message,) = [e["message"] for e in result.events if e["event"] == "Diagnosed"]
    assert f"the tables of the catalog lake are in {encoded}, outside of {root}/.engine/lake/warehouse" in message

    shell = hint_of(result).partition("paths: ")[2].partition("; or start")[0]
    subprocess.run(["sh", "-c", shell], check=True)
    assert any(root.rglob("*.parquet"))
    shown = lab.run("show", "--table", "base")
    assert shown.code == 0, shown.text


def test_a_warehouse_that_another_project_has_too_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = make(tmp_path / "a b", capsys, (tmp_path / "a b/.engine/lake/warehouse").as_uri())
    other = make(tmp_path / "a%20b", capsys)
    assert "Another project has its tables in that folder" in hint_of(lab.run("plan"))
    assert other.run("show", "--table", "base").code == 0


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_catalog_whose_name_ends_with_options_is_found_and_renamed_as_the_hint_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    # PyIceberg reads nothing below such a folder, so the tables are those of another one.
    lab = make(tmp_path / "axb", capsys)
    lab.root = lab.root.rename(tmp_path / "a?b")
    (tmp_path / "axb").symlink_to(lab.root)
    catalog = lab.root / ".engine/lake/catalog.db"
    catalog.rename(catalog.with_name("catalog.db?journal_mode=WAL"))
    result = lab.run(*command)
    assert (result.code, result.codes()) == (1, ["lake-moved"]), result.text
    subprocess.run(["sh", "-c", hint_of(result).partition("again: ")[2]], check=True)
    shown = lab.run("show", "--table", "base")
    assert shown.code == 0, shown.text
