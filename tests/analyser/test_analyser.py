"""A slice of the random queries, and what they found; `python -m tests.analyser` runs as many as one likes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.analyser.compare import differences, shortest
from tests.analyser.queries import query
from tests.analyser.verdicts import Analyser, Verdict, compiled, model
from tests.compile.queries import RANDOM
from tests.lab import LabSession

SEED, COUNT = 7, 100


@pytest.fixture(scope="module")
def analyser(lab_session: LabSession) -> Iterator[Analyser]:
    analyser = Analyser(lab_session.spark)
    yield analyser
    analyser.close()


@pytest.mark.spark
def test_verdicts_and_columns_of_random_queries_are_those_of_spark(analyser: Analyser, tmp_path: Path) -> None:
    queries = [query(SEED, number) for number in range(COUNT)]
    assert [str(found) for found in differences(queries, analyser, tmp_path)] == []


@pytest.mark.spark
def test_streams_have_the_same_verdicts(lab_session: LabSession, tmp_path: Path) -> None:
    streams = Analyser(lab_session.spark.newSession(), tmp_path / "landing")
    queries = [query(SEED, number) for number in range(COUNT, COUNT + 20)]
    assert [str(found) for found in differences(queries, streams, tmp_path / "project")] == []


@pytest.mark.slow
def test_a_difference_becomes_short(tmp_path: Path) -> None:
    """With a Spark that accepts everything, each refusal is a difference."""
    sql = next(
        sql for sql in (query(3, n) for n in range(200)) if len(sql) > 200 and compiled(tmp_path, [sql])[0].refused
    )
    analyser = cast("Analyser", SimpleNamespace(streams=None, verdict=lambda _: Verdict("")))
    (found,) = differences([sql], analyser, tmp_path)
    assert len(shortest(found, analyser).sql) < len(sql) / 2


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_still_says_so_of_what_was_found(analyser: Analyser, tmp_path: Path) -> None:
    queries = [*RANDOM.accepted, *RANDOM.refused_texts]
    assert [str(found) for found in differences(queries, analyser, tmp_path)] == []


@pytest.mark.slow
def test_what_spark_accepts_has_no_fault(tmp_path: Path) -> None:
    here = compiled(tmp_path, RANDOM.accepted)
    found = [(sql, verdict) for sql, verdict in zip(RANDOM.accepted, here, strict=True) if verdict.refused]
    assert found == []


@pytest.mark.slow
def test_what_spark_refuses_is_a_fault_with_its_place(tmp_path: Path) -> None:
    told = [(here.refused, here.place) for here in compiled(tmp_path, RANDOM.refused_texts)]
    assert told == [(code, (1, model(marked).index("»") + 1)) for code, marked in RANDOM.refused]


def test_a_number_makes_one_query() -> None:
    assert query(1, 5) == query(1, 5)
    assert len({query(1, number) for number in range(50)}) > 45


@pytest.mark.slow
def test_the_grammar_reaches_most_faults(tmp_path: Path) -> None:
    told = [here.refused for here in compiled(tmp_path, [query(2, number) for number in range(600)])]
    assert 0.2 < sum(map(bool, told)) / len(told) < 0.6
    assert set(told) >= {
        "", "agg-not-grouped", "ambiguous-column", "misplaced-expression", "column-count", "type-mismatch", "union-columns",
        "unknown-column", "unknown-function",
    }  # fmt: skip
