"""SQL of every shape is lowered: what the checker does not know is no fault, and never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.streaming.check_query import check_text
from engine.compile.streaming.query_plan.stream_facts import MODES
from tests.fixtures import read_rows
from tests.fuzz.relations import RELATIONS

FIXTURE = Path(__file__).parent / "fixtures/statements.txt"
STATEMENTS = [sql for (sql,) in read_rows(FIXTURE, "statements", 1)] + [""]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_breaks_the_checker(statement: str) -> None:
    for mode in MODES:
        for finding in check_text(statement, RELATIONS, mode):
            assert finding.message
            assert 0 <= finding.offset <= len(statement)


def test_deep_nesting_is_a_finding() -> None:
    sql = "select " + "(" * 500 + "id" + ")" * 500 + " from wa"
    assert [f.code for f in check_text(sql, RELATIONS, "append")] == ["sql-too-deep"]


@pytest.mark.slow
def test_long_chains_of_operators_and_joins_are_no_fault() -> None:
    sums = " + ".join(["id"] * 500)
    assert not [f for f in check_text(f"select {sums} as n from sa", RELATIONS, "append") if f.is_error]
    ands = " and ".join(f"v > {n}" for n in range(500))
    assert not [f for f in check_text(f"select id from sa where {ands}", RELATIONS, "append") if f.is_error]
