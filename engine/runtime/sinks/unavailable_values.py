"""Values that a change feed did not send because they did not change, taken from the previous row of their key.

That is an earlier change of the micro-batch, or the row of the table. Without one the change cannot be written: it goes
to the quarantine. So does a change with a column that is computed from a value that was sent and one that was not.
Values are taken in the order of `sequence_by`: a repeated change has the values that it had at first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.compile.nodes.model_settings import History, UnavailableValues, Write
from engine.runtime.sinks.deleted_keys import as_struct
from engine.runtime.sinks.history_output import TO, column_of, same_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Why a change cannot be written: text, NULL for others.
UNWRITABLE: Final = "__unwritable"
_IN_TABLE, _VALUE, _IS_STORED, _AT = "__in_table", "__value_{}", "__is_stored", "__at"


def unavailable_columns(frame: DataFrame, values: UnavailableValues) -> tuple[str, ...]:
    """The source's columns that some change lacks; computes the frame."""
    from pyspark.sql import functions as f

    rows = frame.select(f.explode(column_of(values.column))).distinct().collect()
    return tuple(sorted(row[0] for row in rows))


def with_stored_values(
    rows: DataFrame, table: DataFrame, write: Write, values: UnavailableValues, lacking: Sequence[str], delete: str
) -> DataFrame:
    """The changes with values in place of those that were not sent, and the column UNWRITABLE.

    Args:
        rows: changes, several of a key too.
        table: as it is before they are written.
        write: keys and sequence.
        values: which values were not sent.
        lacking: the source's columns that some change lacks.
        delete: the column that says whether a change deletes.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    in_table = {name.lower() for name in table.columns}
    columns = {
        name: sources
        for name, sources in values.computed_from.items()
        if name.lower() in in_table and not set(lacking).isdisjoint(sources)
    }
    if not columns:
        return rows.withColumn(UNWRITABLE, f.lit(None).cast("string"))
    all_rows = rows.withColumn(_IN_TABLE, f.lit(False))
    for stored_rows in _stored_rows(rows, table, write, values, tuple(columns), delete):
        all_rows = all_rows.unionByName(stored_rows, allowMissingColumns=True)
    order = [column_of(name).asc_nulls_first() for name in write.sequence_by]
    by_key = Window.partitionBy(*map(column_of, write.unique_key))
    so_far = by_key.orderBy(*order, f.col(_IN_TABLE).desc()).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    latest_values = {}
    for number, (name, sources) in enumerate(columns.items()):
        value = _value_for_later_rows(all_rows, name, sources, values, delete)
        latest_values[_VALUE.format(number)] = f.last(value, ignorenulls=True).over(so_far)
    at = as_struct(write.sequence_by)
    newest_stored = f.max(f.when(f.col(_IN_TABLE), at)).over(by_key)
    all_rows = all_rows.withColumns({**latest_values, _AT: newest_stored >= at}).where(~f.col(_IN_TABLE))
    reason = _reason(columns, values, is_outdated=f.col(_AT) if write.history is History.NONE else f.lit(False))
    filled = {
        name: f.when(_lacks(values, sources), f.col(_VALUE.format(number))["value"]).otherwise(column_of(name))
        for number, (name, sources) in enumerate(columns.items())
    }
    all_rows = all_rows.withColumn(UNWRITABLE, reason).withColumns(filled)
    return all_rows.drop(_IN_TABLE, _AT, *latest_values)


def _stored_rows(
    rows: DataFrame, table: DataFrame, write: Write, values: UnavailableValues, columns: Sequence[str], delete: str
) -> list[DataFrame]:
    """The rows of the table with the keys of changes that lack values; of a history, also where its versions end."""
    from pyspark.sql import functions as f

    keys, (first, *rest) = write.unique_key, write.sequence_by
    touched = rows.where(column_of(values.column).isNotNull()).select(*map(column_of, keys)).distinct()
    table_rows = table.join(touched, same_keys(table, touched, keys), "left_semi")
    marks = [f.lit(True).alias(_IN_TABLE), f.lit(False).alias(delete)]
    parts = [table_rows.select(*map(column_of, dict.fromkeys((*keys, *write.sequence_by, *columns))), *marks)]
    if write.history is not History.NONE:
        ends = [column_of(TO).alias(first), *(f.lit(None).alias(name) for name in rest)]
        ended_versions = table_rows.where(column_of(TO).isNotNull())
        parts.append(ended_versions.select(*map(column_of, keys), *ends, marks[0], f.lit(True).alias(delete)))
    return parts


def _lacks(values: UnavailableValues, sources: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    return f.coalesce(f.arrays_overlap(column_of(values.column), _array(sources)), f.lit(False))


def _lacks_only_some(values: UnavailableValues, sources: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    return _lacks(values, sources) & (f.size(f.array_except(_array(sources), column_of(values.column))) > 0)


def _array(names: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    return f.array(*map(f.lit, names))


def _value_for_later_rows(
    rows: DataFrame, name: str, sources: Sequence[str], values: UnavailableValues, delete: str
) -> Column:
    """What a row says of a column for those that follow: `value` and whether it is stored; NULL: look further back."""
    from pyspark.sql import functions as f

    nothing = f.struct(
        f.lit(None).cast(rows.select(column_of(name)).schema[0].dataType).alias("value"), f.lit(False).alias(_IS_STORED)
    )
    is_new = f.coalesce(f.expr(f"({values.insert_when})"), f.lit(False))
    lacks = _lacks(values, sources)
    sent_value = f.struct(column_of(name).alias("value"), f.lit(True).alias(_IS_STORED))
    return (
        f.when(f.col(delete), nothing)
        .when(lacks & (is_new | _lacks_only_some(values, sources)), nothing)
        .when(~lacks, sent_value)
    )


def _reason(columns: Mapping[str, Sequence[str]], values: UnavailableValues, is_outdated: Column) -> Column:
    from pyspark.sql import functions as f

    reasons = []
    for number, (name, sources) in enumerate(columns.items()):
        mixed = f"'{name}' is computed from a value that was sent and one that was not because it did not change"
        absent = f"'{name}' was not sent because it did not change, and the table does not have its row"
        is_stored = f.coalesce(f.col(_VALUE.format(number))[_IS_STORED], f.lit(False))
        text = f.when(_lacks_only_some(values, sources), mixed).otherwise(absent)
        reasons.append(f.when(_lacks(values, sources) & ~is_stored & ~f.coalesce(is_outdated, f.lit(False)), text))
    return f.coalesce(*reasons)
