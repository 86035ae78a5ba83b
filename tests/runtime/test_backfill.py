"""`engine backfill`: rows of a stateless stream are computed again from the input that it has read."""

from __future__ import annotations

import os
from typing import Any

import pytest

from engine.lake.table_facts import TableFacts
from tests.fault_injection.points import kill, reached
from tests.lab import REPOSITORY, Lab, Result, event

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


@pytest.mark.nightly
def test_rows_of_times_that_python_does_not_have(lab: Lab) -> None:
    """Milliseconds that were read as seconds: a range without an end has them, too."""
    far = STREAM.replace("id, at,", "id, if(kind = 'far', timestamp_seconds(1716000000000 + id), at) as at,")
    shop(lab, far)
    lab.land("a", [*days(1, 2), event(90, "2024-05-02T10:00", "far"), event(91, "2024-05-02T10:00", "far")])
    lab.build()
    lab.model("paid", text(NEW, stream=far))
    lab.build()
    assert replaced(backfill(lab, "--from", "2024-05-02", "--yes")) == [(4, 4)]
    found = lab.session.spark.sql(f"select id, amount from lake.{lab.schema}.paid order by id").collect()  # type: ignore[union-attr]
    assert [tuple(row) for row in found] == [(10, 1), (11, 1), (20, 10), (21, 10), (90, 10), (91, 10)]
    assert lab.build().model("paid")["status"] == "unchanged"


POINTS = ["backfilling", "committing", "checked", "backfilled", "reader moved"]


@pytest.mark.gate
@pytest.mark.parametrize("point", POINTS)
def test_a_backfill_that_is_killed_is_finished_by_the_same_command(lab: Lab, point: str) -> None:
    """Two commits; a build in between works, and the stream of the table has each of its rows once."""
    shop(lab)
    lab.model("copy", READER)
    lab.land("a", days(1, 2, 3))
    lab.build()
    lab.model("paid", text(NEW))
    lab.build()
    command = (*RANGE, "--yes", "--rows-per-commit", "2")
    with reached(point, kill, 1) as seen:
        assert lab.run("backfill", "paid", *command).code == 2
    assert seen == ["paid"]
    lab.land("b", days(4))
    result = lab.run("build")
    if point == "backfilled":
        # Its stream is before a commit that it cannot read: the command moves it.
        assert "upstream-rewritten" in result.codes()
        assert "engine backfill paid" in result.text
        assert set(lab.run("backfill", "paid", *command).codes()) <= {"backfill-unread"}
        lab.build()
    else:
        assert result.code == 0, result.text
    backfill(lab, *command)
    assert amounts(lab) == {10: 1, 11: 1, 20: 10, 21: 10, 30: 10, 31: 10, 40: 10, 41: 10}
    lab.land("c", days(5))
    lab.build()
    assert amounts(lab, "copy") == {**dict.fromkeys((10, 11, 20, 21, 30, 31), 1), **dict.fromkeys((40, 41, 50, 51), 10)}


@pytest.mark.nightly
def test_rows_that_only_come_or_only_go_are_no_append_and_no_delete_to_a_stream(lab: Lab) -> None:
    """One file holds rows of several days: those outside of the range stay."""
    plain = STREAM.replace("partition_by: [day(at)]\n", "")
    shop(lab, plain)
    lab.model("copy", READER)
    lab.model("paid", text(OLD, "amount < 5", plain))
    lab.land("a", [*days(1, 2), *days(3, amount=9.0), {**event(7, 1), "at": None}])
    lab.build()
    assert lab.ids("paid") == [7, 10, 11, 20, 21]
    lab.model("paid", text(OLD, "amount > 5", plain))
    lab.build()
    few = backfill(lab, code=1)
    assert few.codes() == ["backfill-rejected"]
    assert "2024-05-02 has 2, and would have 0" in few.text
    done = backfill(lab, *RANGE, "--yes", "--accept", "fewer-rows", "--rows-per-commit", "1")
    assert replaced(done) == [(2, 0), (0, 2)]
    assert lab.ids("paid") == [7, 10, 11, 30, 31]
    lab.land("b", days(5, amount=9.0))
    lab.build()
    assert lab.ids("copy") == [7, 10, 11, 20, 21, 50, 51]
    # Without the range of times nothing is left, and rows come into an empty table.
    lab.model("paid", text(OLD, "amount > 50", plain))
    lab.build()
    whole = ("--from", "2024-01-01", "--yes", "--accept", "fewer-rows")
    backfill(lab, *whole)
    assert lab.ids("paid") == [7]
    lab.model("paid", text(OLD, "amount > 5", plain))
    lab.build()
    backfill(lab, *whole)
    lab.build()
    assert lab.ids("paid") == [7, 30, 31, 50, 51]
    assert lab.ids("copy") == [7, 10, 11, 20, 21, 50, 51]


