"""`--reset-checkpoint`: a new checkpoint over the rows that are there, from where the user says."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.lab import Lab, Result, event

pytestmark = pytest.mark.spark

PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n"
COUNTS = """/*---
streams: {shop.events: {watermark: at delay 1 day}}
windows: {day: 'tumbling(at, 1 day)'}
output_mode: update
---*/
select kind, day.start as day, count(*) as n from {{ source('shop', 'events') }} group by kind, day
"""

CLOCK = "sources:\n  - name: clock\n    tables:\n      - {name: ticks, format: rate, rows_per_second: 1}\n"
TICKS = "/*---\nstreams: [clock.ticks]\nunique_key: value\n---*/\nselect value from {{ source('clock', 'ticks') }}\n"


def land(lab: Lab, name: str, *rows: Mapping[str, Any], at: float) -> None:
    path = lab.land(name, rows)
    os.utime(path, (at, at))


def codes(result: Result) -> list[str]:
    """What was found, without what compile says of the counts."""
    return sorted(code for code in result.codes() if code not in {"unbounded-groups", "unbounded-complete"})


def said(result: Result, code: str) -> str:
    (found,) = [e["message"] for e in result.events if e["event"] == "Diagnosed" and e["code"] == code]
    return str(found)


def counts(lab: Lab) -> dict[str, int]:
    return {row["kind"]: row["n"] for row in lab.rows("counts")}


def test_the_three_forms(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.model("copy", COPY)
    lab.model("counts", COUNTS)
    now = time.time()
    land(lab, "a", event(1), event(2), at=now - 3000)
    lab.build()
    land(lab, "b", event(3), at=now - 2000)
    lab.build("-s", "paid")
    land(lab, "c", event(4), at=now - 1000)

    # Reading again is for tables with a key; nothing has been touched.
    before = lab.snapshots()
    for text in ("earliest", "2024-05-01T10:00:00"):
        refused = lab.run("build", "--reset-checkpoint", text)
        assert (refused.code, codes(refused)) == (1, ["build-rejected", "reset-duplicates", "reset-duplicates"])
    assert lab.run("build", "-f", "--reset-checkpoint", "now").code == 2
    assert lab.run("build", "--reset-checkpoint", "yesterday").code == 2
    assert lab.snapshots() == before

    # now: file c and the commit with row 3 are a gap, and the build says so; also where the checkpoint is lost.
    shutil.rmtree(lab.state / "paid" / "1" / "checkpoint")
    assert codes(lab.run("build", "-s", "paid")) == ["checkpoint-lost"]
    done = lab.build("--reset-checkpoint", "now", "-s", "paid copy")
    assert codes(done) == ["checkpoint-reset", "checkpoint-reset", "files-skipped"]
    assert "is never read" in done.out
    assert said(done, "files-skipped").startswith("3 files of 'shop.events' skipped")
    assert (lab.ids("paid"), lab.ids("copy")) == ([1, 2, 3], [1, 2])
    state = lab.model_json("paid", 2)
    assert (state["phase"], state["uuid"]) == ("published", lab.table("paid").uuid)  # type: ignore[union-attr]
    assert not (lab.state / "paid" / "1").exists()
    # What lands later is read, also a file that was moved here with the time of its content.
    land(lab, "d", event(5), at=time.time() + 1)
    land(lab, "e", event(6), at=now - 4000)
    assert codes(lab.build("-s", "paid copy")) == []
    assert (lab.ids("paid"), lab.ids("copy")) == ([1, 2, 3, 5, 6], [1, 2, 5, 6])
    table = lab.table("paid")
    assert table is not None
    assert [s.marker("generation") for s in table.history] == ["2", "1", "1"]
    assert {r["status"] for r in map(lab.build("-s", "paid copy").model, ("paid", "copy"))} == {"unchanged"}

    # earliest: a query that keeps state and was changed is computed from the first row, into the same table.
    lab.build("-s", "counts")
    assert counts(lab) == {"paid": 6}
    lab.model("counts", COUNTS.replace("count(*)", "sum(2)"))
    assert codes(lab.run("build", "-s", "counts")) == ["model-changed"]
    assert codes(lab.build("--reset-checkpoint", "earliest", "-s", "counts")) == ["checkpoint-reset"]
    assert counts(lab) == {"paid": 12}
    # A time: files from then on; what was there and has no row now stays.
    text = datetime.fromtimestamp(now - 1500, UTC).isoformat()
    lab.build("--reset-checkpoint", text, "-s", "counts")
    assert counts(lab) == {"paid": 4}
    land(lab, "f", event(7), at=time.time() + 2)
    lab.build("-s", "counts")
    assert counts(lab) == {"paid": 6}

    # What has no place for a time cannot begin there.
    lab.write("sources/clock.yml", CLOCK)
    lab.model("ticks", TICKS)
    assert codes(lab.run("build", "--reset-checkpoint", text, "-s", "ticks")) == ["reset-position"]


@pytest.mark.nightly
def test_a_batch_that_comes_again_passes_over_the_same_files(lab: Lab) -> None:
    lab.model("latest", PAID.replace("]\n", "]\nunique_key: id\n"))
    now = time.time()
    land(lab, "a", event(1), at=now - 3000)
    lab.build()
    land(lab, "b", event(2), at=now + 3600)
    done = lab.build("--reset-checkpoint", "now")
    assert said(done, "files-skipped").startswith("1 file of")
    # Spark's commit of the micro-batch with both files is lost: it is computed again, for its state.
    for name in ("0", ".0.crc"):
        (lab.state / "latest" / "2" / "checkpoint" / "commits" / name).unlink()
    land(lab, "c", event(3), at=now - 4000)
    again = lab.build()
    assert "landing/events/c.json" in said(again, "files-skipped")
    land(lab, "d", event(4), at=now - 5000)
    assert codes(lab.build()) == []
    assert lab.ids("latest") == [1, 2, 4]


LATEST = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'deleted'
MORE---*/
select id, at, kind from {{ source('shop', 'events') }}
"""


