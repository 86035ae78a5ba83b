"""A slice of the random queries; `python -m tests.fuzz` runs as many as one likes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from engine.compile.streaming.check_query import check_text
from tests.fuzz.grammar import MODES, query
from tests.fuzz.relations import RELATIONS
from tests.fuzz.spark import CONF, Judge, prepared
from tests.lab import LabSession

pytestmark = pytest.mark.slow

SEED = 7


@pytest.fixture(scope="module")
def judge(lab_session: LabSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    spark = lab_session.spark
    before = {key: spark.conf.get(key) for key in CONF}
    for key, value in CONF.items():
        spark.conf.set(key, value)
    yield prepared(spark, tmp_path_factory.mktemp("fuzz") / "data")
    for key, value in before.items():
        spark.conf.set(key, value)
    for name in ("sa", "sb", "wa", "wb", "ba"):
        spark.catalog.dropTempView(name)


@pytest.mark.spark
@pytest.mark.parametrize("number", range(8))
def test_verdict_of_a_random_query_is_that_of_spark(judge: Judge, number: int) -> None:
    sql, mode = query(SEED, number)
    errors = [f for f in check_text(sql, RELATIONS, mode) if f.is_error]  # type: ignore[arg-type]
    theirs = judge.verdict(sql, mode)
    assert theirs.ok == (not errors), (sql, mode, theirs, [f.code for f in errors])


def test_a_number_makes_one_query() -> None:
    assert query(1, 5) == query(1, 5)
    assert len({query(1, number) for number in range(50)}) > 45


def test_the_grammar_reaches_both_verdicts_in_each_mode() -> None:
    seen = set()
    for number in range(400):
        sql, mode = query(2, number)
        seen.add((mode, any(f.is_error for f in check_text(sql, RELATIONS, mode))))  # type: ignore[arg-type]
    assert seen == {(mode, refused) for mode in MODES for refused in (True, False)}


def test_the_grammar_reaches_most_rules() -> None:
    codes = set()
    for number in range(1000):
        sql, mode = query(2, number)
        codes |= {f.code for f in check_text(sql, RELATIONS, mode)}  # type: ignore[arg-type]
    assert len(codes) > 30, sorted(codes)


def test_a_query_with_names_still_to_come_is_judged_as_the_one_that_runs() -> None:
    # Models are judged as the user wrote them wherever only names of relations are put in.
    open_relations = {f"@ref {name}": columns for name, columns in RELATIONS.items()}
    refused = 0
    for number in range(400):
        sql, mode = query(3, number)
        text = re.sub(rf"\b({'|'.join(RELATIONS)})\b(?!\.)", r"`@ref \1`", sql)
        codes = [f.code for f in check_text(sql, RELATIONS, mode)]  # type: ignore[arg-type]
        assert [f.code for f in check_text(text, open_relations, mode)] == codes, (sql, mode)  # type: ignore[arg-type]
        refused += bool(codes)
    assert 100 < refused < 400
