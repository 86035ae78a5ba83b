"""Full extracts compared with the current versions of their keys: what ends, and what begins (`history: true`).

An extract has all rows as they are at one time. A key whose row differs from its current version ends that version and
begins another; a key that is missing ends it with `deletes: close`; one that comes back begins again, with a gap.
With `check` a version begins at the time of the extract, with `sequence_by` at the value of that column, unless an
earlier version of the key reaches beyond it: then at the time of the extract, so that versions never overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import Deletes, Write
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.merge_statement import Merge, merge
from engine.runtime.batch.history.extract import (
    NEW,
    OLD,
    Extract,
    check_rows,
    differs,
    fault,
    keys_have,
    paired,
    same_keys,
    shown_keys,
)
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.history_output import CURRENT, FROM, TO
from engine.runtime.sinks.latest_per_key import named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_START, _REACHES, _OPENS = "__start", "__reaches", "__opens"
# Times in which the time of an extract can be said.
_TIMES = {"timestamp", "timestamp_ntz", "date"}


def take_versions(
    model: Model, rows: DataFrame, extract: Extract, markers: Mapping[str, str], expected: ExpectedTable | None
) -> Commit | None:
    """Bring the versions in a model's table up to an extract, in one commit; None, and no commit, if nothing changed.

    `expected`: what the table must be; None: there is none, or it is recreated.

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
    pairs = paired(rows, table.where(named(CURRENT)), keys)
    ended = table.where(~named(CURRENT)).groupBy(*map(named, keys)).agg(f.max(named(TO)).alias(_REACHES))
    past = ended.select(f.struct(*map(named, keys)).alias("__key"), _REACHES)
    pairs = pairs.join(past, pairs[OLD].isNull() & same_keys(pairs[NEW], past["__key"], keys), "left")
    pairs = pairs.withColumn(_REACHES, f.coalesce(pairs[OLD][FROM], past[_REACHES])).drop("__key")
    pairs = pairs.withColumn(_START, _start(write, rows, extract))
    begins = f.col(NEW).isNotNull() & (f.col(OLD).isNull() | differs(rows, write))
    opened = pairs.where(begins)
    own = [f.col(NEW)[name].alias(name) for name in rows.columns]
    begun = opened.select(*own, f.col(_START).alias(FROM), *_ends(write, rows), _REACHES)
    kinds = f.lit(None).cast(_kind(write, rows))
    closing = opened.where(f.col(OLD).isNotNull()).withColumn(_OPENS, f.col(_START))
    if write.deletes is Deletes.CLOSE:
        gone = pairs.where(f.col(NEW).isNull())
        closing = closing.unionByName(gone.withColumn(_OPENS, _at(write, rows, extract)))
    old = [f.col(OLD)[name].alias(name) for name in keys]
    times = [f.coalesce(f.col(_OPENS), kinds).alias(TO), f.lit(False).alias(CURRENT)]
    over = closing.select(*old, f.col(OLD)[FROM].alias(FROM), *times, _REACHES)
    return begun.unionByName(over, allowMissingColumns=True)


def _start(write: Write, rows: DataFrame, extract: Extract) -> Column:
    from pyspark.sql import functions as f

    if not write.sequence_by:
        return _at(write, rows, extract)
    own = f.col(NEW)[write.sequence_by[0]]
    if _kind(write, rows) not in _TIMES:
        return own
    return f.when(f.col(_REACHES).isNull() | (own > f.col(_REACHES)), own).otherwise(_at(write, rows, extract))


def _begin(write: Write, rows: DataFrame, extract: Extract) -> Column:
    return named(write.sequence_by[0]) if write.sequence_by else _at(write, rows, extract)


def _at(write: Write, rows: DataFrame, extract: Extract) -> Column:
    from pyspark.sql import functions as f

    return f.timestamp_micros(f.lit(extract.at)).cast(_kind(write, rows))


def _kind(write: Write, rows: DataFrame) -> str:
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
        raise fault(model, "column-type", message, hint)


def _check_order(model: Model, changes: DataFrame, extract: Extract) -> int:
    """Check that no version would end before it begins, or begin before the one before it has ended."""
    from pyspark.sql import functions as f

    turned = f.when(named(CURRENT), named(FROM)).otherwise(named(TO)) <= f.col(_REACHES)
    ((changed, count),) = changes.agg(f.count("*"), f.count_if(turned)).collect()
    if count:
        keys = shown_keys(changes.where(turned), model.write.unique_key, count)
        message = f"{keys_have(count)} a version not before {extract.name} ({extract.shown()}): {keys}"
        hint = (
            "Extracts are taken in the order of time, and times are UTC: correct the clock, the time of the extract, "
            "or times of 'sequence_by' in the future. Nothing was written."
        )
        raise fault(model, "extract-order", message, hint)
    return int(changed)
