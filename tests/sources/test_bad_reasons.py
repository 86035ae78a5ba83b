"""The one reason for bad records that progress reports and alerts show: bounded, the same each time, without values."""

from __future__ import annotations

import pytest

from engine.sources.mark_bad_records import REASON, least_reason
from tests.lab import LabSession

pytestmark = pytest.mark.spark

SECRET = "jane@example.org"
SHOWN = {
    "not a JSON object; write one per line or message": "not a JSON object; write one per line or message",
    f"'amount' is not of type double: {SECRET}": "'amount' is not of type double",
    f"'a' is not of type int: {SECRET}; 'b' is not of type int: {SECRET}; and 3 more": "'a' is not of type int",
    f"'day' is not of type date in the name of a folder: {SECRET}": "'day' is not of type date in the name of a folder",
    # Keys of a map are values of the record.
    f"'tags.{SECRET}' is not of type bigint: 7": "a value in 'tags' is not of type bigint",
    f"'tags.\n' is not of type {SECRET}' is not of type int: 7": "a value in 'tags' is not of type int",
    f"'items[3].tags.it's {SECRET}' is not of type int: 7": "a value in 'items' is not of type int",
    "'items[0].price' is not of type double: ' is not of type int": "a value in 'items' is not of type double",
    "'at' is NULL: cast(time as timestamp)": "'at' is NULL",
    f"'{'x' * 500}' is not of type int: 1": "'" + "x" * 199,
}


def test_a_reason_shows_no_value_of_a_record(lab_session: LabSession) -> None:
    from pyspark.sql import functions as f

    frame = lab_session.spark.createDataFrame(list(enumerate(SHOWN)), "number int, reason string")
    rows = frame.groupBy("number").agg(least_reason(f.col("reason"))).orderBy("number").collect()
    assert [row[REASON] for row in rows] == list(SHOWN.values())
    assert not [row for row in rows if SECRET in row[REASON]]


def test_of_many_reasons_the_least_is_observed(lab_session: LabSession) -> None:
    """Spark's buffer of an observation outlives the rows that it has seen."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    numbers = f.format_string("%05d", f.lit(20_000) - f.col("id"))
    frame = lab_session.spark.range(0, 20_000, 1, 4).select(f.when(f.col("id") % 3 == 1, numbers).alias("reason"))
    seen = Observation("reasons")
    frame.observe(seen, least_reason(f.col("reason"))).write.format("noop").mode("overwrite").save()
    assert seen.get[REASON] == "00001"
