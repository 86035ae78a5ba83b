"""Snapshots that expire at the end of a build: the old ones that neither their model nor a reader needs."""

from __future__ import annotations

import json

import pytest

from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.runtime.lifecycle import expire_snapshots
from tests.lab import Lab

HOUR = 60 * 60 * 1000
AGE = "history.expire.max-snapshot-age-ms"

# A commit for each file; any snapshot is old.
PAID = """/*---
streams:
  shop.events: {max_files_per_trigger: 1}
table_properties: {history.expire.min-snapshots-to-keep: "1", history.expire.max-snapshot-age-ms: "1"}
---*/
select id, amount from {{ source('shop', 'events') }}
"""
COPY = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}\n"


def land(lab: Lab, first: int, count: int) -> None:
    for number in range(first, first + count):
        lab.land(f"{number:03}", [{"id": number, "at": "2024-05-01T10:00:00Z", "amount": 1.0}])


@pytest.mark.spark
def test_old_snapshots_expire_after_their_readers_have_read_them(lab: Lab) -> None:
    lab.model("paid", PAID)
    land(lab, 1, 1)
    lab.model("copy", COPY)
    lab.build()
    land(lab, 2, 22)

    lab.build("-s", "paid")
    paid = lab.table("paid")
    assert paid is not None
    assert len(paid.history) == 23, "the stream of copy has not read them"

    assert lab.build("-s", "copy").model("copy")["rows_in"] == 22
    land(lab, 24, 1)
    lab.build()
    paid = lab.table("paid")
    assert paid is not None
    assert len(paid.history) == 1
    for name in ("paid", "copy"):
        assert sorted(row["id"] for row in lab.rows(name)) == list(range(1, 25))
    assert lab.build().model("paid")["status"] == "unchanged"

    # Another program has set what Iceberg cannot read: the run is not undone by what comes after it.
    lab.session.spark.sql(f"alter table lake.{lab.schema}.copy set tblproperties ('{AGE}' = '5 days')")  # type: ignore[union-attr]
    land(lab, 25, 1)
    done = lab.build()
    assert "maintenance-skipped" in done.codes(), done.text
    results = json.loads((lab.root / "target/run_results.json").read_text())["results"]
    assert {r["status"] for r in results} == {"success"}
    assert sorted(row["id"] for row in lab.rows("copy")) == list(range(1, 26))


def table(count: int, **properties: str) -> TableFacts:
    """A table with a commit a minute, the newest at minute `count`."""
    history = tuple(SnapshotFacts(n, n - 1 or None, "append", {}, n * 60_000) for n in range(count, 0, -1))
    return TableFacts("a uuid", properties, history, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("snapshots", "properties", "minutes_kept"),
    [
        pytest.param(900, {}, 5 * 24 * 60, id="the age that Iceberg gives them"),
        pytest.param(5_000, {}, 999, id="a thousand are enough"),
        pytest.param(5_000, {AGE: str(48 * HOUR)}, 48 * 60, id="the age that the table names, and no count"),
    ],
)
def test_how_long_snapshots_stay(snapshots: int, properties: dict[str, str], minutes_kept: int) -> None:
    now = snapshots * 60_000
    before = expire_snapshots._allowed_by_age(table(snapshots, **properties), now)
    assert now - before == minutes_kept * 60_000


def test_a_snapshot_younger_than_an_hour_is_not_old() -> None:
    history = tuple(SnapshotFacts(n, n - 1 or None, "append", {}, n * 1000) for n in range(5_000, 0, -1))
    now = 5_000 * 1000
    assert expire_snapshots._allowed_by_age(TableFacts("a uuid", {}, history, ()), now) == now - HOUR
