"""Full extracts compared with the current versions of their keys: what ends, and what begins (`history: true`).

A key whose row differs ends its version and begins another; a missing key ends it with `deletes: close`; one that comes
back begins again, with a gap. With `check` a version begins at the time of the extract, with `sequence_by` at the value
of that column, unless an earlier version of the key reaches beyond it: then at the time of the extract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import Deletes, OnEmptyExtract, Write
from engine.errors import Location, RunError
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.merge_statement import Merge, merge
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.deleted_keys import as_struct
from engine.runtime.sinks.history_output import CURRENT, FROM, TO, column_of, comparable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# The rows of an extract, and those that it is compared with, each as a struct.
NEW, OLD = "__new", "__old"
_COPIES, _UNSET = "__copies", "__unset"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Extract:
    """A full extract.

    `at`: the time that its rows are of, in microseconds since 1970. `of_build`: it is the query's result now, and not a
    file of some time.
    """

    at: int
    name: str
    of_build: bool = False

    def time_text(self) -> str:
        return datetime.fromtimestamp(self.at / 1_000_000, UTC).isoformat(" ", "microseconds").removesuffix("+00:00")


def paired(rows: DataFrame, earlier_rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Pair the rows of an extract (`NEW`) with those of another one (`OLD`) by their keys; one of both may be NULL."""
    from pyspark.sql import functions as f

    new, old = rows.select(f.struct("*").alias(NEW)), earlier_rows.select(f.struct("*").alias(OLD))
    return new.join(old, same_keys(new[NEW], old[OLD], keys), "full_outer")


def same_keys(first: Column, second: Column, keys: Sequence[str]) -> Column:
    """Whether two structs have the same values of some keys; NULL is a value."""
    return reduce(lambda one, other: one & other, (first[name].eqNullSafe(second[name]) for name in keys))


def differs(rows: DataFrame, write: Write) -> Column:
    from pyspark.sql import functions as f

    if write.sequence_by:
        (name,) = write.sequence_by
        return f.col(NEW)[name] > f.col(OLD)[name]
    compared = [name for name in rows.columns if name not in write.unique_key] if write.check_all else write.check
    each = (
        comparable(rows, name, f.col(NEW)[name]).eqNullSafe(comparable(rows, name, f.col(OLD)[name]))
        for name in compared
    )
    return ~reduce(lambda one, other: one & other, each, f.lit(True))


def check_rows(model: Model, rows: DataFrame, extract: Extract) -> None:
    """Check an extract by itself: one row for each key, a sequence in each row, and rows where they are needed.

    Raises RunError: `duplicate-key`, `sequence-null` or `extract-empty`.
    """
    from pyspark.sql import functions as f

    write, keys = model.write, model.write.unique_key
    unset = reduce(
        lambda one, other: one | other, (column_of(name).isNull() for name in write.sequence_by), f.lit(False)
    )
    by_key = rows.groupBy(*map(column_of, keys)).agg(f.count("*").alias(_COPIES), f.count_if(unset).alias(_UNSET))
    several, has_null = f.col(_COPIES) > 1, f.col(_UNSET) > 0
    ((key_count, copied, nulls),) = by_key.agg(f.count("*"), f.count_if(several), f.count_if(has_null)).collect()
    if copied:
        key_texts = shown_keys(by_key.where(several), keys, copied)
        message = f"{keys_have(copied)} more than one row in {extract.name}: {key_texts}"
        hint = f"One row of each key is a version. Reduce the query to one row for each {', '.join(keys)}."
        raise fault(model, "duplicate-key", message, hint)
    if nulls:
        name = write.sequence_by[0]
        message = f"{keys_have(nulls)} no '{name}' in {extract.name}: {shown_keys(by_key.where(has_null), keys, nulls)}"
        hint = f"A version begins at '{name}': write coalesce(..) as {name}, or use 'check: all'."
        raise fault(model, "sequence-null", message, hint)
    if not key_count:
        check_empty(model, extract)


def check_empty(model: Model, extract: Extract) -> None:
    """Check that an extract may be without rows. Raises RunError: `extract-empty`."""
    write = model.write
    if write.deletes is Deletes.CLOSE and write.on_empty_extract is OnEmptyExtract.FAIL:
        message = f"{extract.name} has no rows: with 'deletes: close' each key would count as deleted"
        hint = "Repair or remove the extract. If nothing is left indeed, set 'on_empty_extract: close'."
        raise fault(model, "extract-empty", message, hint)


def shown_keys(rows: DataFrame, keys: Sequence[str], count: int) -> str:
    from pyspark.sql import functions as f

    key = f.to_json(as_struct(tuple(keys)))
    some = rows.select(key).distinct().sort(key).limit(_SHOWN).collect()
    return ", ".join(row[0] for row in some) + (", ..." if count > _SHOWN else "")


def keys_have(count: int) -> str:
    return "1 key has" if count == 1 else f"{count:,} keys have"


def fault(model: Model, code: str, message: str, hint: str) -> RunError:
    return RunError(code, message, hint, node=model.name, location=Location(model.file))


_START, _REACHES, _OPENS = "__start", "__reaches", "__opens"
# Times in which the time of an extract can be said.
_TIMES = {"timestamp", "timestamp_ntz", "date"}


