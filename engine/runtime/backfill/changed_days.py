"""How the rows of a range differ from those that its table has, by day, and the commits that replace them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from engine.runtime.backfill.backfill_request import TimeRange, day_after

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HASH = "__hash"
# All that a table holds of a value, NULLs and microseconds too.
_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Day:
    """The rows of a day (UTC) in a range; the last day that Python has stands for all later ones too."""

    day: date
    before: int
    after: int
    same: bool


def days_of(before: DataFrame, after: DataFrame, within: TimeRange) -> tuple[Day, ...]:
    """Compare the rows of a range by day, in order."""
    there, come = _summed(before, within), _summed(after, within)
    none = (0, None)
    return tuple(
        Day(day, there.get(day, none)[0], come.get(day, none)[0], there.get(day, none) == come.get(day, none))
        for day in sorted({*there, *come})
    )


def _summed(frame: DataFrame, within: TimeRange) -> dict[date, tuple[int, object]]:
    """The number of rows of each day, and a sum that is another one for other rows."""
    from pyspark.sql import functions as f

    # Spark hashes no maps, and takes -0.0 for 0.0.
    hashed = f.xxhash64(f.to_json(f.struct("*"), _AS_JSON)).cast("decimal(38,0)").alias(_HASH)
    day = f.least(f.expr(within.day), f.lit(date.max)).alias("day")
    rows = frame.select(day, hashed)
    found = rows.groupBy("day").agg(f.count(f.lit(1)), f.sum(_HASH)).collect()
    return {row[0]: (row[1], row[2]) for row in found}


def pieces(days: Sequence[Day], within: TimeRange, most: int) -> Iterator[tuple[TimeRange, int, int]]:
    """Yield the ranges that are replaced, each in a commit, with their rows before and after.

    A range is of whole days, or of the part of a day that is in the range; of several days only if they follow on each
    other and have few rows.

    `most`: rows of a commit, unless a day has more.
    """
    begun: list[Day] = []
    for day in days:
        together = max(sum(d.before for d in (*begun, day)), sum(d.after for d in (*begun, day)))
        if begun and (day.same or together > most):
            yield _piece(begun, within)
            begun = []
        if not day.same:
            begun.append(day)
    if begun:
        yield _piece(begun, within)


def _piece(days: Sequence[Day], within: TimeRange) -> tuple[TimeRange, int, int]:
    begin = max(within.begin, datetime.combine(days[0].day, time()))
    last, end = days[-1].day, within.end
    if last < date.max:
        after = day_after(datetime.combine(last, time()))
        end = after if end is None else min(end, after)
    return replace(within, begin=begin, end=end), sum(d.before for d in days), sum(d.after for d in days)
