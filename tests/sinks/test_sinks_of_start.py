"""Sinks under `engine start`: delivered after each commit, once tests have passed, tried again with a pause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.live import status_file
from engine.live.metrics import exposition
from tests.cli.processes import engine
from tests.cli.test_start import Starting
from tests.lab import Lab, event
from tests.services.postgres import Postgres
from tests.sinks.test_sinks_of_a_build import MERGED, Project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TESTED = "columns:\n  kind: {tests: [not_null]}\n"


@pytest.fixture
def project(lab: Lab, database: Postgres, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("ENGINE_SECRET_CRM", database.password)
    made = Project(lab, database)
    lab.model("merged", MERGED.format(more="", columns="id, at, kind"))
    lab.model("tested", MERGED.format(more=TESTED, columns="id, at, kind"))
    made.sinks({"name": "merged", "from": "merged"}, {"name": "tested", "from": "tested"})
    lab.land("one", [event(1, 1)])
    return made


@pytest.fixture
def started(project: Project) -> Iterator[Starting]:
    one = Starting(project.lab.root)
    yield one
    one.close()


def status(project: Project) -> dict[str, Any]:
    found = status_file.read(project.lab.root / "target")
    return {node["name"]: node for node in found["nodes"]} if found is not None else {}


def delivered(project: Project, table: str) -> list[Any]:
    exists = project.server.execute(f"SELECT to_regclass('{project.schema}.{table}') IS NOT NULL")[0][0]
    return [row[0] for row in project.rows(table, "id")] if exists else []


def test_commits_are_delivered_and_failures_are_shown_and_tried_again(project: Project, started: Starting) -> None:
    lab, server = project.lab, project.server
    started.until(lambda: delivered(project, "merged") == [1])
    # A table that does not fit is a failure of the sink alone, which ends by itself.
    server.execute(f"ALTER TABLE {project.schema}.merged RENAME COLUMN kind TO sort")
    lab.land("two", [event(2, 2)])
    started.until(lambda: status(project)["sink merged"]["failures"] > 1)
    started.until(lambda: status(project)["sink merged"]["lag"][0]["count"] == 1)
    failed = status(project)["sink merged"]
    assert failed["health"] == "failed"
    assert failed["lag_seconds"] > 0
    assert "has no column 'kind'" in failed["last_error"]
    assert status(project)["merged"]["health"] == "healthy"
    server.execute(f"ALTER TABLE {project.schema}.merged RENAME COLUMN sort TO kind")
    started.until(lambda: delivered(project, "merged") == [1, 2])
    started.until(lambda: not status(project)["sink merged"]["lag"][0]["count"])
    shown = status_file.read(lab.root / "target")
    assert shown is not None
    assert sum(shown["states"].values()) == 2  # models
    lines = exposition(shown)
    labels = f'target="{shown["target"]}",model="sink merged"'
    assert f'headrace_model_lag{{{labels},input="merged",unit="snapshots"}} 0' in lines
    assert f"headrace_model_rows_written_total{{{labels}}} 2" in lines
    assert "sink merged" in engine(lab.root, "status").stdout


@pytest.mark.nightly
def test_a_sink_waits_until_the_tests_of_its_model_have_passed(project: Project, started: Starting) -> None:
    lab = project.lab
    started.until(lambda: delivered(project, "tested") == [1])
    lab.land("two", [event(2, 2, None)])
    started.until(lambda: delivered(project, "merged") == [1, 2] and status(project)["tested"]["tests_failing"])
    started.until(lambda: status(project)["sink tested"]["lag"][0]["count"] == 1)
    assert delivered(project, "tested") == [1]
    lab.land("three", [event(2, 4, "paid")])
    started.until(lambda: delivered(project, "tested") == [1, 2])


def test_a_sink_can_be_paused_and_needs_no_session(project: Project) -> None:
    lab = project.lab
    lab.build("--exclude", "sink:merged", "sink:tested")
    one = Starting(lab.root, "-s", "sink:merged")
    try:
        one.until(lambda: delivered(project, "merged") == [1])
        paused = engine(lab.root, "pause", "sink:merged")
        assert paused.returncode == 0, paused.stderr
        one.until(lambda: status(project)["sink merged"]["state"] == "paused")
        assert not one.java()
    finally:
        one.close()
