"""Targets beside each other: a schema per developer, targets that share one, and a schema that goes as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import Project
from tests.cli.test_commands import run, small, write
from tests.lab import writable_catalog
from tests.runtime.orphaned import ROWS, Orphaned, project

pytestmark = pytest.mark.slow

__all__ = ["small"]

TARGETS = """
name: small
target: dev
targets:
  dev: {schema: "small_{{ env_var('USER') }}"}
  ci: {schema: "ci_{{ env_var('RUN', '7') }}"}
  twin: {schema: ci_7}
  far: {schema: ci_7, catalog: {type: sqlite, name: lake, path: elsewhere}}
  prod: {schema: small, catalog: {type: rest, uri: "{{ env_var('NOT_SET_HERE') }}"}}
"""


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Orphaned:
    return project(tmp_path / "project", capsys)


def test_each_developer_has_a_schema(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(small, "project.yml", TARGETS)
    write(small, "models/marts/b.sql", "/*---\nschema: marts\n---*/\nselect count(*) as n from {{ ref('a') }}")
    seen = []
    for user in ("ann", "bob"):
        monkeypatch.setenv("USER", user)
        manifest = Project(small).compile().manifest
        assert not manifest.errors
        seen += [str(manifest.model("a").relation), str(manifest.model("b").relation)]
        assert "`lake`.`small_" + user + "`.`a`" in manifest.model("b").sql
    assert seen == ["lake.small_ann.a", "lake.small_ann_marts.b", "lake.small_bob.a", "lake.small_bob_marts.b"]


def test_debug_names_targets_that_write_to_the_same_tables(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small, "project.yml", TARGETS)
    run(small, "debug", "--target", "ci")
    lines = [line for line in capsys.readouterr().out.splitlines() if " targets " in line or "another 'schema'" in line]
    assert [line.strip() for line in lines] == [
        "OK    targets    target 'twin' has the catalog and schema of 'ci': both write to the same tables",
        "Give one of them another 'schema', such as ci_7_twin.",
    ]
    run(small, "debug", "--target", "far")
    assert "both write" not in capsys.readouterr().out


def test_everything_that_a_target_has_built_goes_at_once(lab: Orphaned) -> None:
    lab.built("current")
    lab.built("old")
    lab.write("models/kept.sql", "/*---\nmaterialized: table\nfull_refresh: false\n---*/\nselect 1 as id")
    lab.built("kept")
    lab.built("other", state={"environment": {"project": "lab", "target": "prod", "schema": "s"}})
    failing = writable_catalog(lab.lake_path)
    failing.create_namespace("s_test_failures")
    for name, properties in {"not_null_id": {"engine.test": "true"}, "foreign": {}}.items():
        failing.create_table(f"s_test_failures.{name}", ROWS.schema, properties=properties)
    refused = lab.run("drop", "--all", "--yes", "--target", "dev")
    assert (refused.code, "full-refresh-protected" in refused.text) == (1, True)
    assert lab.run("drop", "--all", "--yes").code == 2  # of which target?
    assert lab.run("drop", "--all", "current", "--yes", "--target", "dev").code == 2
    assert lab.run("drop", "--yes").code == 2
    done = lab.run("drop", "--all", "--yes", "--target", "dev", "--accept", "protected")
    assert done.code == 0, done.text
    left = {name[-1] for space in ("s", "s_test_failures") for name in failing.list_tables(space)}
    assert left == {"other", "foreign"}
    assert lab.run("drop", "--all", "--yes", "--target", "dev", "--accept", "protected").code == 0
