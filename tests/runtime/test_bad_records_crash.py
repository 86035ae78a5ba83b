"""kill -9 between the commits of a batch that goes to two tables: both equal those of an undisturbed run.

The build after the kill runs in the shared session, over the same lake and state.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.lab import EVENTS, Lab, run_alone
from tests.runtime.test_bad_records import AFTER, POISON, event, land, shop

pytestmark = pytest.mark.spark

# Each script kills the process at the micro-batch with number BATCH.
AFTER_QUARANTINE = """
import os, signal
from engine.lake import write
_append = write.append
def append(staged, markers, *more):
    done = _append(staged, markers, *more)
    if markers["batch-id"] == "{batch}" and staged.table.name().endswith("{table}"):
        os.kill(os.getpid(), signal.SIGKILL)
    return done
write.append = append
""".replace("{table}", "sales__quarantine")
AFTER_TABLE = AFTER_QUARANTINE.replace("sales__quarantine", ".sales")
AFTER_RECORD = """
import os, signal
from engine.runtime.writer import BatchWriter
_record = BatchWriter.record
def record(self, **changes):
    _record(self, **changes)
    if changes.get("batch") == {batch}:
        os.kill(os.getpid(), signal.SIGKILL)
BatchWriter.record = record
"""
POINTS = {"quarantine": AFTER_QUARANTINE, "table": AFTER_TABLE, "record": AFTER_RECORD}
# In batch 2, the last with data, each of them has rows for the table and a bad record.
CASES = [
    *((kind, "quarantine") for kind in ("stateless", "window", "dedup", "join")),
    *((kind, "table") for kind in ("window", "join")),
    ("dedup", "record"),
]


def marks(lab: Lab, table: str) -> Iterator[str | None]:
    facts = lab.table(table)
    yield from (snapshot.marker("batch-id") for snapshot in facts.history if facts) if facts else ()


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_a_batch_killed_between_its_commits_takes_effect_once(lab: Lab, kind: str, point: str) -> None:
    shop(lab, kind, "quarantine")
    land(lab, "c", [json.dumps({"id": 9, "refunded_at": "2024-05-01T16:30:00Z"})], "landing/refunds")
    killed = run_alone(lab.root, "build", script=POINTS[point].format(batch=2))
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    checkpoint = lab.state / "sales" / "1" / "checkpoint"
    assert spark_checkpoint.last_started(checkpoint) == 2
    assert spark_checkpoint.last_committed(checkpoint) == 1
    assert "2" in marks(lab, "sales__quarantine")
    assert ("2" in marks(lab, "sales")) == (point != "quarantine")
    assert (lab.model_json("sales")["batch"] == 2) == (point == "record")

    lab.build()
    expected = [1, 2, 4] if kind == "window" else [1, 2, 4, 9]
    assert sorted(r["id"] for r in lab.rows("sales")) == expected
    assert sorted(r["raw"].decode() for r in lab.rows("sales__quarantine")) == sorted([*POISON, AFTER])
    before = lab.snapshot("sales"), lab.snapshot("sales__quarantine")
    lab.build()
    assert before == (lab.snapshot("sales"), lab.snapshot("sales__quarantine"))


def test_the_first_batch_killed_after_its_quarantine_is_not_read_anew(lab: Lab) -> None:
    shop(lab, "stateless", "quarantine")
    killed = run_alone(lab.root, "build", script=AFTER_QUARANTINE.format(batch=0))
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert lab.model_json("sales")["batch"] is None
    assert list(marks(lab, "sales__quarantine")) == ["0"]
    lab.build()
    assert sorted(r["id"] for r in lab.rows("sales")) == [1, 2, 4, 9]
    assert sorted(r["raw"].decode() for r in lab.rows("sales__quarantine")) == sorted([*POISON, AFTER])


def test_rows_that_would_differ_the_second_time_go_to_one_table_each(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS)
    lab.model(
        "sales",
        "/*---\nstreams: [shop.events]\nexpectations: [{name: luck, check: luck < 0.5, on_fail: quarantine}]\n---*/\n"
        "select id, rand() as luck from {{ source('shop', 'events') }}\n",
    )
    land(lab, "a", [event(number, "10:00") for number in range(64)])
    killed = run_alone(lab.root, "build", script=AFTER_QUARANTINE.format(batch=0))
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    first = {json.loads(r["row"])["id"] for r in lab.rows("sales__quarantine")}
    assert 0 < len(first) < 64
    assert lab.rows("sales") == []
    kept = lab.state / "sales" / "1" / "batches"
    assert len(list(kept.iterdir())) == 1
    lab.build()
    table = [r["id"] for r in lab.rows("sales")]
    aside = [json.loads(r["row"])["id"] for r in lab.rows("sales__quarantine")]
    assert sorted([*table, *aside]) == list(range(64))
    assert set(aside) == first
    assert not kept.exists()


def test_a_kill_while_the_batch_is_being_kept_leaves_nothing_of_it(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS)
    lab.model(
        "sales",
        "/*---\nstreams: {shop.events: {watermark: at delay 1 hour, dedup: [id]}}\n"
        "expectations: [{name: odd, check: id % 2 = 1, on_fail: quarantine}]\n---*/\n"
        "select id from {{ source('shop', 'events') }}\n",
    )
    land(lab, "a", [event(number, "10:00") for number in range(10)])
    script = """
import os, signal, shutil
from engine.runtime.kept import KeptBatches
_keep = KeptBatches.keep
def keep(self, frame, batch):
    _keep(self, frame, batch)
    (self._path(batch) / "_SUCCESS").unlink()
    os.kill(os.getpid(), signal.SIGKILL)
KeptBatches.keep = keep
"""
    killed = run_alone(lab.root, "build", script=script)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert lab.table("sales__quarantine") is None
    assert lab.rows("sales") == []
    assert (lab.state / "sales" / "1" / "batches").exists()
    lab.build()
    assert sorted(r["id"] for r in lab.rows("sales")) == [1, 3, 5, 7, 9]
    assert sorted(json.loads(r["row"])["id"] for r in lab.rows("sales__quarantine")) == [0, 2, 4, 6, 8]
    assert not (lab.state / "sales" / "1" / "batches").exists()
