"""Decisions of the plan and of what it reads that only one side of a condition shows."""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sqlglot import exp

from engine.compile import Manifest
from engine.compile.columns import InputColumns
from engine.compile.nodes.model_settings import OutputMode
from engine.compile.streaming.check_query import bound
from engine.compile.streaming.parse_statement import parse
from engine.compile.streaming.query_plan.logical_plan import Join, LogicalPlan, walk
from engine.compile.streaming.query_plan.optimize import as_it_runs
from engine.errors import StateError
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan import ActionKind, PlanOptions, Reset, make_plan
from engine.plan.actions.action import Action
from engine.plan.actions.unchanged import batch_inputs_now
from engine.plan.deployed.generations import ID, NUMBER, wrote
from engine.state import ModelState, Phase, TableState
from engine.state.lock import ORPHAN_SECONDS, locked
from tests.fuzz.relations import relation
from tests.plan.deployed import batch, deployed, file, streaming
from tests.plan.test_plan import manifest
from tests.plan.test_state_edits import COUNTED, E, edited
from tests.plan.test_state_edits import compare as compare_edit
from tests.plan.test_state_edits import manifest as edit
from tests.project.small_projects import compiled, lines, model

PROJECT = """
name: lab
target: dev
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: s
    connections: {main: {bootstrap_servers: "localhost:1"}}
"""
KEYED = "/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: at\n---*/\nselect id, at, kind from {{ source('shop', 'events') }}"


def resumed(root: Path, before: str, after: str, **options: object) -> Action:
    old, now = manifest(root, before).model("m"), manifest(root, after)
    known = replace(streaming(old, [file("a")]), checkpoint=streaming(old, [file("a")]).checkpoint)
    return make_plan(now, ["model.m"], deployed(now, {"m": known}, [file("a")]), PlanOptions(**options)).actions[
        "model.m"
    ]  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_new_checkpoint_does_not_allow_a_key_that_is_computed_in_another_way(tmp_path: Path) -> None:
    other = KEYED.replace("select id", "select id + 1 as id")
    assert [found.code for found in resumed(tmp_path, KEYED, other).refusals] == ["model-changed"]
    reset = resumed(tmp_path, KEYED, other, reset=Reset(None))
    assert (reset.kind, [found.code for found in reset.refusals]) == (ActionKind.RESET, ["model-changed"])
    # What is about state only is what a new checkpoint is for.
    stateful = KEYED.replace("sequence_by: at\n", "").replace("id, at, kind", "id, count(*) as n") + " group by id"
    counted = stateful.replace("count(*)", "count(at)")
    assert [found.code for found in resumed(tmp_path, stateful, counted).refusals] == ["model-changed"]
    assert resumed(tmp_path, stateful, counted, reset=Reset(None)).refusals == ()


@pytest.mark.parametrize(
    ("state_id", "markers", "ours"),
    [
        ("a", {ID: "a", NUMBER: "2"}, True),
        ("a", {ID: "b", NUMBER: "1"}, False),
        # A number may come again after a state was lost; an id that only one of them has is no match.
        ("a", {NUMBER: "1"}, False),
        ("", {NUMBER: "1"}, False),
    ],
)
def test_commits_belong_to_a_generation_by_its_id(state_id: str, markers: dict[str, str], ours: bool) -> None:
    state = ModelState("lake.s.m", 1, Phase.PUBLISHED, generation_id=state_id)
    snapshot = SnapshotFacts(1, None, "append", {f"engine.{key}": value for key, value in markers.items()})
    assert wrote(state, snapshot) is ours


def test_the_history_of_a_table_holds_the_parent_that_has_expired() -> None:
    history = (SnapshotFacts(3, 2, "append", {}), SnapshotFacts(2, 1, "append", {}))
    table = TableFacts("u", {}, history, ())
    assert [number for number in range(5) if table.holds(number)] == [1, 2, 3]


