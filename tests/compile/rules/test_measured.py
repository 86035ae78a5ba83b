"""Bounds, windows, joins and groups: the verdict of Spark, and ours."""

from __future__ import annotations

import pytest

from engine.compile.rules import check_text
from tests.compile.rules.measured import REFUSED, RUNS
from tests.fuzz.relations import RELATIONS


def errors(sql: str) -> list[str]:
    return [finding.code for finding in check_text(sql, RELATIONS, "append") if finding.is_error]


@pytest.mark.parametrize("sql", RUNS)
def test_what_spark_runs_is_no_fault(sql: str) -> None:
    assert errors(sql) == []


@pytest.mark.parametrize("sql", REFUSED)
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
