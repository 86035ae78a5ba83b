"""Micro-batches that are begun, interrupted, and come again: kept ones, edited ones, and those owed without rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.errors import RunError
from tests.fault_injection.points import reached
from tests.lab import Lab, event

pytestmark = pytest.mark.spark

STREAM = "shop.events: {watermark: at delay 10 minutes, dedup: [id, at], max_files_per_trigger: 1}"
KEPT = f"""/*---
streams: {{{STREAM}}}
unique_key: id
sequence_by: at
delete_when: kind = 'deleted'
expectations: [{{name: small, check: amount < 100, on_fail: warn}}]
---*/
select id, at, kind, amount from {{{{ source('shop', 'events') }}}}
"""
EDITED = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'deleted'
expectations: [{name: small, check: amount < 100, on_fail: quarantine}]
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""


OTHER = "decode(kind, 'deleted', 'paid', 'gone', 'deleted', kind) as kind"


@contextmanager
def failing_before(batch: int) -> Iterator[None]:
    """Let the commit of a micro-batch to its model's table fail; what goes before it is committed."""

    def fail(model: str, number: int | None, table: str) -> None:
        if number == batch and table.endswith(f".{model}"):
            raise RunError("commit-conflict", "others commit all the time")

    with reached("committing", fail):
        yield


@pytest.mark.gate
def test_a_kept_batch_is_finished_and_its_counts_are_those_of_the_first_time(lab: Lab) -> None:
    lab.model("latest", KEPT)
    lab.land("a", [event(1, "10:00"), event(2, "10:00")])
    lab.land("b", [event(3, "12:00")])
    lab.land("bb", [event(3, "12:01")])
    # A row that is too late, a key that is deleted, and one of which to warn.
    lab.land("c", [event(9, "10:30"), event(1, "12:05", "deleted"), event(4, "12:05", amount=500.0)])
    lab.land("d", [event(9, "10:31"), event(2, "12:05", "deleted"), event(5, "12:05", amount=500.0)])
    with failing_before(batch=4):
        first = lab.run("build")
    assert first.code == 1
    again = lab.build()
    batches = {e["batch_id"]: e for r in (first, again) for e in r.events if e["event"] == "BatchCommitted"}
    seen = {number: (b["late"], b["failed_checks"]) for number, b in batches.items() if b["rows_in"]}
    assert [seen[number] for number in sorted(seen)[-2:]] == [(1, {"small": 1}), (1, {"small": 1})], seen
    assert sorted((r["id"], r["amount"]) for r in lab.rows("latest")) == [(3, 1.0), (4, 500.0), (5, 500.0)]
    assert sorted(r["key"]["id"] for r in lab.rows("latest__deleted")) == [1, 2]


@pytest.mark.nightly
def test_a_batch_between_whose_outputs_the_model_was_edited_follows_one_version(lab: Lab) -> None:
    lab.model("latest", EDITED)
    lab.land("a", [event(8, "09:00", amount=700.0), event(9, "09:00", "deleted")])
    lab.build()
    # By the first version 1 fails and 2 is deleted; by the second 3 fails and 4 is deleted.
    rows = [event(1, "10:00", amount=150.0), event(2, "10:00", "deleted")]
    lab.land("b", [*rows, event(3, "10:00", amount=50.0), event(4, "10:00", "gone"), event(5, "10:00")])
    with failing_before(batch=1):
        assert lab.run("build").code == 1
    assert len(lab.rows("latest__quarantine")) == 2
    lab.model("latest", EDITED.replace("amount < 100", "amount <> 50").replace("at, kind,", f"at, {OTHER},"))
    lab.build()
    assert lab.ids("latest") == [1, 2, 5]
    assert sorted(json.loads(r["row"])["id"] for r in lab.rows("latest__quarantine")) == [3, 8]
    # An older row of a key that is not deleted any more is taken, of one that is not.
    lab.land("c", [event(2, "09:59", amount=2.0) | {"id": 6}, event(4, "09:59")])
    lab.build()
    assert lab.ids("latest") == [1, 2, 5, 6]
    assert sorted(r["key"]["id"] for r in lab.rows("latest__deleted")) == [4, 9]


WINDOWED = """/*---
streams: {shop.events: {watermark: at delay 10 minutes, max_files_per_trigger: 1}}
windows: {hour: 'tumbling(at, 1 hour)'}
---*/
select hour.start as hour, count(*) as n from {{ source('shop', 'events') }} group by hour
"""


@pytest.mark.gate
def test_a_batch_is_repeated_only_if_its_files_are_there(lab: Lab) -> None:
    lab.model("hourly", WINDOWED)
    lab.land("a", [event(1, "10:00"), event(2, "10:01")])
    file = lab.land("b", [event(3, "12:00")])
    with failing_before(batch=2):
        assert lab.run("build").code == 1
    # As a kill leaves it behind the last rows: the micro-batch without rows, which closes the window, is owed.
    checkpoint = lab.state / "hourly" / "1" / "checkpoint"
    for name in ("2", ".2.crc"):
        (checkpoint / "offsets" / name).unlink()
    commits = sorted(path.name for path in (checkpoint / "commits").iterdir())
    kept, time = file.read_bytes(), file.stat().st_mtime
    file.unlink()
    lab.build()
    assert sorted(path.name for path in (checkpoint / "commits").iterdir()) == commits
    assert lab.rows("hourly") == []
    file.write_bytes(kept)
    os.utime(file, (time, time))
    lab.build()
    assert [row["n"] for row in lab.rows("hourly")] == [2]
