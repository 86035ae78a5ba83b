"""kill -9 while a window, a join and a dedup each are at the last micro-batch that has data.

Each model waits at its point until the others are at theirs; then the process is killed. What is on disk afterwards
proves where it was.
"""

from __future__ import annotations

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.faults import shop
from tests.lab import Lab, killed_alone

pytestmark = pytest.mark.spark

# `arrive` is called at micro-batch 2 of each model; the third call ends it all.
ARRIVE = """
import os, signal, threading
from engine.lake import write
from engine.runtime.writer import BatchWriter
_all = threading.Barrier(3, lambda: os.kill(os.getpid(), signal.SIGKILL), 120)
def arrive(batch):
    if batch == 2:
        _all.wait()
"""
NOTHING_WRITTEN = """
_write = BatchWriter._write
def _waiting(self, frame, batch):
    arrive(batch)
    return _write(self, frame, batch)
BatchWriter._write = _waiting
"""
FILES_WRITTEN = """
_append = write.append
def append(staged, markers, *more):
    arrive(int(markers["batch-id"]))
    return _append(staged, markers, *more)
write.append = append
"""
COMMITTED = """
_record = BatchWriter.record
def record(self, **changes):
    arrive(changes.get("batch"))
    _record(self, **changes)
BatchWriter.record = record
"""
POINTS = {
    "before the write": NOTHING_WRITTEN,
    "in the write": FILES_WRITTEN,
    "after the commit": COMMITTED,
}


@pytest.mark.parametrize("point", POINTS)
def test_a_batch_of_each_kind_of_state_is_written_once(lab: Lab, point: str) -> None:
    shop.prepare(lab)
    killed_alone(lab.root, "build", "--threads", "3", script=ARRIVE + POINTS[point])
    committed = point == "after the commit"
    for model in shop.MODELS:
        checkpoint = shop.checkpoint(lab, model)
        assert (spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)) == (2, 1), model
        table = lab.table(model)
        assert table is not None
        assert ("2" in {s.marker("batch-id") for s in table.history}) == committed, model
        assert lab.model_json(model)["batch"] == 1, model
        # Files of a write that was cut off stay, and no snapshot names them.
        files = set((lab.lake_path / "warehouse" / lab.schema / model / "data").rglob("*.parquet"))
        assert (len(files) > named(lab, model)) == (point == "in the write"), model

    shop.land_later(lab)
    lab.build()
    shop.check(lab)
    again = lab.snapshots()
    lab.build()
    assert lab.snapshots() == again


def test_a_kill_before_the_batch_without_rows_leaves_no_window_open(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.prepare(lab)
    killed_alone(lab.root, "build", "--threads", "3", script=ARRIVE.replace("== 2", "== 3") + NOTHING_WRITTEN)
    for model in shop.MODELS:
        checkpoint = shop.checkpoint(lab, model)
        assert (spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)) == (3, 2), model
        # The moment before: what Spark writes next is the offsets.
        for name in ("3", ".3.crc"):
            (checkpoint / "offsets" / name).unlink()
    before = lab.snapshots()
    with monkeypatch.context() as planted:
        planted.setattr("engine.runtime.streams.take_back", lambda *_: False)
        lab.build()
    assert lab.snapshots() == before, "Spark makes it up by itself"
    lab.build()
    shop.check(lab, later=False)
    again = lab.snapshots()
    second = lab.build()
    assert lab.snapshots() == again
    assert {second.model(name)["status"] for name in shop.MODELS} == {"unchanged"}


def named(lab: Lab, model: str) -> int:
    """How many data files the table has."""
    table = lab.table(model)
    assert table is not None
    return int(table.history[0].summary["total-data-files"]) if table.history else 0
