"""Whether a stream may continue with its table and its checkpoint: what was lost, copied or rolled back is seen before Spark starts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Model
from engine.errors import StateError
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.actions.state_checks import check_table
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.state import ModelState
from tests.plan.deployed import QUERY, file, streaming, table
from tests.plan.test_plan import PLAIN, manifest

UNWRITTEN: dict[str, Any] = {"batch": None, "snapshot": None}


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return manifest(tmp_path, PLAIN).model("m")


def commit(state: ModelState, number: int, batch: int | None) -> SnapshotFacts:
    """A commit of the state's generation; of a micro-batch, or of none."""
    marks = {
        "engine.generation-id": state.generation_id,
        **({"engine.batch-id": str(batch)} if batch is not None else {}),
    }
    return SnapshotFacts(number, number - 1 or None, "append", marks, number)


def code(model: Model, history: list[int | None] | None = None, checkpoint: dict[str, Any] | None = None, **state: Any) -> str:  # fmt: skip
    """What is wrong with a stream whose table has commits of these micro-batches, oldest first; empty: nothing."""
    found = streaming(model, [file("a")])
    assert found.state is not None
    assert found.checkpoint is not None
    known = replace(found.state, generation_id="g", **state)
    facts: TableFacts = table(model)
    if history is not None:
        commits = [commit(known, number, batch) for number, batch in enumerate(history, 1)]
        facts = replace(facts, history=tuple(reversed(commits)))
    try:
        check_table(model, known, replace(found.checkpoint, **(checkpoint or {})), facts)
    except StateError as error:
        return error.diagnostics[0].code
    return ""


@pytest.mark.parametrize(
    ("history", "batch", "snapshot", "expected"),
    [
        ([0, 1], 1, 2, ""),
        # The table is one micro-batch ahead: the state was not written before a kill.
        ([0, 1, 2], 1, 2, ""),
        ([0, 1, 1], 1, 2, "state-copied"),
        ([0, 1, 0], 1, 2, "state-copied"),
        ([0, 1, 1], 1, 3, "state-copied"),
        ([0], 1, 2, "table-rolled-back"),
        # The history expired up to a later commit of the same stream.
        ([0, 1, 2], 1, 9, ""),
        ([0, 1], 1, 9, ""),
        ([0], 1, 9, "table-rolled-back"),
        ([None, None], 1, 9, "table-rolled-back"),
    ],
)
def test_the_table_has_what_the_state_knows_of(
    model: Model, history: list[int | None], batch: int, snapshot: int, expected: str
) -> None:
    ahead = {"started": 5, "committed": 5}
    assert code(model, history, ahead, batch=batch, snapshot=snapshot) == expected


@pytest.mark.parametrize(
    ("history", "checkpoint", "state", "expected"),
    [
        # Nothing was begun: a checkpoint is not missed.
        ([], {"query_id": None, "started": None}, {**UNWRITTEN, "query_id": None}, ""),
        ([], {"query_id": None, "started": None}, UNWRITTEN, "checkpoint-lost"),
        ([0], {"query_id": None, "started": None}, {"query_id": None, "batch": None}, "checkpoint-lost"),
        ([], {"started": None}, UNWRITTEN, ""),
        # The state was not written before a kill, and the checkpoint says which query it is.
        ([0], {}, {"query_id": None, "batch": None}, ""),
        ([0], {"query_id": "another"}, {}, "checkpoint-lost"),
        ([0, 1], {"started": 0}, {"batch": 0}, "checkpoint-lost"),
        ([0, 1], {"started": 1}, {"batch": 0}, ""),
        ([0], {"started": None}, {}, "checkpoint-lost"),
    ],
)
def test_the_checkpoint_has_what_is_written(
    model: Model, history: list[int | None], checkpoint: dict[str, Any], state: dict[str, Any], expected: str
) -> None:
    assert code(model, history, checkpoint, **state) == expected


def test_a_lost_checkpoint_is_told_from_another_query_s(model: Model) -> None:
    found = streaming(model, [])
    assert found.state is not None
    for query, words in (
        (None, "is lost or damaged"),
        (QUERY, "is lost or damaged"),
        ("another", "belongs to another query"),
    ):
        with pytest.raises(StateError) as raised:
            check_table(model, found.state, CheckpointFacts(Path("c"), query), table(model))
        assert words in raised.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("committed", "ends", "found", "expected"),
    [
        # By a version that recorded none: nothing is known, and nothing is asked.
        ({}, {}, {1: "b", 0: "a"}, ""),
        ({1: "b"}, {}, {1: "b", 0: "a"}, ""),
        ({1: "b"}, {}, {1: "c"}, "checkpoint-changed"),
        ({0: "a", 1: "b"}, {}, {1: "b", 0: "c"}, "checkpoint-changed"),
        # A micro-batch that had no rows has no commit, but the state knows of it.
        ({0: "a"}, {"1": ["b"]}, {1: "c"}, "checkpoint-changed"),
        ({0: "a"}, {"1": ["b"]}, {1: "b"}, ""),
        # Offsets that were moved past commits without rows are those of before, if a kill came first, or of after.
        ({1: "b"}, {"1": ["b", "m"]}, {1: "m"}, ""),
        ({1: "b"}, {"1": ["b", "m"]}, {1: "b"}, ""),
        ({1: "b"}, {"1": ["b", "m"]}, {1: "c"}, "checkpoint-changed"),
        # A micro-batch that was started and is not committed may have any.
        ({1: "b"}, {}, {2: "x", 1: "b"}, ""),
    ],
)
def test_offsets_are_those_of_the_commit(
    model: Model, committed: dict[int, str], ends: dict[str, list[str]], found: dict[int, str], expected: str
) -> None:
    known = streaming(model, [])
    assert known.state is not None
    assert known.checkpoint is not None
    state = replace(known.state, generation_id="g", batch=1, snapshot=2, ends=ends)
    commits = [commit(state, number, number - 1) for number in (1, 2)]
    marked = [
        replace(one, summary={**one.summary, **({"engine.offsets-digest": digest} if digest else {})})
        for one, digest in zip(commits, (committed.get(0), committed.get(1)), strict=True)
    ]
    facts = replace(table(model), history=tuple(reversed(marked)))
    checkpoint = replace(known.checkpoint, started=max(found), committed=1, ends=found)
    with nullcontext() if not expected else pytest.raises(StateError) as raised:
        check_table(model, state, checkpoint, facts)
    assert not expected or raised.value.diagnostic.code == expected
