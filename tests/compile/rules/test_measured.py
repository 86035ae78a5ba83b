"""Bounds, windows, joins and groups: the verdict of Spark, and ours."""

from __future__ import annotations

import pytest

from engine.compile.streaming.check_query import check_text
from tests.compile.queries import STREAMS
from tests.fuzz.relations import RELATIONS, STRICTER


def errors(sql: str) -> list[str]:
    found = check_text(sql, RELATIONS, "append")
    return [finding.code for finding in found if finding.is_error and finding.code not in STRICTER]


@pytest.mark.parametrize("sql", STREAMS.accepted)
def test_what_spark_runs_is_no_fault(sql: str) -> None:
    assert errors(sql) == []


@pytest.mark.parametrize("sql", STREAMS.refused_texts)
def test_what_spark_refuses_is_a_fault(sql: str) -> None:
    assert errors(sql) != []


@pytest.mark.parametrize(
    ("groups", "warned"),
    [
        ("window(ts, '10 minutes'), rollup(id)", False),
        ("window(ts, '10 minutes'), cube(id, v)", False),
        ("ts, rollup(id)", False),
        ("grouping sets ((window(ts, '10 minutes')), (window(ts, '10 minutes'), id))", False),
        ("rollup(window(ts, '10 minutes'), id)", True),
        ("cube(window(ts, '10 minutes'), id)", True),
        ("window(ts, '10 minutes'), id with rollup", True),
    ],
)
def test_groups_without_event_time_are_those_that_rollup_and_cube_make(groups: str, warned: bool) -> None:
    found = check_text(f"select count(*) n from wa group by {groups}", RELATIONS, "append")
    assert ("agg-null-groups" in {finding.code for finding in found}) == warned


@pytest.mark.parametrize(
    ("lengths", "code"),
    [
        ("'7 days', '1 second'", "window-many"),
        ("'1 hour', '1 minute'", ""),
        ("'7 days'", "window-week"),
        ("'1 week', '1 week'", "window-week"),
        ("'7 days', '7 days', '4 days'", ""),
        ("'7 days', '7 days', '0 days'", ""),
        ("'1 day'", ""),
    ],
)
def test_windows_that_are_seldom_meant_are_warnings(lengths: str, code: str) -> None:
    sql = f"select window(ts, {lengths}) w, count(*) n from wa group by window(ts, {lengths})"
    found = check_text(sql, RELATIONS, "append")
    assert [finding.code for finding in found] == ([code] if code else [])
    assert not any(finding.is_error for finding in found)


def test_hints_name_what_is_in_the_way() -> None:
    bound = "select wa.id from wa left join wb on wa.id = wb.id and wb.ts <= {} "
    for end in ("dateadd(minute, 10, wa.ts)", "timestampadd(minute, 10, wa.ts)"):
        (found,) = check_text(bound.format(end), RELATIONS, "append")
        assert "dateadd()" in found.hint
    (found,) = check_text("select ts, max(distinct v) m from wa group by ts", RELATIONS, "append")
    assert found.hint == "Remove DISTINCT: max() is the same without it."
