"""Every version of a key: from when to when each was the newest (`history: true`).

For the keys of a micro-batch all points in time are put in order: versions in the table and where they end, versions
and deletes of the batch, remembered deletes. A version ends where the next point is: a late one splits an interval, a
late delete cuts it. A micro-batch is reduced to one row a key before it is merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from engine.compile.nodes.model_settings import Write
from engine.relations import quoted
from engine.runtime.quality.expectations import LEFT_OUT, left_out
from engine.runtime.sinks.deleted_keys import as_struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


COPIES = "__copies"
_RANK = "__rank"


def newest(frame: DataFrame, keys: Sequence[str], sequence: Sequence[str]) -> DataFrame:
    """The row of each key that comes last by its sequence, and on a tie by all columns; NULLs come first.

    The rows have the column COPIES, the number of rows of their key. What decides on a tie has no meaning, but
    it is the same in each run. Rows that a query leaves out come first, and do not count.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    tie_columns = [name for name in frame.columns if name not in {*keys, *sequence, LEFT_OUT}]
    present_first = [left_out(frame).asc()] if LEFT_OUT in frame.columns else []
    last_first = [*present_first, *(comparable(frame, name).desc_nulls_last() for name in (*sequence, *tie_columns))]
    by_key = Window.partitionBy(*(column_of(name) for name in keys))
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

    column = column_of(name) if value is None else value
    return column if _ordered(frame.select(column_of(name)).schema[0].dataType) else f.to_json(column)


def _ordered(kind: Any) -> bool:
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return all(_ordered(field.dataType) for field in kind.fields)
    if isinstance(kind, t.ArrayType):
        return _ordered(kind.elementType)
    return not isinstance(kind, t.MapType | t.VariantType | t.CalendarIntervalType)


def column_of(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))


FROM, TO, CURRENT = "valid_from", "valid_to", "is_current"
_AT, _VERSION, _NEW, _OLD_TO = "__at", "__version", "__new", "__old_to"


def with_validity(frame: DataFrame, write: Write) -> DataFrame:
    """A frame with the columns that the history adds; the times are of the first column of `sequence_by`."""
    from pyspark.sql import functions as f

    begin = f.col(quoted(write.sequence_by[0]))
    return frame.withColumns({FROM: begin, TO: begin, CURRENT: f.lit(True)})


def versions(table: DataFrame, rows: DataFrame, write: Write, delete: str, deleted: DataFrame | None) -> DataFrame:
    """Return the versions of the table whose end changes, and the new ones.

    `rows` of the batch: one for each key and sequence. `delete`: the column that says whether a row deletes. `deleted`:
    remembered deletes, `key` and `sequence`; None: there are none.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    keys, first = write.unique_key, write.sequence_by[0]
    touched = rows.select(*map(column_of, keys)).distinct()
    touched_versions = table.join(touched, same_keys(table, touched, keys), "left_semi")
    at = as_struct(write.sequence_by).alias(_AT)
    new = rows.where(f"NOT {quoted(delete)}").drop(delete, LEFT_OUT)
    new = new.join(touched_versions, same_keys(new, touched_versions, (*keys, *write.sequence_by)), "left_anti")
    # A point that is not a version; at the same time as a version it comes before it, and cuts nothing.
    points = [
        touched_versions.where(column_of(TO).isNotNull()).select(
            *map(column_of, keys), _end(write).cast(_type(rows, write)).alias(_AT)
        ),
        rows.where(f.col(quoted(delete)) & ~left_out(rows)).select(*map(column_of, keys), at),
    ]
    # What a query leaves out by now ends the version, also at the time of one.
    ends = rows.where(left_out(rows)).select(*map(column_of, keys), at)
    if deleted is not None:
        flat = deleted.select(*(f.col("key")[name].alias(name) for name in keys), f.col("sequence").alias(_AT))
        flat = flat.join(touched, same_keys(flat, touched, keys), "left_semi")
        points.append(flat)
        same_point = flat[_AT] == f.struct(*(new[quoted(name)].alias(name) for name in write.sequence_by))
        new = new.join(flat, same_keys(new, flat, keys) & same_point, "left_anti")
    parts = [
        new.select("*", at, f.lit(1).alias(_VERSION), f.lit(True).alias(_NEW)),
        touched_versions.select(
            *map(column_of, dict.fromkeys((*keys, *write.sequence_by))),
            at,
            f.lit(1).alias(_VERSION),
            f.lit(False).alias(_NEW),
            column_of(TO).alias(_OLD_TO),
        ),
        *(part.withColumns({_VERSION: f.lit(0), _NEW: f.lit(False)}) for part in points),
        ends.withColumns({_VERSION: f.lit(2), _NEW: f.lit(False)}),
    ]
    all_points = reduce(
        lambda first_rows, second_rows: first_rows.unionByName(second_rows, allowMissingColumns=True), parts
    )
    in_order = Window.partitionBy(*map(column_of, keys)).orderBy(_AT, _VERSION)
    ended_versions = all_points.withColumn(TO, f.lead(f.col(_AT)[first]).over(in_order)).where(f.col(_VERSION) == 1)
    changed_versions = ended_versions.where(f.col(_NEW) | ~f.col(_OLD_TO).eqNullSafe(f.col(TO)))
    dated = changed_versions.withColumns({FROM: column_of(first), CURRENT: f.col(TO).isNull()})
    return dated.drop(_AT, _VERSION, _NEW, _OLD_TO)


def same_keys(first_rows: DataFrame, second_rows: DataFrame, names: Sequence[str]) -> Column:
    """Whether rows have the same values in some columns; NULL counts as a value."""
    from pyspark.sql import functions as f

    equal_columns = (first_rows[quoted(name)].eqNullSafe(second_rows[quoted(name)]) for name in names)
    return reduce(lambda one, other: one & other, equal_columns, f.lit(True))


def _end(write: Write) -> Column:
    from pyspark.sql import functions as f

    first, *rest = write.sequence_by
    return f.struct(column_of(TO).alias(first), *(f.lit(None).alias(name) for name in rest))


def _type(rows: DataFrame, write: Write) -> DataType:
    return rows.select(as_struct(write.sequence_by)).schema[0].dataType
