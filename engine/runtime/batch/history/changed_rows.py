"""The rows by which the result of a query differs from that of the last build, from the files of its input that differ.

For a query that gives a row or none for each row of one table: it is run over the rows of the table that were removed,
and over those that were added (see `engine.lake.changes`). Neither the whole result nor the changes so far are read.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import OutputMode
from engine.compile.refresh.changed_keys import InputState, follow
from engine.plan.refresh.refresh_choice import InputChange, RefreshChoice, plain
from engine.runtime.batch.followed_changes import FullRefreshError, state_name
from engine.runtime.batch.history.change_log import ResultDifference
from engine.runtime.batch.input_differences import InputReading, table_of
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support.spark_errors import spark_exceptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    (one,) = choice.inputs
    reading = InputReading(session, run.lake, run.manifest, stack)
    try:
        files = reading.files(one)
        net = None if files.none else reading.net_rows(one, files)
    # What cannot be compared, or has expired meanwhile: all rows are compared, which Spark can or says why not.
    except FullRefreshError:
        return None
    except spark_exceptions():
        return None
    relation, view = table_of(run.manifest, one).relation.sql, plain(one.view)
    whole = session.sql(f"SELECT * FROM {relation} VERSION AS OF {one.after}")  # noqa: S608 - quoted
    read = [name for name in whole.columns if name in set(one.columns)] or whole.columns[:1]
    whole = whole.select(*(f"`{name}`" for name in read))
    sides = {InputState.AFTER: whole, InputState.REMOVED: whole.limit(0), InputState.ADDED: whole.limit(0)}
    if net is not None:
        sides |= {InputState.REMOVED: net.removed, InputState.ADDED: net.added}
    frames = {state: _over(session, model, choice, one, view, state, frame) for state, frame in sides.items()}
    added, removed = frames[InputState.ADDED], frames[InputState.REMOVED]
    unique = _unique(run.manifest, model, one)
    difference = ResultDifference(removed, added, frames[InputState.AFTER], unique)
    return ChangedRows(difference, f"compared {files.rows:,} rows of '{one.name}', those in files that changed")


def _over(
    session: SparkSession, model: Model, choice: RefreshChoice, one: InputChange, view: str, state: InputState,
    frame: DataFrame,
) -> DataFrame:  # fmt: skip
    name = state_name(choice, view, state)
    frame.createOrReplaceTempView(name)
    return table_setup.spelled_as(session.sql(model.sql_with({one.view: name})), session.sql(model.sql).columns)


def _unique(manifest: Manifest, model: Model, one: InputChange) -> bool:
    upstream = table_of(manifest, one)
    merged = upstream.streaming and upstream.write.unique_key and not upstream.write.history
    if not merged or upstream.write.output_mode is OutputMode.COMPLETE:
        return False
    query = follow(model.sql, {plain(one.view): one.columns})
    if len(query.branches) != 1 or query.branches[0].sources[0].inner is not None:
        return False
    keys = (query.branches[0].keys.get(key.lower()) for key in model.write.unique_key)
    columns = {match[1].lower() for key in keys if key is not None and (match := _COLUMN.fullmatch(key.text))}
    return columns >= {key.lower() for key in upstream.write.unique_key}
