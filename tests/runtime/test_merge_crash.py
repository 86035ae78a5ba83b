"""kill -9 while a batch is merged or rewritten, then a build: the tables equal those of an undisturbed run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.lab import EVENTS, Lab, run_alone

pytestmark = pytest.mark.spark

# All of it in one project: keys, deletes, rows put aside, a static side (so that the batch is kept before its first
# commit), a count in update mode and a ranking in complete mode.
LATEST = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
unique_key: id
sequence_by: at
delete_when: kind = 'deleted'
expectations: [{name: small, check: amount < 100, on_fail: quarantine}]
---*/
select e.id, e.at, e.kind, e.amount, n.name
from {{ source('shop', 'events') }} e
left join {{ source('shop', 'names') }} n on n.id = e.id
"""
COUNTS = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
output_mode: MODE
---*/
select kind, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }} group by kind
"""
NAMES = """      - name: names
        format: csv
        path: landing/names
        schema: "id int, name string"
"""
# Each kills the process at micro-batch 1 of a model: before the commit, once the MERGE has written its first file (what
# Java then still does is its own affair), and after the commit.
BEFORE = """
import os, signal
from engine.runtime.outputs import files
_commit = files.Whole.commit
def commit(self, markers):
    if markers["model"] == "{model}" and markers["batch-id"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return _commit(self, markers)
files.Whole.commit = commit
"""
MIDDLE = """
import os, pathlib, signal, threading, time
from engine.runtime.outputs import merge
_commit = merge.Merged.commit
def there():
    return set(pathlib.Path("{lake}").rglob("{model}/data/*.parquet"))
def kill(before):
    while not there() - before:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)
def commit(self, markers):
    if markers["model"] == "{model}" and markers["batch-id"] == "1":
        threading.Thread(target=kill, args=(there(),), daemon=True).start()
    return _commit(self, markers)
merge.Merged.commit = commit
"""
AFTER = """
import os, signal
from engine.runtime.writer import BatchWriter
_record = BatchWriter.record
def record(self, **changes):
    if changes.get("batch") == 1 and "{model}" in self.relation:
        os.kill(os.getpid(), signal.SIGKILL)
    _record(self, **changes)
BatchWriter.record = record
"""


def event(number: int, minute: int, kind: str = "paid", amount: float = 1.0) -> dict[str, Any]:
    return {"id": number, "at": f"2024-05-01T10:{minute:02}:00Z", "kind": kind, "amount": amount}


def prepare(root: Path) -> Lab:
    lab = Lab(root, None, None, schema="shop")
    lab.write("sources/shop.yml", EVENTS + NAMES)
    lab.model("latest", LATEST)
    lab.model("counts", COUNTS.replace("MODE", "update"))
    lab.model("ranking", COUNTS.replace("MODE", "complete"))
    lab.write("landing/names/n.csv", "id,name\n1,Ada\n2,Grace\n3,Edsger\n")
    lab.land("a", [event(1, 1), event(2, 1), event(3, 1)])
    lab.land("b", [event(1, 9, "deleted"), event(2, 2, amount=500.0), event(2, 3, amount=2.0), event(4, 1)])
    # What comes after: an older row of a deleted key, and of a living one.
    lab.land("c", [event(1, 5), event(2, 2, amount=7.0)])
    return lab


LATEST_ROWS = [(2, 2.0, "Grace"), (3, 1.0, "Edsger"), (4, 1.0, None)]


def check(lab: Lab) -> None:
    assert sorted((r["id"], r["amount"], r["name"]) for r in lab.rows("latest")) == LATEST_ROWS
    assert [r["row"] for r in lab.rows("latest__quarantine")] == [
        '{"id":2,"at":"2024-05-01T10:02:00.000000Z","kind":"paid","amount":500.0,"name":"Grace"}'
    ]
    assert [r["key"] for r in lab.rows("latest__deleted")] == [{"id": 1}]
    for name in ("counts", "ranking"):
        counted = {r["kind"]: (r["n"], r["amount"]) for r in lab.rows(name)}
        assert counted == {"paid": (8, 514.0), "deleted": (1, 1.0)}, name
        table = lab.table(name)
        assert table is not None
        assert [s.marker("batch-id") for s in table.history] == ["2", "1", "0"]


STEPS = [("latest", MIDDLE), ("latest", AFTER), ("counts", AFTER), ("ranking", BEFORE), ("ranking", AFTER)]


def test_batches_that_are_killed_at_every_point_are_written_once(tmp_path: Path) -> None:
    lab = prepare(tmp_path)
    for model, point in STEPS:
        script = point.format(model=model, lake=lab.lake_path)
        killed = run_alone(lab.root, "build", "--threads", "1", "-s", model, script=script)
        assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
        checkpoint = lab.state / model / "1" / "checkpoint"
        assert (spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)) == (1, 0), model
        table = lab.table(model)
        assert table is not None
        written = [s.marker("batch-id") for s in table.history]
        if point is MIDDLE:
            # The other outputs of the batch come first, and are there once.
            assert (len(lab.rows("latest__deleted")), len(lab.rows("latest__quarantine"))) == (1, 1)
            # A batch that comes again must not see what has changed since.
            lab.write("landing/names/n.csv", "id,name\n1,Ada\n2,Not Grace\n3,Edsger\n4,Not there\n")
        else:
            assert written == (["1", "0"] if point is AFTER else ["0"]), model
    rebuilt = run_alone(lab.root, "build")
    assert rebuilt.returncode == 0, rebuilt.stdout + rebuilt.stderr
    check(lab)
