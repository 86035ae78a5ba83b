"""`--reset-checkpoint`: a new checkpoint over the rows that are there, from where the user says."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.lab import EVENTS, Lab, Result

pytestmark = pytest.mark.spark

PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"
COPY = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n"
COUNTS = """/*---
streams: [shop.events]
output_mode: update
unique_key: kind
---*/
select kind, count(*) as n from {{ source('shop', 'events') }} group by kind
"""


def event(number: int, kind: str = "paid") -> dict[str, Any]:
    return {"id": number, "at": "2024-05-01T10:00:00Z", "kind": kind, "amount": 1.0}


def land(lab: Lab, name: str, *rows: Mapping[str, Any], at: float) -> None:
    path = lab.land(name, rows)
    os.utime(path, (at, at))


def ids(lab: Lab, name: str) -> list[int]:
    return sorted(row["id"] for row in lab.rows(name))


def codes(result: Result) -> list[str]:
    """What was found, without what compile says of the counts."""
    return [code for code in result.codes() if code != "state-agg-no-event-time"]


def counts(lab: Lab) -> dict[str, int]:
    return {row["kind"]: row["n"] for row in lab.rows("counts")}


def test_the_three_forms(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS)
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
    for said in ("earliest", "2024-05-01T10:00:00"):
        refused = lab.run("build", "--reset-checkpoint", said)
        assert (refused.code, codes(refused)) == (1, ["reset-repeats"] * 2)
    assert lab.run("build", "-f", "--reset-checkpoint", "now").code == 2
    assert lab.run("build", "--reset-checkpoint", "yesterday").code == 2
    assert lab.snapshots() == before

    # now: file c and the commit with row 3 are a gap, and the build says so; also where the checkpoint is lost.
    shutil.rmtree(lab.state / "paid" / "1" / "checkpoint")
    assert codes(lab.run("build", "-s", "paid")) == ["checkpoint-lost"]
    done = lab.build("--reset-checkpoint", "now", "-s", "paid copy")
    assert codes(done) == ["checkpoint-reset"] * 2
    assert "is never read" in done.out
    assert (ids(lab, "paid"), ids(lab, "copy")) == ([1, 2, 3], [1, 2])
    state = lab.model_json("paid", 2)
    assert (state["phase"], state["uuid"]) == ("published", lab.table("paid").uuid)  # type: ignore[union-attr]
    assert not (lab.state / "paid" / "1").exists()
    land(lab, "d", event(5), at=time.time() + 1)
    assert codes(lab.build("-s", "paid copy")) == []
    assert (ids(lab, "paid"), ids(lab, "copy")) == ([1, 2, 3, 5], [1, 2, 5])
    table = lab.table("paid")
    assert table is not None
    assert [s.marker("generation") for s in table.history] == ["2", "1", "1"]
    assert {r["status"] for r in map(lab.build("-s", "paid copy").model, ("paid", "copy"))} == {"unchanged"}

    # earliest: a query that keeps state and was changed is computed from the first row, into the same table.
    lab.build("-s", "counts")
    assert counts(lab) == {"paid": 5}
    lab.model("counts", COUNTS.replace("count(*)", "2 * count(*)"))
    assert codes(lab.run("build", "-s", "counts")) == ["model-changed"]
    assert codes(lab.build("--reset-checkpoint", "earliest", "-s", "counts")) == ["checkpoint-reset"]
    assert counts(lab) == {"paid": 10}
    # A time: files from then on; what was there and has no row now stays.
    text = datetime.fromtimestamp(now - 1500, UTC).isoformat()
    lab.build("--reset-checkpoint", text, "-s", "counts")
    assert counts(lab) == {"paid": 4}
    land(lab, "e", event(6), at=time.time() + 2)
    lab.build("-s", "counts")
    assert counts(lab) == {"paid": 6}
