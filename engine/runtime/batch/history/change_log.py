"""The changes of keys from one full extract to the next, appended to a table (`history: changes`).

A new key is an `insert`, a missing one a `delete`; a row that differs is its row before (`update_before`) and after
(`update_after`). The last change of each key says which rows there were: an extract that is taken twice brings no
change the second time. Rows are only appended, so that streams can read the table.

For a query that gives a row or none for each row of one table, it is run over that table's removed and added rows alone
(see `engine.lake.changes`), and only they are compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import Deletes, History, OutputMode, Write
from engine.compile.refresh.changed_keys import InputState, follow_changes
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, unquoted_view
from engine.relations import quoted
from engine.runtime.batch.followed_changes import FullRefreshError, InputReading, state_name, table_of
from engine.runtime.batch.history.ended_versions import (
    NEW,
    OLD,
    Extract,
    check_empty,
    check_rows,
    differs,
    fault,
    paired,
)
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.history_output import column_of
from engine.runtime.spark_support.spark_errors import spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


TYPE, AT = History.CHANGES.columns
INSERT, BEFORE, AFTER, DELETE = "insert", "update_before", "update_after", "delete"


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """The rows by which a result differs from the last build's; `unique`: one row for each key is proven."""

    removed: DataFrame
    added: DataFrame
    result: DataFrame
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

    `rows` have the columns of the query; of a `difference` (None: all are compared) they are those that are added.
    `expected` None: there is no table, or it is recreated.

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
        earlier_rows = _rows_before(table, model.write) if difference is None else difference.removed
        if difference is None:
            check_rows(model, rows, extract)
        else:
            _check_difference(model, rows, difference, extract)
        changes = changed_keys(rows, earlier_rows, model.write, _after_last_change(model, table, extract))
        kill_points.reach("merging", model.name, None, relation)
        return lake.append(lake.stage(changes, relation, model.write.write_options), markers, expected=expected)
    finally:
        rows.unpersist()


def changed_keys(rows: DataFrame, earlier_rows: DataFrame, write: Write, extract: Extract) -> DataFrame:
    """The changes from some rows to others, one or two for each key that differs; columns are those of `rows`."""
    from pyspark.sql import functions as f

    pairs = paired(rows, earlier_rows, write.unique_key)
    in_both = f.col(NEW).isNotNull() & f.col(OLD).isNotNull()
    changed_pairs = pairs.where(~in_both | differs(rows, write))
    update = [_typed(rows, OLD, BEFORE), _typed(rows, NEW, AFTER)]
    deletes = [_typed(rows, OLD, DELETE)] if write.deletes is Deletes.CLOSE else []
    kinds = f.when(in_both, f.array(*update)).when(f.col(OLD).isNull(), f.array(_typed(rows, NEW, INSERT)))
    kinds = kinds.otherwise(f.array(*deletes)) if deletes else kinds
    each = changed_pairs.select(f.explode(kinds).alias("__change"))
    columns = [f.col("__change")[name].alias(name) for name in (*rows.columns, TYPE)]
    return each.select(*columns, _extract_time(extract).alias(AT))


def _typed(rows: DataFrame, side: str, kind: str) -> Column:
    from pyspark.sql import functions as f

    fields = (f.col(side)[field.name].cast(field.dataType).alias(field.name) for field in rows.schema.fields)
    return f.struct(*fields, f.lit(kind).alias(TYPE))


def _change(rows: DataFrame, kind: str, extract: Extract) -> list[Column]:
    from pyspark.sql import functions as f

    return [*map(column_of, rows.columns), f.lit(kind).alias(TYPE), _extract_time(extract).alias(AT)]


def _extract_time(extract: Extract) -> Column:
    from pyspark.sql import functions as f

    return f.timestamp_micros(f.lit(extract.at))


def _rows_before(table: DataFrame, write: Write) -> DataFrame:
    from pyspark.sql import functions as f

    # The row before an update has the time of that after it.
    last = table.where(column_of(TYPE) != BEFORE).groupBy(*map(column_of, write.unique_key))
    rows = last.agg(f.max_by(f.struct("*"), column_of(AT)).alias(OLD)).select(f"{quoted(OLD)}.*")
    return rows.where(column_of(TYPE) != DELETE)


