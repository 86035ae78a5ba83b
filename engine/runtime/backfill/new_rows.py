"""The rows that a stateless query gives now for a range, from the input that its stream has read."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.compile.nodes.model_settings import OnSchemaChange
from engine.lake.quoted_names import quoted
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.recorded_streams import recorded
from engine.runtime.backfill.backfill_request import TimeRange
from engine.runtime.backfill.read_input import ReadInput, rejected
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.quality import expectations
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.frame_schema import match_table
from engine.runtime.streams.stream_query import open_session
from engine.state import ModelState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_rows(run: Run, model: Model, state: ModelState, within: TimeRange, stack: ExitStack) -> DataFrame:
    """Return the rows of a range, each with the expectations that it fails (`expectations.FAILED`).

    Args:
        run: with the session of the command.
        model: a stateless one that appends.
        state: of its generation; all that was begun is finished.
        within: the range.
        stack: releases what is read.

    Raises:
        StateError: `backfill-rejected`, `source-gap`: the input cannot be read again.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    folder, session = run.state(model), open_session(run, model)
    checkpoint = read_checkpoint(folder, state.generation, files=False)
    known = recorded(folder, state.generation)
    if checkpoint.committed is None or known is None:
        raise rejected(model, f"'{model.name}' has read nothing, or its state does not say what")
    streams = known.streams
    place = replace(run.place, settled=dict(state.settled))
    read = ReadInput(run, model, state, session, checkpoint.path, checkpoint.committed, streams, stack)
    register(session, run.manifest, model, place, bounded=True, instead=read.rows)
    frame = table_setup.checked_frame(session, model)
    marked = expectations.marked_rows(frame, model.expectations)
    return _as_table(session, model, marked).where(within.condition)


def _as_table(session: SparkSession, model: Model, frame: DataFrame) -> DataFrame:
    """The rows with the columns of the table; those that the query gives no more are NULL."""
    from pyspark.sql import functions as f

    rows = table_setup.columns_of(model, frame.drop(expectations.FAILED))
    match = match_table(rows, model.relation.sql)
    ignored = model.write.on_schema_change is OnSchemaChange.IGNORE
    if match.incompatible or match.promoted or (match.added and not ignored):
        hint = f"Build it first: engine build -s {model.name}"
        raise rejected(model, f"{model.relation} does not have the columns of the query yet", hint)
    given = {name.lower() for name in rows.columns}
    columns = [
        (f.col(quoted(field.name)) if field.name.lower() in given else f.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in session.table(model.relation.sql).schema.fields
    ]
    return frame.select(*columns, expectations.FAILED)
