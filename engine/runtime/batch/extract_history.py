"""Full extracts compared with the current versions of their keys: what ends, and what begins (`history: true`).

An extract has all rows as they are at one time. A key whose row differs from its current version ends that version and
begins another; a key that is missing ends it with `deletes: close`; one that comes back begins again, with a gap.
With `check` a version begins at the time of the extract, with `sequence_by` at the value of that column, unless an
earlier version of the key reaches beyond it: then at the time of the extract, so that versions never overlap.
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
from engine.runtime.sinks.history_output import CURRENT, FROM, TO
from engine.runtime.sinks.latest_per_key import comparable, named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NEW, _OLD, _START, _REACHES, _OPENS = "__new", "__old", "__start", "__reaches", "__opens"
_COPIES, _UNSET = "__copies", "__unset"
_SHOWN = 3
# Times in which the time of an extract can be said.
_TIMES = {"timestamp", "timestamp_ntz", "date"}


@dataclass(frozen=True, slots=True)
class Extract:
    """A full extract.

    Attributes:
        at: the time that its rows are of, in microseconds since 1970.
        name: what messages call it.
    """

    at: int
    name: str

    def shown(self) -> str:
        """The time as text, UTC."""
        return datetime.fromtimestamp(self.at / 1_000_000, UTC).isoformat(" ", "microseconds").removesuffix("+00:00")


def take(
    model: Model, rows: DataFrame, extract: Extract, markers: Mapping[str, str], expected: ExpectedTable | None
) -> Commit | None:
    """Bring the versions in a model's table up to an extract, in one commit; None, and no commit, if nothing changed.

    Args:
        model: a batch table that keeps history.
        rows: of the extract, with the columns of the query.
        extract: which one it is.
        markers: of the commit, without the prefix `engine.`.
        expected: what the table must be; None: there is none, or it is recreated.

    Raises:
        RunError: `duplicate-key`, `sequence-null`, `extract-empty`, `extract-order`; nothing was written.
        StateError: the table is not as expected.
    """
    session, relation = rows.sparkSession, model.relation.sql
    rows = rows.persist()
    try:
        _check_type(model, rows)
        _check_rows(model, rows, extract)
        if expected is None:
            first = rows.withColumns({FROM: _begin(model.write, rows, extract), **_open(model.write, rows)})
            return lake.replace(first, relation, table_setup.layout(model, 1), markers, model.write.write_options)
        changes = changed_versions(session.table(relation), rows, model.write, extract).persist()
        try:
            if not _check_order(model, changes, extract):
                return None
            kill_points.reach("merging", model.name, None, relation)
            keys = (*model.write.unique_key, FROM)
            how = Merge(keys, update=(TO, CURRENT))
            source = changes.drop(_REACHES)
            return merge(source, relation, how, markers, expected=expected, options=model.write.write_options)
        finally:
            changes.unpersist()
    finally:
        rows.unpersist()


def changed_versions(table: DataFrame, rows: DataFrame, write: Write, extract: Extract) -> DataFrame:
    """The versions that begin with an extract, and those that end: of these only keys and times are set.

    The column `__reaches` has the time to which the version before reaches; it has to be earlier than `valid_from` of
    one that begins and `valid_to` of one that ends.
    """
    from pyspark.sql import functions as f

    keys = write.unique_key
    now = table.where(named(CURRENT)).select(f.struct("*").alias(_OLD))
    new = rows.select(f.struct("*").alias(_NEW))
    pairs = new.join(now, _same_keys(new[_NEW], now[_OLD], keys), "full_outer")
    ended = table.where(~named(CURRENT)).groupBy(*map(named, keys)).agg(f.max(named(TO)).alias(_REACHES))
    past = ended.select(f.struct(*map(named, keys)).alias("__key"), _REACHES)
    pairs = pairs.join(past, pairs[_OLD].isNull() & _same_keys(pairs[_NEW], past["__key"], keys), "left")
    pairs = pairs.withColumn(_REACHES, f.coalesce(pairs[_OLD][FROM], past[_REACHES])).drop("__key")
    pairs = pairs.withColumn(_START, _start(write, rows, extract))
    begins = f.col(_NEW).isNotNull() & (f.col(_OLD).isNull() | _differs(rows, write))
    opened = pairs.where(begins)
    own = [f.col(_NEW)[name].alias(name) for name in rows.columns]
    begun = opened.select(*own, f.col(_START).alias(FROM), *_ends(write, rows), _REACHES)
    kinds = f.lit(None).cast(_kind(write, rows))
    closing = opened.where(f.col(_OLD).isNotNull()).withColumn(_OPENS, f.col(_START))
    if write.deletes is Deletes.CLOSE:
        gone = pairs.where(f.col(_NEW).isNull())
        closing = closing.unionByName(gone.withColumn(_OPENS, _at(write, rows, extract)))
    old = [f.col(_OLD)[name].alias(name) for name in keys]
    times = [f.coalesce(f.col(_OPENS), kinds).alias(TO), f.lit(False).alias(CURRENT)]
    over = closing.select(*old, f.col(_OLD)[FROM].alias(FROM), *times, _REACHES)
    return begun.unionByName(over, allowMissingColumns=True)


def _same_keys(left: Column, right: Column, keys: Sequence[str]) -> Column:
    return reduce(lambda one, other: one & other, (left[name].eqNullSafe(right[name]) for name in keys))


def _differs(rows: DataFrame, write: Write) -> Column:
    """Whether the row of the extract is another version than the current one."""
    from pyspark.sql import functions as f

    if write.sequence_by:
        (name,) = write.sequence_by
        return f.col(_NEW)[name] > f.col(_OLD)[name]
    compared = [name for name in rows.columns if name not in write.unique_key] if write.check_all else write.check
    each = (
        comparable(rows, name, f.col(_NEW)[name]).eqNullSafe(comparable(rows, name, f.col(_OLD)[name]))
        for name in compared
    )
    return ~reduce(lambda one, other: one & other, each, f.lit(True))


def _start(write: Write, rows: DataFrame, extract: Extract) -> Column:
    """When a version begins that an extract brings."""
    from pyspark.sql import functions as f

    if not write.sequence_by:
        return _at(write, rows, extract)
    own = f.col(_NEW)[write.sequence_by[0]]
    if _kind(write, rows) not in _TIMES:
        return own
    return f.when(f.col(_REACHES).isNull() | (own > f.col(_REACHES)), own).otherwise(_at(write, rows, extract))


def _begin(write: Write, rows: DataFrame, extract: Extract) -> Column:
    """When the versions of the first extract begin."""
    return named(write.sequence_by[0]) if write.sequence_by else _at(write, rows, extract)


def _at(write: Write, rows: DataFrame, extract: Extract) -> Column:
    from pyspark.sql import functions as f

    return f.timestamp_micros(f.lit(extract.at)).cast(_kind(write, rows))


def _kind(write: Write, rows: DataFrame) -> str:
    """The type of `valid_from` and `valid_to`."""
    if not write.sequence_by:
        return "timestamp"
    return str(rows.select(named(write.sequence_by[0])).schema[0].dataType.simpleString())


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
        raise _fault(model, "column-type", message, hint)


def _check_rows(model: Model, rows: DataFrame, extract: Extract) -> None:
    """Check an extract by itself: one row for each key, a sequence in each row, and rows where they are needed."""
    from pyspark.sql import functions as f

    write, keys = model.write, model.write.unique_key
    unset = reduce(lambda one, other: one | other, (named(name).isNull() for name in write.sequence_by), f.lit(False))
    by_key = rows.groupBy(*map(named, keys)).agg(f.count("*").alias(_COPIES), f.count_if(unset).alias(_UNSET))
    several, missing = f.col(_COPIES) > 1, f.col(_UNSET) > 0
    ((found, copied, nulls),) = by_key.agg(f.count("*"), f.count_if(several), f.count_if(missing)).collect()
    if copied:
        message = f"{_number(copied)} more than one row in {extract.name}: {_keys(by_key.where(several), keys, copied)}"
        hint = f"One row of each key is a version. Reduce the query to one row for each {', '.join(keys)}."
        raise _fault(model, "duplicate-key", message, hint)
    if nulls:
        name = write.sequence_by[0]
        message = f"{_number(nulls)} no '{name}' in {extract.name}: {_keys(by_key.where(missing), keys, nulls)}"
        hint = f"A version begins at '{name}': write coalesce(..) as {name}, or use 'check: all'."
        raise _fault(model, "sequence-null", message, hint)
    if not found and write.deletes is Deletes.CLOSE and write.on_empty_extract is OnEmptyExtract.FAIL:
        message = f"{extract.name} has no rows: with 'deletes: close' it would end the current version of each key"
        hint = "Repair or remove the extract. If nothing is left indeed, set 'on_empty_extract: close'."
        raise _fault(model, "extract-empty", message, hint)


def _check_order(model: Model, changes: DataFrame, extract: Extract) -> int:
    """Check that no version would end before it begins, or begin before the one before it has ended.

    Returns:
        How many versions begin or end.
    """
    from pyspark.sql import functions as f

    turned = f.when(named(CURRENT), named(FROM)).otherwise(named(TO)) <= f.col(_REACHES)
    ((changed, count),) = changes.agg(f.count("*"), f.count_if(turned)).collect()
    if count:
        keys = _keys(changes.where(turned), model.write.unique_key, count)
        message = f"{_number(count)} a version not before {extract.name} ({extract.shown()}): {keys}"
        hint = (
            "Extracts are taken in the order of time, and times are UTC: correct the clock, the time of the extract, "
            "or times of 'sequence_by' in the future. Nothing was written."
        )
        raise _fault(model, "extract-order", message, hint)
    return int(changed)


def _keys(rows: DataFrame, keys: Sequence[str], count: int) -> str:
    from pyspark.sql import functions as f

    key = f.to_json(as_struct(tuple(keys)))
    some = rows.select(key).distinct().sort(key).limit(_SHOWN).collect()
    return ", ".join(row[0] for row in some) + (", ..." if count > _SHOWN else "")


def _number(count: int) -> str:
    return "1 key has" if count == 1 else f"{count:,} keys have"


def _fault(model: Model, code: str, message: str, hint: str) -> RunError:
    return RunError(code, message, hint, node=model.name, location=Location(model.file))