def _after_last_change(model: Model, table: DataFrame, extract: Extract) -> Extract:
    """The extract with a time after that of all changes so far.

    Raises RunError: `extract-order`: it is a file of an earlier time.
    """
    from pyspark.sql import functions as f

    ((last,),) = table.agg(f.max(f.unix_micros(column_of(AT)))).collect()
    if last is None or extract.at > last:
        return extract
    if extract.of_build:
        # A clock that was set back.
        return replace(extract, at=last + 1)
    message = f"{extract.name} ({extract.time_text()}) is not after the last change"
    hint = (
        "Extracts are taken in the order of time, and times are UTC: correct the time of the file. Nothing was written."
    )
    raise fault(model, "extract-order", message, hint)


def _check_difference(model: Model, rows: DataFrame, difference: ResultDifference, extract: Extract) -> None:
    """Check the rows that are added as those of an extract are, which has more of them."""
    from pyspark.sql import functions as f

    keys = model.write.unique_key
    if rows.isEmpty():
        if not difference.removed.isEmpty() and difference.result.isEmpty():
            check_empty(model, extract)
        return
    unique = replace(model, write=replace(model.write, deletes=Deletes.IGNORE))
    if difference.unique:
        return
    touched = rows.select(*(column_of(key).alias(f"__key{number}") for number, key in enumerate(keys))).distinct()
    keys_match = f.lit(True)
    for number, key in enumerate(keys):
        keys_match = keys_match & difference.result[quoted(key)].eqNullSafe(touched[f"__key{number}"])
    check_rows(unique, difference.result.join(touched, keys_match, "left_semi"), extract)


_COLUMN = re.compile(r"(?:`?\w+`?\.)?`?(\w+)`?")


@dataclass(frozen=True, slots=True)
class ChangedRows:
    difference: ResultDifference
    note: str


def changed_rows(
    run: Run, session: SparkSession, model: Model, choice: RefreshChoice, stack: ExitStack
) -> ChangedRows | None:
    """Find the rows by which a query's result differs from that of the last build; None: all have to be compared."""
    if not choice.row_by_row or register(session, run.manifest, model, run.place, bounded=True):
        return None
    (change,) = choice.inputs
    reading = InputReading(session, run.lake, run.manifest, stack)
    try:
        files = reading.files(change)
        net = None if files.none else reading.net_rows(change, files)
    # What cannot be compared, or has expired meanwhile: all rows are compared, which Spark can or says why not.
    except FullRefreshError:
        return None
    except spark_exceptions():
        return None
    relation, view = table_of(run.manifest, change).relation.sql, unquoted_view(change.view)
    all_rows = session.sql(f"SELECT * FROM {relation} VERSION AS OF {change.after}")  # noqa: S608 - quoted
    read_columns = [name for name in all_rows.columns if name in set(change.columns)] or all_rows.columns[:1]
    all_rows = all_rows.select(*(f"`{name}`" for name in read_columns))
    sides = {InputState.AFTER: all_rows, InputState.REMOVED: all_rows.limit(0), InputState.ADDED: all_rows.limit(0)}
    if net is not None:
        sides |= {InputState.REMOVED: net.removed, InputState.ADDED: net.added}
    frames = {state: _query_over(session, model, choice, change, view, state, frame) for state, frame in sides.items()}
    added, removed = frames[InputState.ADDED], frames[InputState.REMOVED]
    unique = _has_unique_keys(run.manifest, model, change)
    difference = ResultDifference(removed, added, frames[InputState.AFTER], unique)
    return ChangedRows(difference, f"compared {files.rows:,} rows of '{change.name}', those in files that changed")


def _query_over(
    session: SparkSession, model: Model, choice: RefreshChoice, change: InputChange, view: str, state: InputState,
    frame: DataFrame,
) -> DataFrame:  # fmt: skip
    name = state_name(choice, view, state)
    frame.createOrReplaceTempView(name)
    return table_setup.spelled_as(session.sql(model.sql_with({change.view: name})), session.sql(model.sql).columns)


def _has_unique_keys(manifest: Manifest, model: Model, change: InputChange) -> bool:
    upstream = table_of(manifest, change)
    merged = upstream.streaming and upstream.write.unique_key and not upstream.write.history
    if not merged or upstream.write.output_mode is OutputMode.COMPLETE:
        return False
    query = follow_changes(model.sql, {unquoted_view(change.view): change.columns})
    if len(query.branches) != 1 or query.branches[0].sources[0].inner is not None:
        return False
    keys = (query.branches[0].keys.get(key.lower()) for key in model.write.unique_key)
    columns = {match[1].lower() for key in keys if key is not None and (match := _COLUMN.fullmatch(key.text))}
    return columns >= {key.lower() for key in upstream.write.unique_key}
