"""Records that cannot be read as declared: told apart, counted, and taken out.

A kind's frame says in `__bad` why a record is bad. The frame is observed before the bad records go, so that their
number is known after each execution; Spark moves no filter through an observation. An event time adds reasons: its
expression cannot be computed, the time is too far ahead of the clock, or it is NULL where that would lose the row.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from engine.relations import quoted
from engine.sources.spec import BAD, ORIGIN, SKIPPED, OnBadRecord
from engine.spark.internals.executions import try_expression
from engine.times import in_words

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# What an observation counts.
COUNT = "bad"
DROPPED_COUNT = "dropped"
RECORDS = "records"
SKIPPED_COUNT = "skipped"
# One of the reasons, without values of records: the least, so that a repeated micro-batch has the same.
REASON = "reason"
# Why a record without an event time is bad: text, NULL for others. Its row is made into JSON only where it is shown,
# so that columns the query does not need are not read for it.
NO_TIME = "__no_time"
# Whether a record is dropped, and counted, for want of an event time.
DROPPED = "__time_dropped"
_UNREADABLE = "it cannot be parsed as declared"
_NESTED = r"(?s)^'([^.\[]*)[.\[].*' is not of type "
_LONGEST = 200
_MARKS = {BAD, NO_TIME, DROPPED, SKIPPED}
# How the error begins that ends a query at a bad record.
RAISED = "headrace: bad record: "
_AS_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def marked(frame: DataFrame) -> bool:
    return not _MARKS.isdisjoint(frame.columns)


def without_bad(frame: DataFrame, name: str, observation: str, policy: OnBadRecord) -> DataFrame:
    """Take the bad records out of a frame, observed; with `fail` the first one ends the query."""
    from pyspark.sql import functions as f

    if not marked(frame):
        return frame
    reason = _reason(frame)
    frame = frame.observe(observation, *metrics(frame))
    if SKIPPED in frame.columns:
        frame = frame.where(f.col(SKIPPED).isNull())
    if DROPPED in frame.columns:
        frame = frame.where(~f.col(DROPPED))
    if reason is not None:
        good = reason.isNull()
        if policy is OnBadRecord.FAIL:
            error_record = f.to_json(f.struct(reason.alias("reason"), origin(frame, name).alias("origin")))
            error = f.raise_error(f.concat(f.lit(RAISED), error_record))
            good = f.when(good, f.lit(True)).otherwise(error.cast("boolean"))
        frame = frame.where(good)
    return frame.drop(*_MARKS)


def without_marks(frame: DataFrame, condition: str) -> DataFrame:
    """Clear the mark of the records that meet a condition: the query can handle them."""
    from pyspark.sql import functions as f

    return frame.withColumn(BAD, f.expr(f"case when ({condition}) then null else {BAD} end"))


def _reason(frame: DataFrame) -> Column | None:
    """Why a record is bad; None: nothing in the frame says that one is."""
    from pyspark.sql import functions as f

    unreadable = f"case when {BAD} is not null then coalesce({BAD}.reason, '{_UNREADABLE}') end"
    parts = [unreadable] if BAD in frame.columns else []
    parts += [NO_TIME] if NO_TIME in frame.columns else []
    return f.expr(f"coalesce({', '.join(parts)})") if parts else None


def metrics(frame: DataFrame) -> list[Column]:
    from pyspark.sql import functions as f

    dropped = [f.count_if(DROPPED).alias(DROPPED_COUNT)] if DROPPED in frame.columns else []
    if (reason := _reason(frame)) is None:
        return dropped
    counts = [f.count_if(reason.isNotNull()).alias(COUNT), f.count(f.lit(1)).alias(RECORDS)]
    if SKIPPED in frame.columns:
        skipped = f.col(SKIPPED).isNotNull()
        counts[1:] = [f.count_if(~skipped).alias(RECORDS), f.count_if(skipped).alias(SKIPPED_COUNT)]
    return [*counts, least_reason(reason), *dropped]


def least_reason(reason: Column) -> Column:
    """Aggregate reasons into one that holds nothing of a record, which progress reports and alerts may show.

    A value comes after the first colon. A path may hold keys of a map: its column is enough.
    """
    from pyspark.sql import functions as f

    text = f.regexp_replace(f.substring_index(reason, ": ", 1), _NESTED, "a value in '$1' is not of type ")
    return f.min(f.substring(text, 1, _LONGEST)).alias(REASON)


def bad_records(frame: DataFrame, name: str) -> DataFrame | None:
    """The bad records of an observed frame: `reason`, `raw`, `row` and `origin`, the last two as JSON.

    None: it has none, as rows without a time are dropped, and nothing else can be wrong with one.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    reason = _reason(frame)
    if reason is None:
        return None
    rows, raw = [], f.lit(None).cast("binary")
    if BAD in frame.columns:
        kind, raw = frame.schema[BAD].dataType, f.col(BAD)["raw"]
        rows += [f.col(BAD)["row"]] if isinstance(kind, StructType) and "row" in kind.fieldNames() else []
    if NO_TIME in frame.columns:
        rows.append(f.when(f.col(NO_TIME).isNotNull(), as_json(frame)))
    return frame.where(reason.isNotNull()).select(
        reason.alias("reason"),
        raw.alias("raw"),
        f.coalesce(*rows, no_text()).alias("row"),
        origin(frame, name).alias("origin"),
    )


