"""`overwrite: partitions`: a build of a batch table replaces the partitions that its rows fall into."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fault_injection.points import killing
from tests.lab import Lab, event, killed_alone

pytestmark = pytest.mark.spark

DAILY = """/*---
materialized: table
partition_by: [day(at) as d]
overwrite: partitions
{more}---*/
select id, at, amount from {{{{ source('shop', 'events') }}}}
"""
CHECK = "expectations: [{name: small, check: amount < 100, on_fail: quarantine}]\n"


def on_day(number: int, day: int, amount: float = 1.0) -> dict[str, Any]:
    return event(number, f"2024-05-{day:02}T10:00", amount=amount)


def relanded(lab: Lab, *rows: dict[str, Any]) -> None:
    """Only these rows are there to be read."""
    for file in (lab.root / "landing" / "events").glob("*.json"):
        file.unlink()
    lab.land("now", rows)


def rows(lab: Lab) -> list[tuple[int, int, float]]:
    return sorted((r["at"].day, r["id"], r["amount"]) for r in lab.rows("daily"))


def prepare(lab: Lab, more: str = "") -> Lab:
    lab.model("daily", DAILY.format(more=more))
    lab.land("now", [on_day(1, 1), on_day(2, 1), on_day(3, 2)])
    return lab


def test_the_partitions_of_the_new_rows_are_replaced_and_no_other(lab: Lab) -> None:
    prepare(lab, CHECK).build()
    assert rows(lab) == [(1, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]
    before = lab.snapshot("daily")
    assert lab.build().model("daily")["status"] == "unchanged"
    assert lab.snapshot("daily") == before
    relanded(lab, on_day(4, 2), on_day(5, 3), on_day(6, 4, 500.0))
    result = lab.build().model("daily")
    assert (result["rows_out"], result["quarantined"]) == (2, 1)
    kept = [(1, 1, 1.0), (1, 2, 1.0)]
    assert rows(lab) == [*kept, (2, 4, 1.0), (3, 5, 1.0)]
    table = lab.table("daily")
    assert table is not None
    # One commit a build, each of its run.
    assert (len(table.history), len({s.marker("run-id") for s in table.history})) == (2, 2)
    assert {s.marker("model") for s in table.history} == {"daily"}

    # No rows: no partition is touched, nothing is committed, and the table is up to date.
    relanded(lab)
    last = lab.snapshot("daily")
    assert lab.build().model("daily")["rows_out"] == 0
    assert lab.build().model("daily")["status"] == "unchanged"
    assert lab.snapshot("daily") == last

    # Another partitioning is another table.
    relanded(lab, on_day(7, 9))
    lab.model("daily", DAILY.format(more="").replace("day(at) as d", "day(at) as day"))
    failed = lab.run("build")
    assert failed.codes() == ["table-schema"]
    assert rows(lab) == [*kept, (2, 4, 1.0), (3, 5, 1.0)]
    lab.build("-f")
    assert rows(lab) == [(9, 7, 1.0)]
    # A table that was dropped has lost the partitions that are kept.
    assert lab.session is not None
    lab.session.spark.sql(f"drop table lake.{lab.schema}.daily")
    relanded(lab, on_day(8, 10))
    assert lab.run("build").codes() == ["table-missing"]


@pytest.mark.gate
@pytest.mark.parametrize("point", ["written", "appended"])
def test_a_build_that_is_killed_at_its_commit_is_made_again(lab: Lab, point: str) -> None:
    prepare(lab)
    lab.build()
    relanded(lab, on_day(4, 2), on_day(5, 3))
    killed_alone(lab.root, "build", script=killing({"daily": point}))
    old = [(1, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]
    new = [(1, 1, 1.0), (1, 2, 1.0), (2, 4, 1.0), (3, 5, 1.0)]
    assert rows(lab) == (new if point == "appended" else old)
    lab.build()
    assert rows(lab) == new
