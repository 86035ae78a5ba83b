"""Windows over the results of windows, starts before zero, and what a query that loses the event time is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import Diagnostic
from tests.project.small_projects import FROM, HOUR, LATE, clean, findings, only
from tests.project.small_projects import model as named_model

HOURLY = f"with hourly as (select hour, id, count(*) as n {FROM} group by hour, id)\n"
STARTS = HOURLY.replace("select hour,", "select hour.start as begun,")
LONGER = "tumbling(window_time(hour), 1 day)"


def model(windows: str, query: str) -> dict[str, str | bytes]:
    header = f"/*---\nstreams: {{shop.orders: {{watermark: ts delay 1 hour}}}}\nwindows: {{{windows}}}\n---*/\n"
    return {"models/a.sql": header + query}


def told(root: Path, windows: str, query: str) -> Diagnostic:
    return only(findings(root, model(windows, query)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("day", "whole"),
    [
        ("tumbling(window_time(hour), 1 day)", "hour"),
        ("tumbling(hour, 1 day)", "hour"),
        ("tumbling(window_time(w), 1 day)", "w"),
    ],
)
def test_days_of_hours(tmp_path: Path, day: str, whole: str) -> None:
    inner = HOURLY.replace("select hour,", f"select hour as {whole}," if whole != "hour" else "select hour,")
    query = f"{inner}select day.start as begun, id, sum(n) as n from hourly group by day, id"
    made = clean(tmp_path, model(f"hour: 'tumbling(ts, 1 hour)', day: '{day}'", query)).model("a")
    assert "GROUP BY" in made.sql.upper()
    assert [column.type for column in made.columns or ()] == ["timestamp", "string", "bigint"]


def test_a_window_is_over_no_window_that_is_itself(tmp_path: Path) -> None:
    found = told(
        tmp_path, "hour: 'tumbling(hour, 1 hour)'", f"select hour.start as s, count(*) as n {FROM} group by hour"
    )
    assert found.message == "the window 'hour' is over 'hour', which no input has"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (HOURLY + "select date_trunc('day', hour.start) as d, sum(n) as n from hourly group by 1", "agg-key-lost-watermark"),
        (HOURLY + "select cast(hour.end as date) as d, sum(n) as n from hourly group by 1", "agg-key-lost-watermark"),
        (HOURLY + "select hour.start as s, sum(n) as n from hourly group by hour.start", "agg-key-lost-watermark"),
        (HOURLY + "select id, sum(n) as n from hourly group by id", "agg-needs-event-time"),
    ],
)  # fmt: skip
def test_who_aggregates_a_windowed_result_again_is_told_of_window_time(tmp_path: Path, query: str, code: str) -> None:
    found = told(tmp_path, "hour: 'tumbling(ts, 1 hour)'", query)
    assert found.code == code
    assert found.hint == f"Group by window_time(hour), or by a longer window of it: {LONGER}."
    assert "window(" not in found.message.lower()


def test_who_left_the_window_out_of_group_by_is_told_to_add_it(tmp_path: Path) -> None:
    found = told(
        tmp_path, "hour: 'tumbling(ts, 1 hour)'", f"select hour.start as s, id, count(*) as n {FROM} group by id"
    )
    assert found.code == "agg-needs-event-time"
    assert "write: group by hour, id." in found.hint
    assert "window_time" not in found.hint


@pytest.mark.parametrize(
    "query",
    [
        STARTS + "select begun, sum(n) as n from hourly group by begun",
        STARTS + "select date_trunc('day', begun) as d, sum(n) as n from hourly group by 1",
        STARTS + "select id, sum(n) as n from hourly group by id",
    ],
)
def test_who_left_the_window_behind_is_told_to_select_it(tmp_path: Path, query: str) -> None:
    found = told(tmp_path, "hour: 'tumbling(ts, 1 hour)'", query)
    assert found.hint == (
        f"Select the window itself in the inner query ('hour', not only 'hour.start'), and group by a longer window of it: {LONGER}."
    )
    assert "window(" not in found.message.lower()


def test_two_windows_in_one_select_and_update_mode_are_told_of_it_too(tmp_path: Path) -> None:
    windows = "hour: 'tumbling(ts, 1 hour)', day: 'tumbling(ts, 1 day)'"
    found = told(tmp_path, windows, f"select hour, day, count(*) as n {FROM} group by hour, day")
    assert (found.code, LONGER in found.hint) == ("agg-two-windows", True)
    query = f"{HOURLY}select window_time(hour) as h, sum(n) as n from hourly group by window_time(hour)"
    files = {
        name: str(text).replace("windows:", "output_mode: update\nunique_key: h\nwindows:")
        for name, text in model("hour: 'tumbling(ts, 1 hour)'", query).items()
    }
    chained = [finding for finding in findings(tmp_path, files) if finding.code == "chain-mode"]
    assert ["window_time(hour)" in finding.hint for finding in chained] == [True]


@pytest.mark.parametrize(
    ("window", "sql"),
    [
        ("tumbling(ts, 1 hour, -15 minutes)", "window(ts, '1 hours', '1 hours', '-15 minutes')"),
        ("sliding(ts, 10 minutes, 5 minutes, '-1 minute')", "window(ts, '10 minutes', '5 minutes', '-1 minutes')"),
    ],
)
def test_a_start_before_zero(tmp_path: Path, window: str, sql: str) -> None:
    query = f"select w.start as s, count(*) as n {FROM} group by w"
    quoted = window.replace("'", "''")
    assert clean(tmp_path, model(f"w: '{quoted}'", query)).model("a").windows["w"].sql == sql


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("tumbling(ts, 1 hour, -1 hour)", "the start is not shorter than the slide"),
        ("sliding(ts, 1 hour, 10 minutes, -10 minutes)", "the start is not shorter than the slide"),
        ("tumbling(ts, -1 hour)", "'-1 hour' is not a duration"),
        ("sliding(ts, 1 hour, -10 minutes)", "'-10 minutes' is not a duration"),
        ("session(ts, -5 minutes)", "'-5 minutes' is not a duration"),
        ("tumbling(ts, 1 hour, --5 minutes)", "'--5 minutes' is not a duration"),
    ],
)
def test_other_lengths_are_not_negative(tmp_path: Path, window: str, message: str) -> None:
    query = f"select w.start as s, count(*) as n {FROM} group by w"
    assert message in {finding.message for finding in findings(tmp_path, model(f"w: '{window}'", query))}


@pytest.mark.slow
def test_having_does_not_take_the_window_of_the_group_for_another_one(tmp_path: Path) -> None:
    query = f"select id, count(*) as n {FROM} group by window(ts, '1 day'), id having max(hour.end) is not null"
    found = findings(tmp_path, model("hour: 'tumbling(ts, 1 hour)'", query))
    assert "agg-two-windows" in [one.code for one in found]


BY_ID = f"select id, count(*) as n {FROM} group by id"
UNGROUPED = [
    f"{BY_ID} having hour.start is not null",
    f"{BY_ID} having hour is not null",
    f"{BY_ID} having max(hour.start) is not null",
    f"{BY_ID} order by hour",
    f"{BY_ID} order by max(hour.end)",
    f"select count(*) as n {FROM} having hour.end is not null",
    f"select date_trunc('month', hour.start) as m, count(*) as n {FROM} group by 1 having date_trunc('month', hour.start) > '2026'",
    f"select hour.start as s, count(*) as n {FROM} group by id",
    f"select window(ts, '1 hour').start as s, count(*) as n {FROM} group by id order by hour",
]  # fmt: skip
GROUPED = [
    f"{BY_ID}, hour having hour.start is not null order by hour.end",
    f"{BY_ID}, hour having max(hour.start) is not null",
    f"{BY_ID}, window(ts, '1 hour') having hour.end is not null",
    f"select hour.start as s, id, count(*) as n {FROM} group by all order by hour",
    f"select hour.start as hour, count(*) as n {FROM} group by 1 having hour > '2026' order by hour",
    f"select date_trunc('month', hour.start) as m, count(*) as n {FROM} group by 1 having m > '2026'",
    f"select id, max(hour.start) as h {FROM} group by id having h > '2026'",
    f"select id {FROM} order by hour.start",
]


def of_tables(queries: list[str]) -> dict[str, str | bytes]:
    """A model per query over tables: there Spark itself would report only some of them, and late."""
    models = (named_model(HOUR, query, name=f"m{number}") for number, query in enumerate(queries))
    return {name: text for one in models for name, text in one.items()}


def test_a_window_behind_the_groups_is_one_of_their_keys(tmp_path: Path) -> None:
    found = findings(tmp_path, of_tables(UNGROUPED))
    assert {(one.node, one.code) for one in found} == {(f"m{n}", "agg-not-grouped") for n in range(len(UNGROUPED))}


def test_a_grouped_window_is_used_behind_the_groups(tmp_path: Path) -> None:
    clean(tmp_path, of_tables(GROUPED))


@pytest.mark.parametrize("header", ["", LATE])
def test_having_has_the_window_of_the_group_in_tables_too(tmp_path: Path, header: str) -> None:
    windows = HOUR.replace("}", ", day: 'tumbling(ts, 1 day)'}")
    query = f"select day.start as d, count(*) as n {FROM} group by day having hour.end > '2026'"
    assert only(findings(tmp_path, named_model(header + windows, query))).code == "agg-two-windows"