@pytest.mark.nightly
def test_a_deleted_key_stays_deleted_beyond_a_reset(lab: Lab) -> None:
    lab.model("latest", LATEST.replace("MORE", ""))
    lab.model("versions", LATEST.replace("MORE", "history: true\n"))
    now = time.time()
    land(lab, "a", event(1, 1), event(2, 1), event(3, 1), at=now - 3000)
    land(lab, "b", *(event(number, 5, "deleted") for number in (1, 3, 4)), at=now - 2000)
    lab.build()
    assert lab.ids("latest") == [2]
    # The deletes are beyond the retention by now, and an older row comes that was not there before.
    (lab.root / "landing" / "events" / "b.json").unlink()
    land(lab, "c", event(2, 2), event(4, 3), at=now - 1000)
    lab.build("--reset-checkpoint", "earliest")
    assert lab.ids("latest") == [2]
    assert [r["id"] for r in lab.rows("versions") if r["is_current"]] == [2]
    (lab.root / "models" / "versions.sql").unlink()
    # Where the state was lost it is the snapshots that tell; a newer row is another matter.
    shutil.rmtree(lab.state / "latest")
    land(lab, "d", event(1, 3), event(3, 9), at=now + 3600)
    lab.build("--reset-checkpoint", "now")
    assert lab.ids("latest") == [2, 3]
    # A table that is built anew knows what its sources have.
    lab.build("-f")
    assert lab.ids("latest") == [1, 2, 3, 4]


TOTALS = """/*---
streams: [shop.events]
output_mode: MODE
---*/
select kind, count(*) as n from {{ source('shop', 'events') }} group by kind
"""


def test_totals_without_event_time_are_never_begun_in_the_middle(lab: Lab) -> None:
    for mode in ("update", "complete"):
        lab.model(f"by_{mode}", TOTALS.replace("MODE", mode))
    land(lab, "a", event(1), event(2, kind="free"), at=time.time() - 3000)
    lab.build()
    before = lab.snapshots()
    for text in ("now", "2024-05-01T10:00:00"):
        done = lab.run("build", "--reset-checkpoint", text)
        assert (done.code, codes(done)) == (1, ["reset-totals"] * 2)
    assert lab.snapshots() == before
    land(lab, "b", event(3), at=time.time() - 2000)
    done = lab.build("--reset-checkpoint", "earliest")
    assert codes(done) == ["checkpoint-reset"] * 2
    for mode in ("update", "complete"):
        assert {row["kind"]: row["n"] for row in lab.rows(f"by_{mode}")} == {"paid": 2, "free": 1}


HOURLY = """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {hour: 'tumbling(at, 1 hour)'}
---*/
select hour.start as hour, sum(amount) as n from {{ source('shop', 'events') }} group by hour
"""


@pytest.mark.nightly
def test_a_table_without_rows_is_reset_as_well(lab: Lab) -> None:
    lab.model("hourly", HOURLY)
    land(lab, "a", event(1, 5, amount=30.0), at=time.time() - 3000)
    lab.build()
    assert lab.rows("hourly") == []
    # One window is open, and would go on as the largest of what was a sum.
    lab.model("hourly", HOURLY.replace("sum(", "max(").replace("1 hour", "30 minutes"))
    assert codes(lab.run("build")) == ["model-changed"]
    assert codes(lab.build("--reset-checkpoint", "now")) == ["checkpoint-reset", "files-skipped"]
    assert not (lab.state / "hourly" / "1").exists()
    assert lab.model_json("hourly", 2)["phase"] == "published"
    land(lab, "b", event(2, 6), event(3, 40), at=time.time() - 2000)
    land(lab, "c", event(4, "12:00"), at=time.time() - 1000)
    assert codes(lab.build()) == []
    assert {(row["hour"].minute, row["n"]) for row in lab.rows("hourly")} == {(0, 1.0), (30, 1.0)}


def test_a_table_that_is_set_back_after_a_reset_is_rejected(lab: Lab) -> None:
    lab.model("paid", PAID)
    now = time.time()
    land(lab, "a", event(1), at=now - 3000)
    lab.build()
    first = lab.snapshot("paid")
    land(lab, "b", event(2), at=now - 2000)
    lab.build()
    lab.build("--reset-checkpoint", "now", "-s", "paid")
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"call lake.system.rollback_to_snapshot('{lab.schema}.paid', {first})")
    land(lab, "c", event(3), at=now + 1000)
    rejected = lab.run("build")
    assert (rejected.code, codes(rejected)) == (1, ["table-rolled-back"])
    assert lab.ids("paid") == [1]
