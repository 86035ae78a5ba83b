"""The example of the docs, days from hourly windows, and windows that start before zero, as Spark computes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.lab import REPOSITORY, Lab

pytestmark = pytest.mark.spark

SHIFTED = """/*---
streams: {shop.events: {watermark: at delay 10 minutes}}
windows: {w: 'tumbling(at, 1 hour, -15 minutes)'}
---*/
select w.start as begun, count(*) as n from {{ source('shop', 'events') }} group by w
"""


def example() -> str:
    """The model under 'Windows over windows'."""
    page = (REPOSITORY / "docs" / "event-time.md").read_text(encoding="utf-8")
    section = page.partition("## Windows over windows\n")[2].partition("\n## ")[0]
    return "".join(line[4:] + "\n" for line in section.splitlines() if line.startswith("    "))


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2024, 5, day, hour, minute, tzinfo=UTC)


def event(day: int, hour: int, kind: str, minute: int = 30) -> dict[str, object]:
    return {"id": 1, "at": at(day, hour, minute).isoformat(), "kind": kind, "amount": 2.0}


def test_days_of_hours_and_a_start_before_zero(lab: Lab) -> None:
    lab.model("daily", example())
    lab.model("shifted", SHIFTED)
    lab.land("a", [event(1, 10, "paid"), event(1, 10, "paid", 50), event(1, 23, "paid", 59), event(2, 0, "paid", 1)])
    lab.build()
    lab.land("b", [event(3, 5, "paid")])
    lab.build()
    lab.land("c", [event(4, 5, "paid")])
    lab.build()
    rows = sorted((r["day_start"], r["kind"], r["events"], r["most_in_an_hour"]) for r in lab.rows("daily"))
    # The hour that ends at midnight is of the day that it ends.
    assert rows == [(at(1, 0), "paid", 3, 2), (at(2, 0), "paid", 1, 1), (at(3, 0), "paid", 1, 1)]
    shifted = sorted((r["begun"], r["n"]) for r in lab.rows("shifted"))
    assert shifted == [(at(1, 9, 45), 1), (at(1, 10, 45), 1), (at(1, 23, 45), 2), (at(3, 4, 45), 1)]
