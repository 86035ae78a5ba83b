"""Ranges that hold the values of keys: literal conditions by which files are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lake.quoted_names import quoted
from engine.runtime.batch.partition_values import as_literal, as_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Ranges of a column: each is compared with the bounds of each file.
_RANGES = 50
# NaN has no place among the bounds of a file, and true and false skip nothing.
_UNORDERED = {"float", "double", "boolean", "binary"}


def key_ranges(keys: DataFrame) -> str:
    """Return a condition that is true of every row whose key columns have the values of one of some rows.

    Args:
        keys: the values, which are kept in memory; their names are those of the columns.
    """
    parts = []
    for field in keys.schema.fields:
        kind = field.dataType.simpleString()
        if kind not in _UNORDERED and as_text("x", kind) is not None:
            parts.append(_condition(keys, field.name, kind))
    return " AND ".join(parts)


def _condition(keys: DataFrame, name: str, kind: str) -> str:
    """The ranges of one column."""
    from pyspark.sql import functions

    column = quoted(name)
    values = keys.select(column).distinct()
    tiles = values.where(f"{column} IS NOT NULL").selectExpr(
        f"{column} AS value", f"ntile({_RANGES}) OVER (ORDER BY {column}) AS tile"
    )
    ends = tiles.groupBy("tile").agg(functions.min("value").alias("least"), functions.max("value").alias("most"))
    texts = ends.selectExpr(f"{as_text('least', kind)} AS least", f"{as_text('most', kind)} AS most")
    found = [
        f"{column} BETWEEN {as_literal(row['least'], kind)} AND {as_literal(row['most'], kind)}"
        for row in texts.collect()
    ]
    if not values.where(f"{column} IS NULL").isEmpty():
        found.append(f"{column} IS NULL")
    return f"({' OR '.join(found)})" if found else "false"
