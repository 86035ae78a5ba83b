"""Preparing a streaming query: everything that is checked and made before its first micro-batch.

After a kill each of these may be there without the next, in this order:

1. staging tables of killed refreshes are dropped;
2. state and table of a new generation (or of a reset: older generations are removed);
3. where tables begin, and their initial snapshots;
4. a checkpoint of other sources that never committed is removed; the last micro-batch is taken back if one without
   rows is owed;
5. the times of accepted files; the facts of the query and the order of its sources;
6. the table of remembered deletes, new columns and wider types, properties of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.errors import EngineError
from engine.plan import ActionKind
from engine.plan.deployed import generations
from engine.plan.tables.column_checks import given_before
from engine.runtime.context.expected_table import descends_in
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.begin_check import Beginnings
from engine.runtime.inputs.register_inputs import refresh_static
from engine.runtime.inputs.source_file_check import Landed
from engine.runtime.lifecycle import full_refresh, reset_checkpoint
from engine.runtime.quality import expectations
from engine.runtime.quality.quarantine import Quarantine, quarantine_of, quarantines
from engine.runtime.sinks import output_of, table_setup
from engine.runtime.sinks.deleted_keys import Deleted, deleted_of
from engine.runtime.streams.generation import Generation, open_generation
from engine.runtime.streams.groups_left_out import EveryGroup, with_groups_left_out
from engine.runtime.streams.stream_inputs import StreamInputs, open_inputs
from engine.runtime.streams.stream_query import StreamQuery, open_query, open_session
from engine.runtime.writer.batch_rules import rules_of
from engine.runtime.writer.micro_batch_writer import BatchWriter, Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query that can start."""

    query: StreamQuery
    generation: Generation
    inputs: StreamInputs
    writer: BatchWriter
    rows: DataFrame
    notes: tuple[str, ...]


def prepare(run: Run, model: Model) -> PreparedQuery:
    """Prepare the query of a streaming table as the plan says: it is created, resumed, reset or refreshed.

    Raises:
        StateError: state, table and upstream tables do not belong together; no row was written.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    session, folder = open_session(run, model), run.state(model)
    before, kind = folder.load(), run.plan.actions[model.id].kind
    renewed = reset_checkpoint.renewed(run, model, folder) if kind is ActionKind.RESET else None
    known = None if kind is ActionKind.REFRESH else renewed or before
    query = open_query(run, model, session, folder, known)
    full_refresh.clear_staging(query.run, query.model, session)
    quarantine = quarantine_of(query.run, query.model) if quarantines(query.model, query.watched) else None
    given = given_before(before, run.plan.actions[model.id].comparison, refresh=kind is ActionKind.REFRESH)
    generation = open_generation(query, renewed, given)
    query, generation, inputs = open_inputs(query, generation)
    deleted = deleted_of(query.run, query.model, generation.state.remembers)
    if deleted is not None:
        deleted.fit(query.frame, fresh=generation.table is None)
    query, notes = _as_table(query, generation, given)
    every = with_groups_left_out(query.model, query.frame)
    writer = _writer(query, generation, inputs, quarantine, deleted, every)
    rows = expectations.checked_rows(every.frame, query.model, query.run.manifest)
    return PreparedQuery(query, generation, inputs, writer, rows, notes)


def _as_table(
    query: StreamQuery, generation: Generation, given: frozenset[str] | None
) -> tuple[StreamQuery, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    model, frame = query.model, query.frame
    if generation.table is not None:
        columns, notes = table_setup.fitted(model, table_setup.columns_of(model, frame), given)
        table_setup.set_properties(model, query.session, generation.table)
        frame = table_setup.spelled_as(frame, columns.columns)
    return replace(query, model=table_setup.as_spelled(model, frame.columns), frame=frame), notes


def _writer(
    query: StreamQuery,
    generation: Generation,
    inputs: StreamInputs,
    quarantine: Quarantine | None,
    deleted: Deleted | None,
    every: EveryGroup,
) -> BatchWriter:
    run, model, table = query.run, query.model, generation.table
    state, relation, branch = generation.state, generation.relation, generation.branch
    columns = tuple(table_setup.columns_of(model, query.frame).columns)
    return BatchWriter(
        relation=relation.sql,
        markers=lambda batch: run.markers(model, state, batch),
        folder=query.folder,
        state=replace(
            run.signed(model, state), sources=inputs.remembered, settled=query.place.settled, columns=columns
        ),
        reached=generation.reached,
        snapshots=generations.committed_batches(table.history if table else (), state),
        rules=_rules(query, inputs, quarantine, state.generation),
        output=output_of(model, relation.sql, deleted, branch, scope=every.scope, repeats=every.repeats),
        base=table.snapshot if table is not None else None,
        descends=descends_in(run, relation, branch),
    )


def _rules(query: StreamQuery, inputs: StreamInputs, quarantine: Quarantine | None, generation: int) -> Rules:
    run, model, landed = query.run, query.model, inputs.landed
    return replace(
        rules_of(model, query.watched, quarantine, query.folder.batches(generation)),
        changed=partial(_rejected, landed, Beginnings(run, model, inputs.readings, landed.checkpoint)),
        refresh=partial(refresh_static, query.session, run.manifest, model),
    )


def _rejected(landed: Landed, beginnings: Beginnings, batch: int) -> EngineError | None:
    """Why a micro-batch that was computed cannot be committed, because of what was read; None: it can."""
    return landed.refused(batch) or beginnings.rejected(batch)
