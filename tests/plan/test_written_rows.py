"""What a build writes, in a phrase, and how many rows that concerns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.compile import Model
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan import ActionKind, PlanOptions, Unread, make_plan
from engine.plan.actions.action import written_rows
from engine.plan.actions.unread_input import _snapshots
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.refresh.refresh_choice import RefreshChoice, Way
from tests.plan.deployed import deployed, file, streaming
from tests.plan.test_plan import PLAIN, WINDOWED, header, manifest

SOURCE = "{{ source('shop', 'events') }}"
STREAM = f"select id, at, kind from {SOURCE}"


def _model(root: Path, header: str, sql: str = STREAM) -> Model:
    return manifest(root, f"/*---\n{header}\n---*/\n{sql}").model("m")


@pytest.mark.parametrize(
    ("header", "kind", "expected"),
    [
        ("streams: [shop.events]", ActionKind.CREATE, "creates the table"),
        ("streams: [shop.events]", ActionKind.EMPTY, "creates the table without rows"),
        ("streams: [shop.events]", ActionKind.RESUME, "appends rows"),
        ("streams: [shop.events]", ActionKind.REFRESH, "replaces all 1,234 rows"),
        ("streams: [shop.events]", ActionKind.RESET, "keeps the rows of the table and adds the rows that the new checkpoint reads"),
        ("streams: [shop.events]\nunique_key: [id, kind]", ActionKind.RESUME, "inserts or updates rows by id, kind"),
        ("streams: [shop.events]\nunique_key: id\nsequence_by: at\nhistory: true", ActionKind.RESUME,
         "appends versions of rows by id"),
        ("materialized: view", ActionKind.CREATE, "creates the view"),
        ("materialized: view", ActionKind.REBUILD, "replaces the view"),
        ("refresh: full", ActionKind.REBUILD, "replaces all 1,234 rows"),
        ("tags: [x]", ActionKind.REBUILD, "replaces the affected rows, at most all 1,234 rows"),
        ("partition_by: [kind]\noverwrite: partitions", ActionKind.REBUILD, "replaces the partitions that the query returns"),
        ("publish: on_tests_pass", ActionKind.REFRESH, "replaces all 1,234 rows, published when its tests pass"),
    ],
)  # fmt: skip
def test_of_an_action(header: str, kind: ActionKind, expected: str, tmp_path: Path) -> None:
    sql = "select 1 as id" if "view" in header else STREAM
    assert written_rows(_model(tmp_path, header, sql), kind, 1234) == expected


@pytest.mark.parametrize(
    ("choice", "edited", "expected"),
    [
        (RefreshChoice(Way.FULL, "why"), False, "replaces all rows"),
        (RefreshChoice(Way.CHANGES, ""), False, "replaces the affected partitions"),
        (
            RefreshChoice(Way.CHANGES, "", cannot_follow_reason="why"),
            False,
            "replaces the affected rows, at most all rows",
        ),
        (RefreshChoice(Way.CHANGES, ""), True, "replaces all rows"),
    ],
)
def test_of_a_refresh(choice: RefreshChoice, edited: bool, expected: str, tmp_path: Path) -> None:
    model = _model(tmp_path, "tags: [x]")
    assert written_rows(model, ActionKind.REBUILD, None, choice, edited=edited) == expected


def _table(*summaries: dict[str, str]) -> TableFacts:
    """Newest first."""
    last = len(summaries)
    return TableFacts("u", {}, tuple(SnapshotFacts(last - n, None, "append", s) for n, s in enumerate(summaries)), ())


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ({"total-records": "10"}, 10),
        ({"total-records": "10", "total-position-deletes": "3", "total-equality-deletes": "0"}, 7),
        ({"total-records": "10", "total-equality-deletes": "1"}, None),
        ({}, None),
        ({"total-records": "many"}, None),
    ],
)
def test_rows_of_a_table(summary: dict[str, str], expected: int | None) -> None:
    assert _table(summary).rows == expected
    assert _table().rows is None


def test_rows_that_are_unread(tmp_path: Path) -> None:
    found = _table({"added-records": "5"}, {"added-records": "7", "total-records": "17"}, {"added-records": "10"})
    at = CheckpointFacts(Path("c"), "q", 1, 1, has_beginnings=True, offsets=({"snapshot_id": 1},))
    assert _snapshots("t", found, at) == Unread("t", "snapshots", 2, rows=12)
    assert _snapshots("t", _table({"added-records": "?"}, {}), at).rows is None
    assert _snapshots("t", _table({"total-records": "22"}), None) == Unread("t", "snapshots", 1, rows=22)


def test_a_compaction_brings_no_rows() -> None:
    found = _table({"added-records": "16"}, {"added-records": "7"}, {"added-records": "10"})
    rewritten = replace(found, history=(replace(found.history[0], operation="replace"), *found.history[1:]))
    at = CheckpointFacts(Path("c"), "q", 1, 1, has_beginnings=True, offsets=({"snapshot_id": 1},))
    assert _snapshots("t", rewritten, at) == Unread("t", "snapshots", 1, rows=7)
    assert _snapshots("t", rewritten, replace(at, offsets=({"snapshot_id": 2},))) == Unread("t", "snapshots", 0, rows=0)


def test_an_action_has_what_it_writes(tmp_path: Path) -> None:
    found = manifest(tmp_path, PLAIN)
    model = found.model("m")
    known = deployed(found, {"m": streaming(model, [file("a")])}, [file("a"), file("b")])
    action = make_plan(found, [model.id], known, PlanOptions()).actions[model.id]
    assert action.writes == "appends rows"
    known = deployed(found, {"m": streaming(model, [file("a")])}, [file("a")])
    action = make_plan(found, [model.id], known, PlanOptions()).actions[model.id]
    assert (action.unchanged, action.writes) == (True, "")


@pytest.mark.slow
def test_what_is_written_in_another_way_is_named(tmp_path: Path) -> None:
    text = header() + WINDOWED.replace("group by", "where id > 0 group by")
    written = manifest(tmp_path / "before", text).model("m")
    found = manifest(tmp_path / "after", text.replace("id > 0", "0 < id"))
    known = deployed(found, {"m": streaming(written, [file("a")])}, [file("a")])
    action = make_plan(found, ["model.m"], known, PlanOptions()).actions["model.m"]
    assert action.reasons == ("its query is written in another way (WHERE); it means the same",)
