"""A lake whose folder was renamed: every command that reads it says so, before Java starts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from engine.compile import compile_project
from engine.lake.catalog.catalog_settings import prepare
from engine.project import load_project
from tests.lab import Lab, writable_catalog

PROJECT = """
name: lab
targets: {dev: {catalog: {type: sqlite, name: lake, path: .engine/lake}, schema: s}}
"""


@pytest.fixture
def old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    """A project with a table in its lake."""
    lab = Lab(tmp_path / "old", None, capsys)
    lab.write("project.yml", PROJECT)
    lab.model("base", "/*---\nmaterialized: table\n---*/\nselect 1 as id")
    lab.model("m", "/*---\nmaterialized: table\n---*/\nselect id from {{ ref('base') }}")
    catalog = compile_project(load_project(lab.root)).target.catalog
    prepare(catalog)
    opened = writable_catalog(catalog.path)
    opened.create_namespace("s")
    opened.create_table("s.base", pa.schema([("id", pa.int32())])).append(pa.table({"id": pa.array([1], pa.int32())}))
    opened.close()
    return lab


@pytest.mark.parametrize("command", [["build"], ["show", "m"], ["show", "--table", "base"], ["maintain"]], ids=" ".join)
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


def test_debug_and_the_site_say_it_too(old: Lab, caplog: pytest.LogCaptureFixture) -> None:
    before = old.root
    old.root = before.rename(before.with_name("new"))
    assert "the warehouse was moved from" in old.run("debug").text
    assert old.run("docs", "generate").code == 0
    assert "the warehouse was moved from" in caplog.text
    assert old.run("ls").code == 0
