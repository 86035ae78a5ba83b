"""A value that failed validation is used nowhere, and least of all in a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.project import load_project
from tests.security.hostile import PROJECT, SOURCES, run, tree, write

pytestmark = pytest.mark.slow

OUT = "../../../trusted"
NEIGHBOUR = "select 'what was reviewed' as text\n"
COMMANDS = (["parse"], ["compile"], ["docs", "generate"], ["ls"], ["lineage"])

HOSTILE: dict[str, dict[str, str]] = {
    "name": {"project.yml": PROJECT.replace("name: small", f"name: '{OUT}'")},
    "absolute name": {"project.yml": PROJECT.replace("name: small", "name: '%(outside)s/trusted'")},
    "name with a NUL": {"project.yml": PROJECT.replace("name: small", 'name: "a\\0b"')},
    "schema": {"project.yml": PROJECT.replace("schema: small", f"schema: '{OUT}'")},
    "no schema, target a path": {
        "project.yml": f"name: small\ntarget: '{OUT}'\ntargets:\n  '{OUT}': {{catalog: {{type: sqlite}}}}\n  b: {{schema: b}}\n"
    },
    "target that is not there": {"project.yml": PROJECT + f"target: '{OUT}'\n"},
    "catalog": {"project.yml": PROJECT.replace("name: lake", f"name: '{OUT}'")},
    "schema of a model": {"models/b.sql": f"/*---\nschema: '{OUT}'\n---*/\nselect 1 as one"},
    "alias": {"models/b.sql": f"/*---\nalias: '{OUT}'\n---*/\nselect 1 as one"},
    "name of a test": {
        "models/b.sql": f"/*---\ncolumns: {{one: {{tests: [{{not_null: {{name: '{OUT}', store_failures: true}}}}]}}}}\n"
        "---*/\nselect 1 as one"
    },
    "unit test": {
        "tests/u.yml": f"unit_tests:\n  - {{name: '{OUT}', model: a, given: [], expect: {{rows: [{{id: 1}}]}}}}\n"
    },
    "source": {"sources/shop.yml": SOURCES + SOURCES.replace("sources:", "").replace("shop", f"'{OUT}'")},
    "table of a source": {"sources/more.yml": SOURCES.replace("shop", "other").replace("events", f"'{OUT}'")},
    "target of a source": {
        "sources/more.yml": SOURCES.replace("shop", "other").replace(
            'timestamp"}', f"timestamp\", targets: {{'{OUT}': {{path: x}}}}}}"
        )
    },
    "folder of the models": {"project.yml": PROJECT + "paths: {models: '../project/../trusted'}\n"},
}


@pytest.fixture
def neighbour(tmp_path: Path) -> Path:
    """Another project's compiled SQL, where the hostile names would put theirs."""
    folder = tmp_path / "trusted"
    for name in ("models/a.sql", "models/b.sql", "target/manifest.json", "model.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(NEIGHBOUR)
    return folder


@pytest.mark.parametrize("what", HOSTILE)
def test_a_name_that_is_a_path_writes_nothing_outside_target(tmp_path, neighbour, what, capsys):
    files = {name: text.replace("%(outside)s", str(tmp_path)) for name, text in HOSTILE[what].items()}
    root = write(tmp_path / "project", files)
    before = tree(neighbour)
    for command in COMMANDS:
        assert run(root, *command) in {0, 1}, capsys.readouterr().err
    assert tree(neighbour) == before
    assert {path.name for path in tmp_path.iterdir()} == {"project", "trusted"}
    known = {"project.yml", "sources", "models", "target", "tests"}
    assert {path.name for path in root.iterdir()} <= known


@pytest.mark.parametrize("what", HOSTILE)
def test_no_name_of_a_table_or_project_keeps_what_failed_its_check(tmp_path, what):
    files = {name: text.replace("%(outside)s", str(tmp_path)) for name, text in HOSTILE[what].items()}
    result = compile_project(load_project(write(tmp_path / "project", files)), env={})
    manifest, target = result.manifest, result.target
    names = [manifest.project, target.schema, target.catalog.name]
    for model in manifest.models:
        names += [model.relation.catalog, model.relation.schema, model.relation.name]
    assert not [name for name in names if "/" in name or "." in name or "\0" in name]
    if what != "target of a source":
        assert manifest.errors


def test_a_project_whose_name_is_none_is_compiled_under_another(tmp_path):
    root = write(tmp_path, HOSTILE["name"])
    assert run(root, "compile") == 1
    assert (root / "target/compiled/project/models/a.sql").is_file()
    assert OUT not in (root / "target/manifest.json").read_text()
