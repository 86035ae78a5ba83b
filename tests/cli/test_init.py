"""`engine init`: each template is a project that compiles, tests and builds as it is."""

from __future__ import annotations

import json

import pytest

from engine.cli.commands.init_command import TEMPLATES, create_project
from engine.cli.main import cli, invoke
from engine.compile import compile_project
from engine.project import load_project
from tests.lab import share_session

SALES = {
    (hour, product, 2 if (hour, product) == ("09", "tea") else 1)
    for hour in ("09", "10", "11")
    for product in ("tea", "coffee")
}
EXPECTED = {
    "files": ("sales_hourly", SALES),
    "kafka": ("sales_hourly", SALES),
    "cdc": ("customers", {(1, "London"), (3, "Arlington")}),
    "debezium": ("customers", {(1, "London"), (3, "Arlington")}),
}


def test_the_command_offers_the_templates():
    option = next(option for option in cli.commands["init"].params if option.name == "template")
    assert list(option.type.choices) == list(TEMPLATES)


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_has_no_finding(template, tmp_path):
    files = create_project(tmp_path / "my-shop", template)
    assert {"project.yml", "README.md", ".gitignore", ".github/workflows/headrace.yml"} <= set(files)
    manifest = compile_project(load_project(tmp_path / "my-shop")).manifest
    assert manifest.diagnostics == ()
    assert manifest.project == "my_shop"
    assert manifest.unit_tests
    assert all(model.description for model in manifest.models)


def test_files_that_a_readme_names_exist(tmp_path):
    for template in TEMPLATES:
        root = tmp_path / template
        create_project(root, template)
        text = (root / "README.md").read_text(encoding="utf-8")
        for link in (part.partition(")")[0] for part in text.split("](")[1:]):
            assert (root / link).is_file(), link


@pytest.mark.parametrize(
    ("name", "hint"), [("9shop", "begin with a letter"), ("full", "not empty"), ("file", "not empty")]
)
def test_a_folder_that_cannot_be_used(name, hint, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    assert invoke(["init", name, "--project-dir", str(tmp_path)]) == 2
    assert hint in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]


@pytest.mark.nightly_except("cdc")
@pytest.mark.spark
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_builds(template, tmp_path, capsys, monkeypatch, lab_session):
    root = tmp_path / "shop"
    monkeypatch.chdir(tmp_path)
    with share_session(lab_session, own_lakes=True):
        for command in (["init", "shop", "--template", template], ["build", "--project-dir", "shop"]):
            code = invoke(command)
            printed = capsys.readouterr()
            assert code == 0, printed.out + printed.err
    results = json.loads((root / "target/run_results.json").read_text(encoding="utf-8"))["results"]
    assert {result["status"] for result in results} <= {"success", "pass"}
    assert any(result["unique_id"].startswith("unit_test.") for result in results)
    model, rows = EXPECTED[template]
    assert invoke(["show", model, "--table", "--output", "json", "--limit", "100", "--project-dir", str(root)]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    if template in {"cdc", "debezium"}:
        assert {(row["customer_id"], row["city"]) for row in shown} == rows
    else:
        assert {(row["hour_start"][11:13], row["product"], row["orders"]) for row in shown} == rows
