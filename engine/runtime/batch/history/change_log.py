"""The changes of keys from one full extract to the next, appended to a table (`history: changes`).

A key that was not there is an `insert`, one that is missing a `delete`; a row that differs is its row before
(`update_before`) and after (`update_after`). The last change of each key says which rows there were: so an extract is
compared with the table alone, and one that is taken twice brings no change the second time. Where the rows that differ
are known in another way (see `changed_rows`), only they are compared.

Rows are only appended, so that streams can read the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import Deletes, History, Write
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.quoted_names import quoted
from engine.runtime.batch.history.extract import NEW, OLD, Extract, check_empty, check_rows, differs, fault, paired
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.latest_per_key import named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TYPE, AT = History.CHANGES.columns
INSERT, BEFORE, AFTER, DELETE = "insert", "update_before", "update_after", "delete"


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """The rows by which a result differs from the last build's; `unique`: one row for each key is proven."""

    removed: DataFrame
    added: DataFrame
    now: DataFrame
    unique: bool


def take_changes(
    model: Model,
    rows: DataFrame,
    extract: Extract,
    markers: Mapping[str, str],
    expected: ExpectedTable | None,
    difference: ResultDifference | None = None,
) -> Commit | None:
    """Append the changes that an extract brings, in one commit; None, and no commit, if there are none.

    `rows`: of the extract, with the columns of the query; of a difference those that are added.
    `expected`: what the table must be; None: there is none, or it is recreated.
    `difference`: the rows by which the extract differs from the last one; None: all are compared.

    Raises:
        RunError: `duplicate-key`, `extract-empty`, `extract-order`; nothing was written.
        StateError: the table is not as expected.
    """
    session, relation = rows.sparkSession, model.relation.sql
    rows = rows.persist()
    try:
        if expected is None:
            # No key is lost where there were none.
            check_rows(replace(model, write=replace(model.write, deletes=Deletes.IGNORE)), rows, extract)
            first = rows.select(*_change(rows, INSERT, extract))
            return lake.replace(first, relation, table_setup.layout(model, 1), markers, model.write.write_options)
        table = session.table(relation)
        before = _rows_before(table, model.write) if difference is None else difference.removed
        if difference is None:
            check_rows(model, rows, extract)
        else:
            _check_difference(model, rows, difference, extract)
        changes = changed_keys(rows, before, model.write, _after(model, table, extract))
        kill_points.reach("merging", model.name, None, relation)
        return lake.append(lake.stage(changes, relation, model.write.write_options), markers, expected=expected)
    finally:
        rows.unpersist()


def changed_keys(rows: DataFrame, before: DataFrame, write: Write, extract: Extract) -> DataFrame:
    """The changes from some rows to others, one or two for each key that differs; columns are those of `rows`."""
    from pyspark.sql import functions as f

    pairs = paired(rows, before, write.unique_key)
    both = f.col(NEW).isNotNull() & f.col(OLD).isNotNull()
    changed = pairs.where(~both | differs(rows, write))
    update = [_typed(rows, OLD, BEFORE), _typed(rows, NEW, AFTER)]
    gone = [_typed(rows, OLD, DELETE)] if write.deletes is Deletes.CLOSE else []
    kinds = f.when(both, f.array(*update)).when(f.col(OLD).isNull(), f.array(_typed(rows, NEW, INSERT)))
    kinds = kinds.otherwise(f.array(*gone)) if gone else kinds
    each = changed.select(f.explode(kinds).alias("__change"))
    columns = [f.col("__change")[name].alias(name) for name in (*rows.columns, TYPE)]
    return each.select(*columns, _at(extract).alias(AT))


def _typed(rows: DataFrame, side: str, kind: str) -> Column:
    from pyspark.sql import functions as f

    fields = (f.col(side)[field.name].cast(field.dataType).alias(field.name) for field in rows.schema.fields)
    return f.struct(*fields, f.lit(kind).alias(TYPE))


def _change(rows: DataFrame, kind: str, extract: Extract) -> list[Column]:
    from pyspark.sql import functions as f

    return [*map(named, rows.columns), f.lit(kind).alias(TYPE), _at(extract).alias(AT)]


def _at(extract: Extract) -> Column:
    from pyspark.sql import functions as f

    return f.timestamp_micros(f.lit(extract.at))


def _rows_before(table: DataFrame, write: Write) -> DataFrame:
    from pyspark.sql import functions as f

    # The row before an update has the time of that after it.
    last = table.where(named(TYPE) != BEFORE).groupBy(*map(named, write.unique_key))
    rows = last.agg(f.max_by(f.struct("*"), named(AT)).alias(OLD)).select(f"{quoted(OLD)}.*")
    return rows.where(named(TYPE) != DELETE)


def _after(model: Model, table: DataFrame, extract: Extract) -> Extract:
    """The extract with a time after that of all changes so far.

    Raises:
        RunError: `extract-order`: it is a file of an earlier time.
    """
    from pyspark.sql import functions as f

    ((last,),) = table.agg(f.max(f.unix_micros(named(AT)))).collect()
    if last is None or extract.at > last:
        return extract
    if extract.of_build:
        # A clock that was set back.
        return replace(extract, at=last + 1)
    message = f"{extract.name} ({extract.shown()}) is not after the last change"
    hint = "Extracts are taken in the order of time, and times are UTC: correct that of the file. Nothing was written."
    raise fault(model, "extract-order", message, hint)


def _check_difference(model: Model, rows: DataFrame, difference: ResultDifference, extract: Extract) -> None:
    """Check the rows that are added as those of an extract are, which has more of them."""
    from pyspark.sql import functions as f

    keys = model.write.unique_key
    if rows.isEmpty():
        if not difference.removed.isEmpty() and difference.now.isEmpty():
            check_empty(model, extract)
        return
    unique = replace(model, write=replace(model.write, deletes=Deletes.IGNORE))
    if difference.unique:
        return
    touched = rows.select(*(named(key).alias(f"__key{number}") for number, key in enumerate(keys))).distinct()
    same = f.lit(True)
    for number, key in enumerate(keys):
        same = same & difference.now[quoted(key)].eqNullSafe(touched[f"__key{number}"])
    check_rows(unique, difference.now.join(touched, same, "left_semi"), extract)