def origin(frame: DataFrame, name: str) -> Column:
    from pyspark.sql import functions as f

    parts = [f.lit(name).alias("source")]
    if ORIGIN in frame.columns:
        parts += [f.col(f"{ORIGIN}.*")]
    return f.to_json(f.struct(*parts), _AS_JSON)


def as_json(frame: DataFrame, left_out: Collection[str] = ()) -> Column:
    """The columns of a row as JSON, NULLs too."""
    from pyspark.sql import functions as f

    names = [name for name in frame.columns if name not in {*_MARKS, ORIGIN, *left_out}]
    return f.to_json(f.struct(*(f.col(quoted(name)) for name in names)), _AS_JSON)


def raised(text: str) -> tuple[str, dict[str, object]] | None:
    """Reason and origin of the bad record that ended a query, from the text of Spark's error; None if none did."""
    # Spark's print of the plan holds the words as well, with no record behind them.
    begin = text.find(RAISED + "{")
    if begin < 0:
        return None
    try:
        error_record, _ = json.JSONDecoder().raw_decode(text, begin + len(RAISED))
        return str(error_record["reason"]), dict(json.loads(error_record["origin"]))
    except (ValueError, KeyError, TypeError):
        return _UNREADABLE, {}


def no_text() -> Column:
    from pyspark.sql import functions as f

    return f.lit(None).cast("string")


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
        frame = frame.withColumn(_TIME, try_expression(frame.sparkSession, f"named_struct('value', {expression}\n)"))
        reason = reason.when(f.col(_TIME).isNull(), f"'{column}' cannot be computed: {expression}")
    time = f.col(_TIME)["value"] if expression is not None else f.col(quoted(column))
    if max_future is not None:
        ahead = time > f.current_timestamp() + f.expr(f"interval '{max_future}'")
        reason = reason.when(ahead, f"'{column}' is more than {in_words(max_future)} ahead of the clock")
    nothing = f.lit(None).cast("binary")
    mark = f.when(reason.isNotNull(), f.struct(reason.alias("reason"), nothing.alias("raw"), whole.alias("row")))
    if has_bad:
        bad_record = f.struct(
            f.col(BAD)["reason"].alias("reason"), f.col(BAD)["raw"].alias("raw"), no_text().alias("row")
        )
        mark = f.when(f.col(BAD).isNotNull(), bad_record).otherwise(mark)
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
