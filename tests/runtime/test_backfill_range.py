"""The range of `engine backfill`, and the commits that replace its rows: from texts and numbers alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest

from engine.api import Project
from engine.compile import Model
from engine.errors import EngineError
from engine.lake.table_facts import TableFacts
from engine.runtime.backfill.backfill_model import Day, pieces
from engine.runtime.backfill.backfill_request import TimeRange, check_model, read_range
from tests.lab import EVENTS

COLUMNS = (("id", "int"), ("at", "timestamptz"), ("day", "date"), ("local", "timestamp"))
SELECT = "select id, at, kind from {{ source('shop', 'events') }}"


def model(root: Path, header: str = "streams: [shop.events]", sql: str = SELECT) -> Model:
    for name, text in (
        ("project.yml", "name: lab\n"),
        ("sources/shop.yml", EVENTS),
        ("models/m.sql", f"/*---\n{header}\n---*/\n{sql}\n"),
    ):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project(root).compile().manifest.model("m")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def table(*names: str) -> TableFacts:
    return TableFacts("u", {}, (), tuple(one for one in COLUMNS if not names or one[0] in names))


@pytest.mark.parametrize(
    ("header", "columns", "said", "found"),
    [
        ("streams: [shop.events]", ("id", "at"), None, "at"),
        ("streams: [shop.events]", ("id", "at", "day"), "DAY", "day"),
        ("streams: {shop.events: {watermark: at delay 1 hour}}", (), None, "at"),
        ("streams: [shop.events]\npartition_by: [day(day)]", (), None, "day"),
    ],
)
def test_the_column_is_named_or_the_one_that_has_the_time(
    tmp_path: Path, header: str, columns: tuple[str, ...], said: str | None, found: str
) -> None:
    assert read_range(model(tmp_path, header), table(*columns), said, "2024-05-01", None).column == found


@pytest.mark.parametrize(
    ("columns", "said", "begin", "end", "text"),
    [
        ((), None, "2024-05-01", None, "several columns of dates or times"),
        (("id",), None, "2024-05-01", None, "no columns of dates or times"),
        (("at",), "ad", "2024-05-01", None, "no date or timestamp column 'ad'"),
        (("at",), None, "may", None, "--from 'may' is not a date or a time"),
        (("at",), None, "2024-05-02", "2024-05-02", "is empty"),
        (("day",), None, "2024-05-02T10:00", None, "'day' is a date"),
    ],
)
def test_what_is_no_range_is_said(
    tmp_path: Path, columns: tuple[str, ...], said: str | None, begin: str, end: str | None, text: str
) -> None:
    with pytest.raises(EngineError) as raised:
        read_range(model(tmp_path), table(*columns), said, begin, end)
    assert text in raised.value.diagnostic.message


def test_a_time_with_a_zone_is_of_utc_and_says_so() -> None:
    """A `pre_hook` may set the zone of the session."""
    begin = at("2024-05-01 22:00")
    within = TimeRange("the `at`", "TIMESTAMP", begin, None)
    assert within.condition == "(`the ``at``` >= TIMESTAMP '2024-05-01 22:00:00.000000+00:00')"
    assert TimeRange("d", "DATE", begin, at("2024-05-03 00:00")).condition == (
        "(`d` >= DATE '2024-05-01' AND `d` < DATE '2024-05-03')"
    )


def test_a_time_is_read_in_its_zone(tmp_path: Path) -> None:
    within = read_range(model(tmp_path), table("at"), None, "2024-05-02T00:00+02:00", None)
    assert within.begin == at("2024-05-01 22:00")


WITHIN = TimeRange("at", "TIMESTAMP", at("2024-05-01 06:00"), at("2024-05-06 12:00"))


def days(*rows: tuple[int, int, int] | int) -> list[Day]:
    """A number is a day whose rows are the same."""
    known = [(row, 1, 1) if isinstance(row, int) else row for row in rows]
    same = [isinstance(row, int) for row in rows]
    return [
        Day(date(2024, 5, n), before, after, is_same) for (n, before, after), is_same in zip(known, same, strict=True)
    ]


@pytest.mark.parametrize(
    ("found", "ranges"),
    [
        (days((1, 3, 4), (2, 3, 3), (6, 5, 9)), [("01 06", "03 00", 6, 7), ("06 00", "06 12", 5, 9)]),
        (days((1, 30, 4), (2, 3, 3)), [("01 06", "02 00", 30, 4), ("02 00", "03 00", 3, 3)]),
        (days((1, 1, 2), 2, (3, 0, 2)), [("01 06", "02 00", 1, 2), ("03 00", "04 00", 0, 2)]),
        (days(1, 2), []),
    ],
)
def test_a_commit_has_days_that_follow_on_each_other_and_few_rows(
    found: list[Day], ranges: list[tuple[str, str, int, int]]
) -> None:
    made = [
        (f"{one.begin:%d %H}", f"{one.end:%d %H}", before, after) for one, before, after in pieces(found, WITHIN, 10)
        if one.end is not None
    ]  # fmt: skip
    assert made == ranges


def test_the_last_commit_of_a_range_without_an_end_ends_with_its_day() -> None:
    ((one, _, _),) = pieces(days((2, 1, 1)), replace(WITHIN, end=None), 10)
    assert (one.begin, one.end) == (at("2024-05-02 00:00"), at("2024-05-03 00:00"))


def test_the_last_day_that_python_has_ends_where_the_range_does() -> None:
    last = Day(date.max, 3, 3, is_unchanged=False)
    ((one, *rows),) = pieces((last,), replace(WITHIN, end=None), 10)
    assert (one.begin, one.end, rows) == (at("9999-12-31 00:00"), None, [3, 3])
    ((one, *_),) = pieces((last,), replace(WITHIN, end=at("9999-12-31 12:00")), 10)
    assert one.end == at("9999-12-31 12:00")


@pytest.mark.parametrize(
    ("header", "sql", "text"),
    [
        ("unique_key: id\nstreams: [shop.events]", SELECT, "has a unique_key"),
        ("publish: on_tests_pass\nstreams: [shop.events]", SELECT, "publish: on_tests_pass"),
        ("streams: {shop.events: {watermark: at delay 1 hour, dedup: [id]}}", SELECT, "keeps state"),
        ("materialized: table", SELECT, "is not a streaming table"),
    ],
)
def test_models_whose_rows_are_not_those_of_single_records_are_rejected(
    tmp_path: Path, header: str, sql: str, text: str
) -> None:
    with pytest.raises(EngineError) as raised:
        check_model(model(tmp_path, header, sql))
    assert text in raised.value.diagnostic.message