def test_what_cannot_be_computed_again_is_rejected_and_nothing_is_changed(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER)
    landed = lab.land("a", days(1, 2, 3))
    lab.build()
    lab.model("paid", text(NEW))
    assert "has changed since it was built" in backfill(lab, code=1).text
    lab.build("-s", "paid")
    lab.land("b", days(2, amount=2.0))
    lab.build("-s", "paid")
    assert backfill(lab, code=1).codes() == ["backfill-unread"]
    lab.build()
    before, content = facts(lab, "paid").snapshot, landed.read_text()
    times = landed.stat().st_mtime
    landed.unlink()
    gone = backfill(lab, code=1)
    assert gone.codes() == ["backfill-rejected"]
    assert "1 file of 'shop.events' changed or gone since they were read: landing/events/a.json" in gone.text
    landed.write_text(content)
    assert backfill(lab, code=1).codes() == ["backfill-rejected"]
    os.utime(landed, (times, times))
    assert backfill(lab, "--from", "yesterday", code=2).codes() == ["usage"]
    assert backfill(lab, *RANGE, "--column", "idd", code=2).codes() == ["unknown-column"]
    assert facts(lab, "paid").snapshot == before
    assert replaced(backfill(lab, *RANGE, "--column", "at", "--yes")) == [(6, 6)]
    lab.build("--reset-checkpoint", "now", "-s", "paid")
    assert "was reset" in backfill(lab, code=1).text


CHECKED = STREAM.replace(
    "partition_by",
    "expectations:\n  - {name: small, check: amount < 50, on_fail: quarantine}\n"
    "  - {name: known, check: id > 0, on_fail: fail}\npartition_by",
)


@pytest.mark.nightly
def test_rows_that_fail_an_expectation_are_left_out_and_counted(lab: Lab) -> None:
    shop(lab, CHECKED)
    lab.land("a", [*days(1, 2), *days(3, amount=9.0)])
    lab.build()
    lab.model("paid", text(NEW, stream=CHECKED))
    lab.build()
    backfill(lab, *RANGE, "--yes", "--accept", "fewer-rows")
    assert amounts(lab) == {10: 1, 11: 1, 20: 10, 21: 10}
    lab.model("paid", text("amount", stream=CHECKED).replace("select id,", "select -id as id,"))
    lab.build()
    assert backfill(lab, code=1).codes() == ["expectation-failed"]


def test_a_table_that_was_read_when_it_had_fewer_rows_is_read_as_it_was(lab: Lab) -> None:
    """Rows of a model that came after the stream of it has ended are unread, as files are."""
    shop(lab)
    lab.model("copy", READER)
    lab.land("a", days(1, 2))
    lab.build()
    lab.model("copy", READER.replace("amount from", "amount * 2 as amount from"))
    lab.build()
    lab.land("b", [event(99, "2024-05-02T12:00")])
    lab.build("-s", "paid")
    backfill(lab, model="copy")
    assert amounts(lab, "copy") == {10: 1, 11: 1, 20: 2, 21: 2}
    lab.build()
    assert amounts(lab, "copy") == {10: 1, 11: 1, 20: 2, 21: 2, 99: 2}


@pytest.mark.nightly
def test_the_commands_of_its_page(lab: Lab) -> None:
    lab.model("orders", text(OLD))
    lab.land("a", days(1, 2, 3))
    lab.build()
    lab.model("orders", text(NEW))
    page = (REPOSITORY / "docs" / "how-to" / "backfill.md").read_text(encoding="utf-8")
    lines = page.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(lines) == 3
    for line in lines:
        result = lab.run(*line.removeprefix("engine ").split())
        assert result.code == 0, result.text
    assert amounts(lab, "orders") == {10: 1, 11: 1, 20: 10, 21: 10, 30: 10, 31: 10}