def take_versions(
    model: Model, rows: DataFrame, extract: Extract, markers: Mapping[str, str], expected: ExpectedTable | None
) -> Commit | None:
    """Bring the versions in a model's table up to an extract, in one commit; None, and no commit, if nothing changed.

    Raises:
        RunError: `duplicate-key`, `sequence-null`, `extract-empty`, `extract-order`; nothing was written.
        StateError: the table is not as expected.
    """
    session, relation = rows.sparkSession, model.relation.sql
    rows = rows.persist()
    try:
        _check_type(model, rows)
        check_rows(model, rows, extract)
        if expected is None:
            first = rows.withColumns({FROM: _first_start(model.write, rows, extract), **_open(model.write, rows)})
            return lake.replace(first, relation, table_setup.layout(model, 1), markers, model.write.write_options)
        changes = changed_versions(session.table(relation), rows, model.write, extract).persist()
        try:
            if not _check_order(model, changes, extract):
                return None
            kill_points.reach("merging", model.name, None, relation)
            keys = (*model.write.unique_key, FROM)
            merge_rule = Merge(keys, update=(TO, CURRENT))
            source = changes.drop(_REACHES)
            return merge(source, relation, merge_rule, markers, expected=expected, options=model.write.write_options)
        finally:
            changes.unpersist()
    finally:
        rows.unpersist()


def changed_versions(table: DataFrame, rows: DataFrame, write: Write, extract: Extract) -> DataFrame:
    """Return the versions that begin with an extract, and those that end: of these only keys and times are set.

    `__reaches`, to which the version before reaches, has to be earlier than `valid_from` or `valid_to` of these.
    """
    from pyspark.sql import functions as f

    keys = write.unique_key
    pairs = paired(rows, table.where(column_of(CURRENT)), keys)
    ended_versions = (
        table.where(~column_of(CURRENT)).groupBy(*map(column_of, keys)).agg(f.max(column_of(TO)).alias(_REACHES))
    )
    past = ended_versions.select(f.struct(*map(column_of, keys)).alias("__key"), _REACHES)
    pairs = pairs.join(past, pairs[OLD].isNull() & same_keys(pairs[NEW], past["__key"], keys), "left")
    pairs = pairs.withColumn(_REACHES, f.coalesce(pairs[OLD][FROM], past[_REACHES])).drop("__key")
    pairs = pairs.withColumn(_START, _start(write, rows, extract))
    begins = f.col(NEW).isNotNull() & (f.col(OLD).isNull() | differs(rows, write))
    opening = pairs.where(begins)
    query_columns = [f.col(NEW)[name].alias(name) for name in rows.columns]
    begun_versions = opening.select(*query_columns, f.col(_START).alias(FROM), *_ends(write, rows), _REACHES)
    kinds = f.lit(None).cast(_kind(write, rows))
    closing = opening.where(f.col(OLD).isNotNull()).withColumn(_OPENS, f.col(_START))
    if write.deletes is Deletes.CLOSE:
        missing_keys = pairs.where(f.col(NEW).isNull())
        closing = closing.unionByName(missing_keys.withColumn(_OPENS, _extract_time(write, rows, extract)))
    old = [f.col(OLD)[name].alias(name) for name in keys]
    times = [f.coalesce(f.col(_OPENS), kinds).alias(TO), f.lit(False).alias(CURRENT)]
    closed_versions = closing.select(*old, f.col(OLD)[FROM].alias(FROM), *times, _REACHES)
    return begun_versions.unionByName(closed_versions, allowMissingColumns=True)


def _start(write: Write, rows: DataFrame, extract: Extract) -> Column:
    from pyspark.sql import functions as f

    if not write.sequence_by:
        return _extract_time(write, rows, extract)
    sequence = f.col(NEW)[write.sequence_by[0]]
    if _kind(write, rows) not in _TIMES:
        return sequence
    return f.when(f.col(_REACHES).isNull() | (sequence > f.col(_REACHES)), sequence).otherwise(
        _extract_time(write, rows, extract)
    )


def _first_start(write: Write, rows: DataFrame, extract: Extract) -> Column:
    return column_of(write.sequence_by[0]) if write.sequence_by else _extract_time(write, rows, extract)


def _extract_time(write: Write, rows: DataFrame, extract: Extract) -> Column:
    from pyspark.sql import functions as f

    return f.timestamp_micros(f.lit(extract.at)).cast(_kind(write, rows))


def _kind(write: Write, rows: DataFrame) -> str:
    if not write.sequence_by:
        return "timestamp"
    return str(rows.select(column_of(write.sequence_by[0])).schema[0].dataType.simpleString())


def _open(write: Write, rows: DataFrame) -> dict[str, Column]:
    from pyspark.sql import functions as f

    return {TO: f.lit(None).cast(_kind(write, rows)), CURRENT: f.lit(True)}


def _ends(write: Write, rows: DataFrame) -> list[Column]:
    return [column.alias(name) for name, column in _open(write, rows).items()]


def _check_type(model: Model, rows: DataFrame) -> None:
    write = model.write
    if write.deletes is Deletes.CLOSE and (kind := _kind(write, rows)) not in _TIMES:
        message = f"with 'deletes: close' a version ends at a time, and '{write.sequence_by[0]}' is {kind}"
        hint = "Use 'check' instead of 'sequence_by', a column of type timestamp or date, or 'deletes: ignore'."
        raise fault(model, "column-type", message, hint)


def _check_order(model: Model, changes: DataFrame, extract: Extract) -> int:
    """Check that no version would end before it begins, or begin before the one before it has ended."""
    from pyspark.sql import functions as f

    turned = f.when(column_of(CURRENT), column_of(FROM)).otherwise(column_of(TO)) <= f.col(_REACHES)
    ((changed, count),) = changes.agg(f.count("*"), f.count_if(turned)).collect()
    if count:
        keys = shown_keys(changes.where(turned), model.write.unique_key, count)
        message = f"{keys_have(count)} a version not before {extract.name} ({extract.time_text()}): {keys}"
        hint = (
            "Extracts are taken in the order of time, and times are UTC: correct the clock, the time of the extract, "
            "or times of 'sequence_by' in the future. Nothing was written."
        )
        raise fault(model, "extract-order", message, hint)
    return int(changed)
