"""The event time of an input: the column of a watermark, and the rows that have none or one that cannot be.

Its expression cannot be computed, the time is too far ahead of the clock, or it is NULL where that would lose the row:
such rows are bad records, or dropped and counted (`mark_bad_records`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lake.quoted_names import quoted
from engine.sources.mark_bad_records import DROPPED, NO_TIME, as_json, no_text
from engine.sources.spec import BAD
from engine.spark.internals.executions import tried

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME = "__time"


def with_event_time(frame: DataFrame, column: str, expression: str | None, max_future: str | None) -> DataFrame:
    """Add the column of a watermark; rows whose time cannot be computed, or is too far ahead, become bad."""
    from pyspark.sql import functions as f

    if expression is None and (max_future is None or column not in frame.columns):
        return frame
    whole = as_json(frame)
    has_bad = BAD in frame.columns
    reason = f.when(f.lit(False), "")
    if expression is not None:
        # Inside a struct NULL is a value: the struct is NULL only where computing is an error.
        frame = frame.withColumn(_TIME, tried(frame.sparkSession, f"named_struct('value', {expression}\n)"))
        reason = reason.when(f.col(_TIME).isNull(), f"'{column}' cannot be computed: {expression}")
    time = f.col(_TIME)["value"] if expression is not None else f.col(quoted(column))
    if max_future is not None:
        ahead = time > f.current_timestamp() + f.expr(f"interval '{max_future}'")
        reason = reason.when(ahead, f"'{column}' is more than {max_future} ahead of the clock")
    nothing = f.lit(None).cast("binary")
    mark = f.when(reason.isNotNull(), f.struct(reason.alias("reason"), nothing.alias("raw"), whole.alias("row")))
    if has_bad:
        known = f.struct(f.col(BAD)["reason"].alias("reason"), f.col(BAD)["raw"].alias("raw"), no_text().alias("row"))
        mark = f.when(f.col(BAD).isNotNull(), known).otherwise(mark)
    frame = frame.withColumn(BAD, mark)
    return frame.withColumn(column, time).drop(_TIME) if expression is not None else frame


def with_null_times(frame: DataFrame, column: str, expression: str | None, *, drop: bool) -> DataFrame:
    """Mark the rows without an event time, which a stateful step would lose: bad records, or to be dropped."""
    from pyspark.sql import functions as f

    if column not in frame.columns:
        return frame
    missing = f.col(quoted(column)).isNull()
    if BAD in frame.columns:
        missing &= f.col(BAD).isNull()
    if drop:
        return frame.withColumn(DROPPED, missing)
    reason = f"'{column}' is NULL" + (f": {expression.strip()}" if expression else "")
    return frame.withColumn(NO_TIME, f.when(missing, f.lit(reason)))
