"""`engine source inspect --lateness`: how far rows are behind earlier rows, to choose the delay of a watermark.

Rows arrive together if they are in one file, or have the same timestamp in a topic. Lateness is the newest event time
of all earlier arrivals minus a row's own. Larger micro-batches drop fewer rows than this predicts, never more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Source, Target
from engine.errors import RunError, SetupError, UsageError
from engine.lake.catalog import catalog_settings
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import CORE
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary, unreadable
from engine.sources import BAD, KINDS
from engine.sources.spec import ORIGIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The fields of `_metadata` by which records arrive, by the field that only this kind of source has.
_ARRIVAL = {
    "file_modification_time": f"struct({ORIGIN}.file_modification_time, {ORIGIN}.file_path)",
    "offset": f"{ORIGIN}.timestamp",
}
_FRACTIONS = (0.5, 0.95, 0.99, 0.999, 1.0)
_ACCURACY = 10_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# The delays that people write, in seconds.
_DELAYS = (
    *(10, 30), *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30, 45)), *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 3, 7, 14, 30)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lateness:
    """Seconds by which rows are behind earlier arrivals.

    `rows` have an event time; in those `without_time` it is NULL. `late_rows` are behind an earlier arrival.
    `percentiles`: seconds that 50, 95, 99, 99.9 and 100 percent of the rows do not exceed.
    """

    rows: int
    without_time: int
    bad_records: int
    late_rows: int
    percentiles: tuple[float, ...]

    @property
    def delay_seconds(self) -> int:
        covered = self.percentiles[-2]
        return next((delay for delay in _DELAYS if delay >= covered), math.ceil(covered / _DAY) * _DAY)


def measure_lateness(source: Source, event_time: str, target: Target, root: Path, target_dir: Path) -> Lateness:
    """Read all records of a source and measure the lateness of an event time, given as SQL.

    Raises:
        UsageError: the source does not record arrivals, or the SQL is not a time.
        SetupError: Spark or the source cannot be reached; `sample-empty`.
        RunError: `source-unreadable`.
    """
    spec, place = source.spec, target.place(root)
    kind = KINDS[spec.format]
    arrival = next((sql for name, sql in _ARRIVAL.items() if f"{name}:" in kind.origin(spec)), None)
    if arrival is None:
        message = f"'{source.name}' does not record when its rows arrived"
        raise UsageError("usage", message, "--lateness measures sources of files and of Kafka.")
    kind.check(spec, place)
    catalog_settings.prepare(target.catalog)
    with spark_session(target, target_dir, sets=(*CORE, *kind.jars(spec))) as spark:
        try:
            lateness = _measure(kind.read_batch(spark, spec, place), arrival, event_time)
        except spark_exceptions() as error:
            checks = f"Check 'format', 'path' and 'options' of the source in {source.file}."
            message, hint = unreadable(error) or (f"'{source.name}' cannot be read: {summary(str(error))}", checks)
            raise RunError("source-unreadable", message, hint) from error
    if not lateness.rows:
        message = f"the source '{source.name}' has no row with '{event_time}'"
        raise SetupError("sample-empty", message, "Land or send records, and run the command again.")
    return lateness


def _measure(records: DataFrame, arrival: str, event_time: str) -> Lateness:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    is_bad = f.col(BAD).isNotNull() if BAD in records.columns else f.expr("false")
    try:
        times = records.select(is_bad.alias("bad"), f.expr(arrival).alias("arrival"), f.expr(event_time).alias("at"))
        if times.schema["at"].dataType.typeName() not in {"timestamp", "timestamp_ntz", "date"}:
            message = f"'{event_time}' is {times.schema['at'].dataType.simpleString()}, not a timestamp"
            raise UsageError("usage", message, f"Write --lateness 'cast({event_time} as timestamp)'.")
    except spark_exceptions() as error:
        columns = ", ".join(name for name in records.columns if name not in {BAD, ORIGIN})
        raise UsageError("usage", f"--lateness {event_time}: {summary(str(error))}", f"Columns: {columns}.") from error
    timed = times.where("not bad and at is not null").selectExpr(
        "arrival", "unix_micros(cast(at as timestamp)) / 1e6 as at"
    )
    arrivals = timed.groupBy("arrival").agg(f.max("at").alias("newest"))
    earlier = Window.orderBy("arrival").rowsBetween(Window.unboundedPreceding, -1)
    arrivals = arrivals.select("arrival", f.max("newest").over(earlier).alias("newest_before"))
    late = timed.join(arrivals, "arrival").select(
        f.greatest(f.lit(0.0), f.coalesce(f.col("newest_before") - f.col("at"), f.lit(0.0))).alias("seconds")
    )
    (row,) = late.agg(
        f.count("*").alias("rows"),
        f.count_if(f.col("seconds") > 0).alias("late_rows"),
        f.percentile_approx("seconds", list(_FRACTIONS), _ACCURACY).alias("percentiles"),
    ).collect()
    (counts,) = times.selectExpr("count_if(bad) as bad", "count_if(not bad and at is null) as without_time").collect()
    return Lateness(
        row["rows"], counts["without_time"], counts["bad"], row["late_rows"], tuple(row["percentiles"] or (0.0,) * 5)
    )
