"""A slice of the random pairs, and every keyword with and without backticks; `python -m tests.sameness` runs more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from engine.compile.sql.normalize import spelling_of
from tests.lab import LabSession
from tests.sameness.compare import Count, faults
from tests.sameness.pairs import pairs
from tests.sameness.spark_says import Spark

# One by one only where Spark does not read them together.
_PLACES = (
    ("{0} as a", "{0}", "words.{0}", "1 as {0}", "{0} + 1 as b", "-{0} as c", "not {0} = 1 as d", "transform(array(1), {0} -> {0} + 1) as t",
     "case when {0} = 1 then 2 end as e", "concat({0}, 1) as f", "{0} is null as g"),
    ("max({0}) as m",),
)  # fmt: skip
_QUERIES = (
    "select {1} from words where {0} = 7 order by {0}",
    "select {1} from words group by {0}",
    "select x.y from (select 1 as y) {0} join (select 2 as y) x",
)


@pytest.fixture(scope="module")
def spark(lab_session: LabSession) -> Spark:
    return Spark(lab_session.spark.newSession())


@pytest.mark.spark
def test_what_is_called_the_same_has_the_same_rows(spark: Spark, tmp_path: Path) -> None:
    count = Count()
    assert [str(fault) for fault in faults(spark, tmp_path, list(islice(pairs(7), 200)), count)] == []
    assert count.called["same"] > 30
    assert count.called["rebuilt"] > 30
    assert count.called["state-breaking"] > 10


@pytest.mark.nightly
@pytest.mark.spark
def test_words_without_backticks_are_the_same_only_if_spark_reads_them_so(spark: Spark) -> None:
    words = [row.keyword for row in spark.session.sql("select lower(keyword) as keyword from sql_keywords()").collect()]
    words += ["localtimestamp", "current_catalog", "current_schema", "grouping__id", "e", "x", "r", "date1"]
    assert [pair for word in dict.fromkeys(words) for pair in _different(spark, word)] == []


def _different(spark: Spark, word: str) -> Iterator[tuple[str, str]]:
    """The queries called the same that Spark reads differently with and without backticks."""
    spark.forget()
    spark.session.sql(f"select 7 as `{word}`").createOrReplaceTempView("words")
    for query, places in zip(_QUERIES, (*_PLACES, ("",)), strict=True):
        together = query.replace("{1}", ", ".join(places))
        whole = not spark.answer(together.format(word)).refused
        for text in [together] if whole else [query.replace("{1}", place) for place in places]:
            bare, quoted = text.format(word), text.format(f"`{word}`")
            if spelling_of(bare) != spelling_of(quoted):
                continue
            here, there = spark.answer(bare), spark.answer(quoted)
            alike = (here.columns, str(here.plan)) == (there.columns, str(there.plan))
            if not alike and not (here.refused or there.refused):
                yield bare, quoted


@pytest.mark.slow
def test_a_number_makes_one_pair() -> None:
    assert list(islice(pairs(3), 20)) == list(islice(pairs(3), 20))
    assert len({pair.other for pair in islice(pairs(3), 200)}) > 150
