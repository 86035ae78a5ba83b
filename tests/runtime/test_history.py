"""`history: true`: every version of a key, from when to when it was the newest, whatever the order of arrival."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

SOURCE = sources_yaml(changes={"max_files_per_trigger": 1, "schema": "id int, op string, v int, at timestamp"})
HISTORY = """/*---
streams: [shop.changes]
unique_key: id
sequence_by: at
history: true
delete_when: op = 'd'
exclude: [op]
---*/
select id, v, op, at from {{ source('shop', 'changes') }}
"""
Row = dict[str, Any]
START = datetime(2024, 5, 1, tzinfo=UTC)


def change(number: int | None, minute: int, v: int, op: str = "u") -> Row:
    return {"id": number, "op": op, "v": v, "at": START + timedelta(minutes=minute)}


def land(lab: Lab, batches: Iterable[list[Row]]) -> None:
    for batch in batches:
        number = len(list(lab.root.glob("landing/changes/*")))
        lab.land(f"{number:03}", [{**row, "at": row["at"].isoformat()} for row in batch], "landing/changes")


def golden(batches: Iterable[list[Row]]) -> list[tuple[Any, ...]]:
    """The versions of each key in order; of two changes of one time the first counts, within a batch the greater."""
    points: dict[Any, dict[datetime, Row]] = {}
    for batch in batches:
        fresh: dict[tuple[Any, datetime], Row] = {}
        for row in batch:
            place = row["id"], row["at"]
            if place not in fresh or (row["v"], row["op"]) > (fresh[place]["v"], fresh[place]["op"]):
                fresh[place] = row
        for (key, at), row in fresh.items():
            points.setdefault(key, {}).setdefault(at, row)
    found = []
    for key, known in points.items():
        times = sorted(known)
        for at, end in zip(times, [*times[1:], None], strict=True):
            if known[at]["op"] != "d":
                found.append((key, known[at]["v"], at, end, end is None))
    return sorted(found, key=str)


def versions(lab: Lab) -> list[tuple[Any, ...]]:
    rows = lab.rows("versions")
    return sorted(((r["id"], r["v"], r["valid_from"], r["valid_to"], r["is_current"]) for r in rows), key=str)


@pytest.mark.nightly
def test_late_changes_split_the_interval_they_fall_into(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCE)
    lab.model("versions", HISTORY)
    lab.model("current", "select id, v, valid_from, valid_to from {{ ref('versions') }} where is_current")
    rng = random.Random(5)
    batches = [
        [change(1, 10, 100), change(1, 30, 300)],
        [change(1, 20, 200)],
        # A delete cuts an interval, also one that comes late, and one that comes before what it deletes.
        [change(1, 25, 0, "d"), change(2, 50, 0, "d")],
        [change(2, 40, 1), change(2, 60, 2), change(2, 50, 3)],
        [change(1, 40, 0, "d"), change(1, 35, 350)],
    ]
    land(lab, batches)
    result = lab.build().model("versions")
    minutes = [
        (key, v, (begin - START).seconds // 60, end and (end - START).seconds // 60)
        for key, v, begin, end, _ in versions(lab)
    ]
    assert minutes == [
        (1, 100, 10, 20), (1, 200, 20, 25), (1, 300, 30, 35), (1, 350, 35, 40), (2, 1, 40, 50), (2, 2, 60, None),
    ]  # fmt: skip
    assert versions(lab) == golden(batches)
    assert set(lab.rows("versions")[0]) == {"id", "v", "at", "valid_from", "valid_to", "is_current"}
    assert result["rows_updated"] > 0
    more = [
        [
            change(rng.choice([1, 2, 3, None]), rng.randrange(120), rng.randrange(1000), rng.choice("uuud"))
            for _ in range(15)
        ]
        for _ in range(2)
    ]
    land(lab, more)
    lab.build()
    assert versions(lab) == golden([*batches, *more])
    current = [(r["id"], r["v"], r["valid_from"], r["valid_to"], True) for r in lab.rows("current")]
    assert sorted(current, key=str) == [row for row in versions(lab) if row[-1]]
    before = lab.snapshots()
    lab.build()
    assert lab.snapshots() == before
