"""What the plan says of tables that streams read, from their snapshots and the offsets of a checkpoint alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Manifest
from engine.errors import Diagnostic
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan import ActionKind, Deployed, DeployedModel, DeployedSource, PlanOptions, Reset, make_plan
from engine.plan.tables.upstream_tables import Upstream, decide_start
from tests.plan.deployed import deployed, file, streaming, table
from tests.plan.test_actions import READER, A, project
from tests.plan.test_plan import EVENTS, PLAIN, manifest

ORDERS = (
    EVENTS
    + """
  - name: ops
    tables:
      - {name: orders, format: iceberg, table: raw.orders}
"""
)
OF_SOURCE = "/*---\nstreams: [ops.orders]\n---*/\nselect id from {{ source('ops', 'orders') }}"


def snapshots(*operations: str, first: int = 1, parent: int | None = None) -> tuple[SnapshotFacts, ...]:
    """Snapshots with the numbers from `first` on, newest first; the oldest has the parent."""
    made = []
    for number, operation in enumerate(operations, first):
        made.append(SnapshotFacts(number, parent, operation, {}, number * 1000))
        parent = number
    return tuple(reversed(made))


def reader(now: Manifest, *, at: int, started: int | None = None, **state: Any) -> DeployedModel:
    """A stream of `m` that has read up to a snapshot, and has begun to read up to another."""
    found = streaming(now.model("reader"), [])
    assert found.state is not None
    assert found.checkpoint is not None
    state = {"starts": {"model.m": {"uuid": "u", "seed": None}}, **state}
    offsets, ahead = ({"snapshot_id": at},), ({"snapshot_id": started or at},)
    checkpoint = replace(found.checkpoint, offsets=offsets, started_offsets=ahead, logs=())
    return replace(found, state=replace(found.state, **state), checkpoint=checkpoint)


def refusals(now: Manifest, upstream: TableFacts | None, known: DeployedModel, *, together: bool = False,
             **options: Any) -> list[Diagnostic]:  # fmt: skip
    model = streaming(now.model("m"), [A])
    model = replace(model, table=upstream, written=upstream) if upstream is not None else DeployedModel()
    selected = ["model.m", "model.reader"] if together else ["model.reader"]
    there = deployed(now, {"m": model, "reader": known}, [A])
    actions = make_plan(now, selected, there, PlanOptions(**options)).actions
    return list(actions["model.reader"].refusals)


@pytest.mark.parametrize(
    ("history", "changes", "code", "words"),
    [
        (snapshots("append", "append"), {"uuid": "other"}, "upstream-replaced", "dropped and recreated"),
        (snapshots("append"), {}, "upstream-replaced", "rolled back"),
        (snapshots("overwrite", first=7), {}, "upstream-replaced", "rebuilt or replaced"),
        (snapshots("append", first=5, parent=4), {}, "upstream-history", "has expired"),
        (snapshots("append", "append", "overwrite"), {}, "upstream-rewritten", "'overwrite'"),
        (snapshots("append", "append", "delete"), {}, "upstream-rewritten", "rows that are deleted"),
        (snapshots("append", "append", "replace", "append"), {}, "", ""),
        (snapshots("overwrite", "append"), {}, "", ""),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_stream_that_cannot_resume_is_rejected_before_java_starts(
    tmp_path: Path, history: tuple[SnapshotFacts, ...], changes: dict[str, Any], code: str, words: str, together: bool
) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER)
    upstream = table(now.model("m"), **{"uuid": "u", **changes})
    found = refusals(now, replace(upstream, history=history), reader(now, at=2), together=together)
    assert [f.code for f in found] == ([code] if code else [])
    assert all(words in f.message and f.location is not None and f.node == "reader" for f in found)


@pytest.mark.parametrize("started", [2, 3])
def test_a_table_that_was_rolled_back_is_missed_at_any_end_of_a_micro_batch(tmp_path: Path, started: int) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER)
    upstream = replace(table(now.model("m")), history=snapshots("append", first=7))
    (found,) = refusals(now, upstream, reader(now, at=2, started=started))
    assert (found.code, "rolled back" in found.message) == ("upstream-replaced", True)


def test_deletes_are_skipped_where_the_header_says_so(tmp_path: Path) -> None:
    ignoring = READER.replace("[m]", "{m: {on_upstream_delete: ignore}}")
    now = project(tmp_path, m=PLAIN, reader=ignoring)
    upstream = replace(table(now.model("m")), history=snapshots("append", "delete", "append"))
    assert refusals(now, upstream, reader(now, at=1)) == []


def test_an_initial_snapshot_must_be_there(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER)
    upstream = replace(table(now.model("m")), history=snapshots("append", "append"))
    start = {"uuid": "u", "at": 1001, "snapshot": 1, "seed": "lake.s.reader__seed1_m"}
    known = reader(now, at=2, starts={"model.m": start})
    (missing,) = refusals(now, upstream, known)
    assert (missing.code, "lake.s.reader__seed1_m" in missing.message) == ("upstream-history", True)
    first = replace(table(now.model("m")), history=snapshots("append", first=9))
    assert refusals(now, upstream, replace(known, initial_snapshots={"model.m": first})) == []


def test_a_table_that_no_build_makes_first_must_exist(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER)
    (found,) = refusals(now, None, DeployedModel())
    assert (found.code, found.hint) == ("upstream-history", "Build 'm' first.")
    assert refusals(now, None, DeployedModel(), together=True) == []
    # One that cannot be read is another thing.
    fault = Diagnostic("catalog-unusable", "the table s.m cannot be read")
    there = deployed(now, {"m": DeployedModel(faults=(fault,))}, [A])
    assert make_plan(now, ["model.reader"], there, PlanOptions()).actions["model.reader"].refusals == (fault,)


def test_a_new_generation_reads_what_is_there_and_a_reset_must_find_its_time(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER.replace("streams", "unique_key: id\nstreams"))
    # The first commits have expired, and what is left replaces rows: an initial snapshot takes their place.
    upstream = replace(table(now.model("m")), history=snapshots("overwrite", "append", first=5, parent=4))
    assert refusals(now, upstream, DeployedModel()) == []
    assert refusals(now, upstream, reader(now, at=1), full_refresh=True) == []
    known = replace(reader(now, at=6), written=table(now.model("reader")))
    assert refusals(now, upstream, known, reset=Reset(None)) == []
    (found,) = refusals(now, upstream, known, reset=Reset(2000))
    assert (found.code, "may have expired" in found.message) == ("upstream-history", True)
    (found,) = refusals(now, upstream, known, reset=Reset(5000))
    assert found.code == "upstream-rewritten"
    assert refusals(now, upstream, known, reset=Reset(6000)) == []


def of_source(root: Path, settings: str = "") -> Manifest:
    declared = ORDERS.replace("raw.orders}", f"raw.orders{settings}}}")
    return manifest(root, OF_SOURCE, declared)


def source_plan(now: Manifest, source: DeployedSource, known: DeployedModel) -> list[Diagnostic]:
    there = Deployed({"model.m": known}, {"source.ops.orders": source})
    action = make_plan(now, ["model.m"], there, PlanOptions()).actions["model.m"]
    assert action.kind is (ActionKind.RESUME if known.state else ActionKind.CREATE)
    return list(action.refusals)


ORDERS_TABLE = TableFacts("u", {}, snapshots("append", "append", first=5, parent=4), (("id", "int"),))
ORDERS_NOW = DeployedSource(table=ORDERS_TABLE, parts=("lake", "raw", "orders"), columns={"id": "int"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", ""),
        (", starting_snapshot: 6", ""),
        (", starting_snapshot: 3", "cannot start at snapshot 3"),
        (", starting_timestamp: '1970-01-01 00:00:01'", "may have expired"),
        (", starting_timestamp: '1970-01-01 00:00:06'", ""),
    ],
)
def test_where_a_source_says_that_a_stream_begins_must_be_known(tmp_path: Path, settings: str, words: str) -> None:
    found = source_plan(of_source(tmp_path, settings), ORDERS_NOW, DeployedModel())
    assert [f.code for f in found] == (["upstream-history"] if words else [])
    assert all(words in f.message for f in found)


def test_a_column_that_is_gone_or_retyped_upstream_is_named(tmp_path: Path) -> None:
    now = of_source(tmp_path)
    found = streaming(now.model("m"), [file("none")])
    assert found.state is not None
    assert found.checkpoint is not None
    before = {"source.ops.orders": {"columns": {"id": "bigint", "note": "string"}}}
    start = {"source.ops.orders": {"uuid": "u", "seed": None}}
    known = replace(
        found,
        state=replace(found.state, sources=before, starts=start),
        checkpoint=replace(found.checkpoint, offsets=({"snapshot_id": 6},), started_offsets=({"snapshot_id": 6},)),
    )
    (fault,) = source_plan(now, ORDERS_NOW, known)
    assert fault.code == "source-columns"
    assert fault.message == (
        "lake.raw.orders has changed since 'm' last read it: id bigint: is int now; note string: is gone"
    )
    assert "engine build -f -s m" in fault.hint
    assert source_plan(now, replace(ORDERS_NOW, columns={"id": "bigint", "note": "string", "more": "int"}), known) == []


def test_a_stream_that_begins_now_reads_what_waits_for_tests_below_a_compaction(tmp_path: Path) -> None:
    now = project(tmp_path, m=PLAIN, reader=READER)
    # Rows were committed beside the table after 1 and before 2, and take the place of 2 when they are published.
    facts = replace(table(now.model("m")), history=snapshots("append", "replace"))
    upstream = Upstream("model.m", "m", ("lake", "s", "m"), facts, ignore_deletes=False)
    assert decide_start(now.model("reader"), upstream, "lake.s.seed", {"at": 9000}).at == 1001


@pytest.mark.parametrize(
    ("at", "columns", "unchanged"), [(6, {"id": "int"}, True), (5, {"id": "int"}, False), (6, {"id": "long"}, None)]
)
def test_a_stream_of_another_program_s_table_without_a_new_snapshot_is_unchanged(
    tmp_path: Path, at: int, columns: dict[str, str], unchanged: bool | None
) -> None:
    now = of_source(tmp_path)
    found = streaming(now.model("m"), [])
    assert found.state is not None
    assert found.checkpoint is not None
    node = "source.ops.orders"
    state = replace(found.state, starts={node: {"uuid": "u", "seed": None}}, sources={node: {"columns": columns}})
    offsets = ({"snapshot_id": at},)
    checkpoint = replace(found.checkpoint, offsets=offsets, started_offsets=offsets, logs=())
    there = deployed(now, {"m": replace(found, state=state, checkpoint=checkpoint)}, None)
    there = replace(there, sources={node: ORDERS_NOW})
    assert make_plan(now, ["model.m"], there, PlanOptions()).actions["model.m"].unchanged is unchanged
