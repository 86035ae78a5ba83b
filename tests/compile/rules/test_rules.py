"""The fixtures: each rule with what it accepts and what it refuses."""

from __future__ import annotations

import pytest

from engine.compile.columns import InputColumns
from engine.compile.streaming.check_query import check_text
from tests.compile.rules.cases import Case, read_cases, shown
from tests.fuzz.relations import COLUMNS, RELATIONS, relation

CASES = read_cases()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} ({case.mode})")
def test_fixture(case: Case) -> None:
    found = check_text(case.sql, RELATIONS, case.mode)  # type: ignore[arg-type]
    assert sorted(shown(f, case.sql) for f in found) == sorted(case.expected)
    assert [f.offset for f in found] == sorted(f.offset for f in found)


def _errors(sql: str, relations: dict[str, InputColumns]) -> list[str]:
    return [f.code for f in check_text(sql, relations, "append") if f.is_error]


def test_unknown_columns_of_a_stream_are_no_fault() -> None:
    facts = {"e": relation(event_time="at")}
    assert _errors("select window(at, '5 minutes') w, a, count(b.c) n from e group by 1, 2", facts) == []
    assert _errors("select a, count(*) from e group by a", facts) == ["agg-needs-event-time"]


def test_unknown_types_are_no_fault() -> None:
    facts = {"e": relation(dict.fromkeys(COLUMNS), "ts")}
    assert _errors("select window(ts, '5 minutes') w, count(*) n from e group by 1", facts) == []
    assert _errors("select window(v, '5 minutes') w, id from e", facts) == []


def test_a_relation_without_facts_is_a_table() -> None:
    assert _errors("select wa.id, x.a from wa join x on wa.id = x.id", RELATIONS) == []


def test_names_are_compared_without_case_and_quotes() -> None:
    facts = {"`lake`.`S`.`Events`": relation(COLUMNS, "TS")}
    assert _errors("select Ts, count(*) from Lake.s.`events` group by tS", facts) == []


def test_all_faults_of_a_query_are_found() -> None:
    sql = (
        "select distinct id, count(distinct v), row_number() over (order by id) "
        "from sa where id in (select id from sb) group by id order by id limit 3 offset 2"
    )
    codes = {f.code for f in check_text(sql, RELATIONS, "update") if f.is_error}
    wanted = {
        "agg-distinct",
        "over-on-stream",
        "subquery-on-stream",
        "sort-on-stream",
        "limit-mode",
        "offset-on-stream",
    }
    assert wanted <= codes
    assert "chain-mode" in codes
