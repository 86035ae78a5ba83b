"""Ranges that hold the values of keys: literal conditions by which files are skipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.lake.quoted_names import quoted
from engine.runtime.batch.partition_values import as_literal, as_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Ranges of a column: each is compared with the bounds of each file.
_RANGES = 50
# NaN has no place among the bounds of a file, and true and false skip nothing.
_UNORDERED = {"float", "double", "boolean", "binary"}


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Where the values of keys lie.

    Attributes:
        spans: by column, from and to (inclusive) as SQL; columns without are not known.
        nulls: the columns of `spans` that are NULL in some keys.
    """

    spans: Mapping[str, tuple[tuple[str, str], ...]]
    nulls: frozenset[str]

    @property
    def where(self) -> str:
        """A condition that is true of every row that has the values of one of the keys; empty: none is known."""
        return " AND ".join(map(self._condition, self.spans))

    @property
    def certain(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """The columns that are NULL in no key."""
        return {name: spans for name, spans in self.spans.items() if name not in self.nulls}

    def _condition(self, name: str) -> str:
        column = quoted(name)
        found = [f"{column} BETWEEN {low} AND {high}" for low, high in self.spans[name]]
        found += [f"{column} IS NULL"] if name in self.nulls else []
        return f"({' OR '.join(found)})"


def key_ranges(keys: DataFrame) -> KeyRanges:
    """Return where the values of keys lie, by one query.

    Args:
        keys: the values, at least one row, which are kept in memory; their names are those of the columns.
    """
    kinds = {field.name: field.dataType.simpleString() for field in keys.schema.fields}
    names = [name for name, kind in kinds.items() if kind not in _UNORDERED and as_text("x", kind) is not None]
    if not names:
        return KeyRanges({}, frozenset())
    parts = [_tiles(keys, number, name, kinds[name]) for number, name in enumerate(names)]
    every = parts[0]
    for part in parts[1:]:
        every = every.unionAll(part)
    rows = every.collect()
    spans = {
        name: tuple(
            (as_literal(row["least"], kinds[name]), as_literal(row["most"], kinds[name]))
            for row in rows if row["number"] == number and row["least"] is not None
        )
        for number, name in enumerate(names)
    }  # fmt: skip
    return KeyRanges(spans, frozenset(names[row["number"]] for row in rows if row["nulls"]))


def _tiles(keys: DataFrame, number: int, name: str, kind: str) -> DataFrame:
    """The ends of parts of about as many values, and whether NULL is among them."""
    from pyspark.sql import functions

    values = keys.selectExpr(f"{quoted(name)} AS value").distinct()
    tiles = values.selectExpr("value", f"ntile({_RANGES}) OVER (ORDER BY value) AS tile")
    ends = tiles.groupBy("tile").agg(
        functions.min("value").alias("least"), functions.max("value").alias("most"),
        functions.bool_or(functions.col("value").isNull()).alias("nulls"),
    )  # fmt: skip
    return ends.selectExpr(
        f"{number} AS number", f"{as_text('least', kind)} AS least", f"{as_text('most', kind)} AS most", "nulls"
    )