TWICE = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
unique_key: h
---
with m as (select window(at, '10 minutes') as w, sum(amount) as s from {E} group by window(at, '10 minutes'))
select window(w, '1 hour').start as h, max(s) as top from m group by window(w, '1 hour')
"""
ONCE = f"""
streams: {{shop.events: {{watermark: at delay 10 minutes}}}}
unique_key: h
---
select window(at, '1 hour').start as h, max(amount) as top from {E} group by window(at, '1 hour')
"""


@pytest.mark.slow
def test_two_aggregates_over_a_stream_append_and_one_updates(tmp_path: Path) -> None:
    assert edit(tmp_path, ONCE).model("m").write.output_mode is OutputMode.UPDATE
    assert edit(tmp_path, TWICE).model("m").write.output_mode is OutputMode.APPEND


def _running(sql: str, streams: dict[str, InputColumns]) -> LogicalPlan:
    """The plan of a query as Spark runs it."""
    parsed = parse(sql)
    assert isinstance(parsed.tree, exp.Query)
    plan = bound(parsed.tree, streams, sql).plan
    assert plan is not None
    return as_it_runs(plan)


@pytest.mark.parametrize(
    ("condition", "kind"),
    [("e.id > 0", "left"), ("p.sum > 0", "right"), ("e.id > p.id", "inner"), ("coalesce(e.id, p.id) > 0", "full")],
)
def test_a_full_join_becomes_the_outer_join_of_the_side_that_a_filter_needs(condition: str, kind: str) -> None:
    columns = {"id": "int", "at": "timestamp", "sum": "double"}
    streams = {name: relation(columns, "at") for name in ("e", "p")}
    plan = _running(f"select e.id from e full join p on e.id = p.id and e.at = p.at where {condition}", streams)
    assert [step.kind for step in walk(plan) if isinstance(step, Join)] == [kind]


@pytest.mark.parametrize(
    ("columns", "condition", "kind"),
    [
        ("e.id as a", "a > 0", "left"),
        ("e.id as a, p.sum as b", "a > 0", "left"),
        ("e.id as a, p.sum as b", "a > 0 and b > 0", "inner"),
        ("coalesce(e.id, p.id) as a", "a > 0", "full"),
        ("1 as a", "a > 0", "full"),
    ],
)
def test_a_filter_is_applied_below_the_columns_that_it_is_over(columns: str, condition: str, kind: str) -> None:
    known = {"id": "int", "at": "timestamp", "sum": "double"}
    streams = {name: relation(known, "at") for name in ("e", "p")}
    joined = f"select {columns} from e full join p on e.id = p.id and e.at = p.at"
    plan = _running(f"select a from ({joined}) where {condition}", streams)
    assert [step.kind for step in walk(plan) if isinstance(step, Join)] == [kind]


@pytest.mark.slow
def test_a_limit_keeps_state(tmp_path: Path) -> None:
    plain = f"streams: [shop.events]\n---\nselect id, kind from {E}"
    assert not edit(tmp_path, plain).model("m").stateful
    assert edit(tmp_path, f"{plain} limit 5").model("m").stateful
    for one, other in ((plain, f"{plain} limit 5"), (f"{plain} limit 5", plain)):
        assert compare_edit(tmp_path, one, other).refusal is not None
    # Above a group as well.
    complete = edited(COUNTED, ("---", "output_mode: complete\n---"))
    assert compare_edit(tmp_path, complete, f"{complete} limit 5").refusal is not None


@pytest.mark.parametrize(
    ("declared", "unchanged"),
    [
        ('format: parquet, path: events, schema: "id int"', True),
        ("format: kafka, topic: events, connection: main, stream: false, value: {format: bytes}", None),
    ],
)
def test_of_a_view_over_a_source_without_declared_columns_not_all_is_known(
    tmp_path: Path, declared: str, unchanged: bool | None
) -> None:
    table = f"{{name: events, {declared}}}"
    files = {
        "project.yml": PROJECT,
        "sources/shop.yml": f"sources: [{{name: shop, tables: [{table}]}}]",
        **model("materialized: table", f"select * from {E}", "base"),
        **model("materialized: view", "select * from {{ ref('base') }}", "m"),
    }
    now: Manifest = compiled(tmp_path, files).manifest
    assert lines(now.errors) == []
    base = batch(now.model("base"), {})
    view = batch(now.model("m"), {})
    inputs = batch_inputs_now(now, now.model("m"), deployed(now, {"base": base}, []))
    known = {"base": base, "m": replace(batch(now.model("m"), inputs), view=view.table)}
    action = make_plan(now, ["model.m"], deployed(now, known, []), PlanOptions()).actions["model.m"]
    assert (action.refusals, action.unchanged) == ((), unchanged), action


def test_a_lock_of_another_host_is_not_waited_for(tmp_path: Path) -> None:
    state = TableState(tmp_path, "lake", "s", "m")
    folder = tmp_path / "lake" / "s" / "m"
    folder.mkdir(parents=True)
    path = folder / "lock"
    # No process has this id here, which says nothing of one elsewhere.
    path.write_text(json.dumps({"pid": 2**22 + 1, "host": "elsewhere", "command": "build", "since": "noon"}))
    descriptor = os.open(path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    began = time.monotonic()
    try:
        with pytest.raises(StateError, match="on elsewhere") as raised, locked([state]):
            pass
    finally:
        os.close(descriptor)
    assert raised.value.diagnostic.code == "table-locked"
    assert time.monotonic() - began < ORPHAN_SECONDS / 4
