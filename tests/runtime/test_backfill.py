"""`engine backfill`: rows of a stateless stream are computed again from the input that it has read."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lake.table_facts import TableFacts
from tests.lab import EVENTS, Lab, Result, event

pytestmark = pytest.mark.spark

STREAM = """/*---
streams: [shop.events]
partition_by: [day(at)]
---*/
select id, at, kind, AMOUNT as amount from {{ source('shop', 'events') }}WHERE
"""
OLD, NEW = "amount", "amount * 10"
READER = "/*---\nstreams: [paid]\n---*/\nselect id, at, amount from {{ ref('paid') }}\n"
RANGE = ("--from", "2024-05-02", "--to", "2024-05-04")


def text(amount: str, where: str = "", stream: str = STREAM) -> str:
    return stream.replace("AMOUNT", amount).replace("WHERE", f"\nwhere {where}" if where else "")


def shop(lab: Lab, model: str = STREAM) -> None:
    lab.write("sources/shop.yml", EVENTS)
    lab.model("paid", text(OLD, stream=model))


def days(*ids: int, amount: float = 1.0) -> list[dict[str, Any]]:
    """Two events of each of the first days of May, by its number."""
    return [event(10 * day + n, f"2024-05-{day:02}T10:0{n}", amount=amount) for day in ids for n in (0, 1)]


def backfill(lab: Lab, *arguments: str, model: str = "paid", code: int = 0) -> Result:
    result = lab.run("backfill", model, *(arguments or (*RANGE, "--yes")))
    assert result.code == code, result.text
    return result


def amounts(lab: Lab, name: str = "paid") -> dict[int, float]:
    rows = lab.rows(name)
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["amount"] for row in sorted(rows, key=lambda row: row["id"])}


def facts(lab: Lab, name: str) -> TableFacts:
    table = lab.table(name)
    assert table is not None
    return table


def replaced(result: Result) -> list[tuple[int, int]]:
    return [(e["rows_before"], e["rows_after"]) for e in result.events if e["event"] == "RowsReplaced"]


def test_a_range_is_computed_again_and_the_stream_continues(lab: Lab) -> None:
    """Input of the range that has landed and was not read stays unread: the stream brings it later, once."""
    shop(lab)
    lab.land("a", days(1, 2))
    lab.build()
    lab.land("b", days(3, 4))
    lab.build()
    lab.model("paid", text(NEW))
    lab.build()
    lab.land("c", [event(99, "2024-05-02T23:00")])
    before, state = facts(lab, "paid"), lab.model_json("paid")
    looked = backfill(lab, *RANGE, "--dry-run")
    assert [e["rows_before"] for e in looked.events if e["event"] == "DayCompared"] == [2, 2]
    assert facts(lab, "paid").snapshot == before.snapshot
    assert replaced(backfill(lab)) == [(4, 4)]
    assert amounts(lab) == {10: 1, 11: 1, 20: 10, 21: 10, 30: 10, 31: 10, 40: 1, 41: 1}
    assert lab.model_json("paid") == state
    assert replaced(backfill(lab)) == []
    lab.build()
    assert amounts(lab) == {10: 1, 11: 1, 20: 10, 21: 10, 30: 10, 31: 10, 40: 1, 41: 1, 99: 10}
    assert lab.build().model("paid")["status"] == "unchanged"


def test_streams_of_the_table_keep_their_rows_and_continue(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER)
    lab.model("total", "select sum(amount) as amount, 0 as id from {{ ref('paid') }}\n")
    lab.land("a", days(1, 2, 3))
    lab.build()
    lab.model("paid", text(NEW))
    lab.build()
    result = backfill(lab)
    assert {e["node"] for e in result.events if e["event"] == "ReaderFound"} == {"copy", "total"}
    lab.land("b", days(4))
    lab.build()
    assert set(amounts(lab, "copy").items()) == {(i, 1) for i in (10, 11, 20, 21, 30, 31)} | {(40, 10), (41, 10)}
    assert amounts(lab, "total") == {0: 62}
    assert lab.build().model("copy")["status"] == "unchanged"
    # The stream of the table is computed again from the rows that it has read, as they are now.
    backfill(lab, model="copy")
    assert amounts(lab, "copy") == amounts(lab)
