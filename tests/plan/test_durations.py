"""About how long a plan takes: what earlier runs leave, and nothing where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.api.plan_report.durations import expected_seconds, note_durations, seconds_text, total_seconds
from engine.compile import Manifest, compile_project
from engine.events import BatchCommitted, Event, ModelFinished, Status
from engine.plan import Action, ActionKind, Plan
from engine.project import load_project
from engine.user_cache import project_cache
from tests.plan.test_plan_command import edited, forward, run

pytestmark = pytest.mark.slow

__all__ = ["edited", "forward"]


@pytest.fixture
def shop(forward: Path) -> Manifest:
    return compile_project(load_project(forward)).manifest


def _ran(name: str, seconds: float, *, first: bool = False, kind: str = "streaming_table", **more: Any) -> list[Event]:
    node = f"model.{name}"
    finished = {"status": Status.SUCCESS, "index": 1, "total": 1, "relation": "r", **more}
    batch = BatchCommitted(node=node, batch_id=0 if first else 7, watermark=None, snapshot_id=1, seconds=1.0)
    return [batch, ModelFinished(node=node, kind=kind, seconds=seconds, **finished)]


def _expected(manifest: Manifest, folder: Path, target: str = "dev", **kinds: ActionKind) -> dict[str, float]:
    plan = Plan({f"model.{name}": Action(f"model.{name}", kind) for name, kind in kinds.items()})
    return expected_seconds(folder, manifest, target, plan)


def test_the_median_of_the_last_runs_by_how_the_stream_begins(shop: Manifest, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    for seconds in (900.0, 5.0, 3.0, 4.0, 100.0, 2.0):
        note_durations(folder, shop, "dev", _ran("plain", seconds))
    note_durations(folder, shop, "dev", [*_ran("plain", 30.0, first=True), *_ran("ids", 2.5, kind="table")])
    resume, create = ActionKind.RESUME, ActionKind.CREATE
    assert _expected(shop, folder, plain=resume, ids=ActionKind.REBUILD) == {"model.plain": 4.0, "model.ids": 2.5}
    assert _expected(shop, folder, plain=create, ids=create) == {"model.plain": 30.0, "model.ids": 2.5}
    assert _expected(shop, folder, plain=ActionKind.REFRESH) == {"model.plain": 30.0}
    # Where it begins again, and how much there is, is in each plan.
    assert _expected(shop, folder, plain=ActionKind.RESET, ids=ActionKind.EMPTY, hours=resume) == {}
    assert _expected(shop, folder, "prod", plain=resume) == {}
    assert expected_seconds(None, shop, "dev", Plan({"model.plain": Action("model.plain", resume)})) == {}


def test_runs_without_work_and_models_that_are_gone_are_not_kept(shop: Manifest, tmp_path: Path) -> None:
    note_durations(tmp_path, shop, "dev", _ran("plain", 3.0, status=Status.UNCHANGED))
    note_durations(tmp_path, shop, "dev", _ran("plain", 3.0, status=Status.ERROR))
    note_durations(None, shop, "dev", _ran("plain", 3.0))
    assert list(tmp_path.glob("*.json")) == []
    (tmp_path / "durations.json").write_text(json.dumps({"dev": {"model.gone": {}}, "prod": {"model.gone": {}}}))
    note_durations(tmp_path, shop, "dev", _ran("plain", 3.0))
    kept = json.loads((tmp_path / "durations.json").read_text())
    assert kept == {"dev": {"model.plain": {"continued": [3.0]}}, "prod": {"model.gone": {}}}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"dev": 3}',
        '{"dev": {"model.plain": [1]}}',
        '{"dev": {"model.plain": {"continued": ["long", NaN, -1]}}}',
    ],
    ids=["cut", "list", "number", "no-kinds", "no-numbers"],
)
def test_a_damaged_file_says_nothing(text: str, shop: Manifest, tmp_path: Path) -> None:
    (tmp_path / "durations.json").write_text(text)
    assert _expected(shop, tmp_path, plain=ActionKind.RESUME) == {}
    note_durations(tmp_path, shop, "dev", _ran("plain", 3.0))
    assert _expected(shop, tmp_path, plain=ActionKind.RESUME) == {"model.plain": 3.0}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({}, None),
        ({"model.plain": 3.0, "model.ids": 2.0, "model.one": 4.0}, 5.0),
        ({"model.plain": 3.0, "model.one": 4.0, "model.hours": 1.0}, 4.0),
    ],
    ids=["nothing", "one-after-the-other", "beside-each-other"],
)
def test_the_whole_is_the_longest_way(seconds: Mapping[str, float], expected: float | None, shop: Manifest) -> None:
    assert total_seconds(shop, seconds) == expected


def test_the_whole_is_at_least_the_work_of_each_thread(shop: Manifest) -> None:
    assert total_seconds(shop, {"model.plain": 3.0, "model.one": 4.0, "model.hours": 5.0}, threads=2) == 6.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (3.94, "3.9 s"), (12.4, "12 s"), (119, "119 s"), (180, "3 min"), (5400, "1.5 h")],
)
def test_a_duration_in_words(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_the_plan_says_it(forward: Path, shop: Manifest, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project_cache(forward / "target")
    assert folder is not None
    note_durations(folder, shop, "dev", _ran("plain", 12.34))
    _, out, _ = run(forward, capsys, "plan", "-s", "plain", "one")
    assert "\nresume     streaming_table lake.s.plain (about 12 s)\n" in out
    assert "create     table lake.s.one\n" in out
    assert out.endswith("1 create, 1 resume; about 12 s\n")
    _, out, _ = run(forward, capsys, "plan", "-s", "plain", "one", "--output", "tree")
    assert out.startswith("Plan for dev: 1 create, 1 resume; about 12 s\n")
    assert "resume    plain  streaming_table lake.s.plain, about 12 s\n" in out
    _, out, _ = run(forward, capsys, "plan", "-s", "plain", "one", "--output", "markdown")
    assert out.startswith("### Plan for `dev`: 1 create, 1 resume; about 12 s\n")
    _, out, _ = run(forward, capsys, "plan", "-s", "plain", "one", "--output", "json")
    assert [json.loads(line)["about_seconds"] for line in out.splitlines()] == [None, 12.34]
