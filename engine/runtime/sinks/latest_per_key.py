"""A micro-batch reduced to one row a key, before it is merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.lake.quoted_names import quoted
from engine.runtime.quality.left_out import LEFT_OUT, left_out

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COPIES = "__copies"
_RANK = "__rank"


def newest(frame: DataFrame, keys: Sequence[str], sequence: Sequence[str]) -> DataFrame:
    """The row of each key that comes last by its sequence, and on a tie by all columns; NULLs come first.

    The rows have the column COPIES, the number of rows of their key. What decides on a tie has no meaning, but
    it is the same in each run. Rows that a query leaves out come first, and do not count.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    rest = [name for name in frame.columns if name not in {*keys, *sequence, LEFT_OUT}]
    given = [left_out(frame).asc()] if LEFT_OUT in frame.columns else []
    last_first = [*given, *(comparable(frame, name).desc_nulls_last() for name in (*sequence, *rest))]
    by_key = Window.partitionBy(*(named(name) for name in keys))
    ranked = frame.withColumns(
        {
            COPIES: f.count_if(~left_out(frame)).over(by_key),
            _RANK: f.row_number().over(by_key.orderBy(*last_first)) if last_first else f.lit(1),
        }
    )
    return ranked.where(f.col(_RANK) == 1).drop(_RANK)


def comparable(frame: DataFrame, name: str, value: Column | None = None) -> Column:
    """A column, or another value of its type; where its values have no order (maps, variants), its JSON."""
    from pyspark.sql import functions as f

    column = named(name) if value is None else value
    return column if _ordered(frame.select(named(name)).schema[0].dataType) else f.to_json(column)


def _ordered(kind: Any) -> bool:
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return all(_ordered(field.dataType) for field in kind.fields)
    if isinstance(kind, t.ArrayType):
        return _ordered(kind.elementType)
    return not isinstance(kind, t.MapType | t.VariantType | t.CalendarIntervalType)


def named(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))
