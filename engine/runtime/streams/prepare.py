"""Preparing a streaming query: everything that is checked and made before its first micro-batch.

After a kill each of these may be there without the next: (1) staging tables of killed refreshes are dropped; (2) state
and table of a new generation, or of a reset; (3) where tables begin, and their initial snapshots; (4) a checkpoint of
other sources that never committed is removed, the last micro-batch is taken back if one without rows is owed; (5) the
times of accepted files, the facts of the query and the order of its sources; (6) the table of remembered deletes, new
columns and wider types, properties.

Iceberg's stream begins with the oldest snapshot that is left when Spark starts it: whoever expires snapshots between
our look and that moment takes the first rows away, without a word (measured, Iceberg 1.12.0). Spark keeps the beginning
in `sources/<n>/offsets/0` (-1: no rows yet), which is compared before a micro-batch is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Model, Source
from engine.errors import EngineError, StateError
from engine.events import Diagnosed
from engine.plan import ActionKind
from engine.plan.actions.reset_checks import of_reader
from engine.plan.deployed import generations
from engine.plan.tables.column_checks import given_before
from engine.plan.tables.upstream_tables import TableReading, unread
from engine.runtime.context.ownership import descends_in
from engine.runtime.context.run_context import Run
from engine.runtime.inputs import initial_snapshot, stream_sources
from engine.runtime.inputs.no_data_batch import take_back
from engine.runtime.inputs.register_inputs import refresh_static
from engine.runtime.inputs.source_file_check import Landed, verify
from engine.runtime.inputs.stream_sources import read_upstreams
from engine.runtime.lifecycle import full_refresh, reset_checkpoint
from engine.runtime.quality import expectations
from engine.runtime.quality.quarantine import Quarantine, quarantine_of, quarantines
from engine.runtime.sinks import output_of, table_setup
from engine.runtime.sinks.deleted_keys import Deleted, deleted_of
from engine.runtime.streams.generation import Generation, open_generation
from engine.runtime.streams.groups_left_out import EveryGroup, with_groups_left_out
from engine.runtime.streams.stream_query import StreamQuery, open_query, open_session
from engine.runtime.writer.micro_batch_writer import BatchWriter, Rules, rules_of
from engine.sources import KINDS
from engine.state import ModelState, TableState
from engine.state import checkpoint as spark_checkpoint
from engine.state.state_path import StatePath

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def resume_sources(
    run: Run, model: Model, session: SparkSession, state: ModelState, folder: TableState
) -> Mapping[str, Any]:
    """Ask each source that is read as a stream, and show their notes; return what is to be remembered of each, by node.

    Raises:
        StateError: a source lacks records that were not read; nothing was read or written.
    """
    kill_points.reach("resuming", model.name)
    offsets = spark_checkpoint.standing(folder.checkpoint(state.generation))
    remembered = dict(state.sources)
    for item in model.inputs:
        node = run.manifest.nodes[item.node]
        if not item.stream or not isinstance(node, Source):
            continue
        try:
            resumption = KINDS[node.spec.format].resume(
                session, node.spec, run.place, state.sources.get(node.id, {}), offsets
            )
        except EngineError as error:
            error.diagnostics = tuple(of_reader(resumption, model, node) for resumption in error.diagnostics)
            raise
        for note in resumption.notes:
            run.emit(Diagnosed(of_reader(note, model, node)))
        if resumption.stored_facts:
            remembered[node.id] = dict(resumption.stored_facts)
    return remembered


_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Beginnings:
    run: Run
    model: Model
    readings: Mapping[str, TableReading]
    checkpoint: StatePath

    def batch_fault(self, batch: int) -> EngineError | None:
        """Why a micro-batch cannot be committed: rows before it are missing; None: there are none."""
        first_snapshots = _first_snapshots(self.checkpoint, batch)
        unread_nodes = {node for node, reading in self.readings.items() if not reading.has_begun}
        if not unread_nodes or not first_snapshots:
            return None
        firsts = {reading.first for reading in self.readings.values()}
        if firsts.issuperset(first_snapshots):
            return None
        try:
            for upstream in read_upstreams(self.run, self.model):
                if upstream.node in unread_nodes:
                    unread(self.model, upstream, self.readings[upstream.node].start)
        except StateError as error:
            diagnostic = error.diagnostic
            hint = "Nothing of the micro-batch was written; build again to read every row of the table."
            return StateError(
                diagnostic.code, f"{diagnostic.message} while the model was starting", hint, node=self.model.name
            )
        return None


def _first_snapshots(checkpoint: StatePath, batch: int) -> set[int]:
    """The snapshots with which a micro-batch begins, where that is a beginning; -1: with the first that it finds."""
    if batch == 0:
        offsets = spark_checkpoint.beginnings(checkpoint)
    else:
        offsets = spark_checkpoint.source_offsets(checkpoint, batch - 1)
    ids = {o["snapshot_id"] for o in offsets if isinstance(o.get("snapshot_id"), int)}
    return ids if batch == 0 else ids & {_NOWHERE}


@dataclass(frozen=True, slots=True)
class StreamInputs:
    readings: Mapping[str, TableReading]
    remembered: Mapping[str, Any]
    landed: Landed


def open_inputs(query: StreamQuery, generation: Generation) -> tuple[StreamQuery, Generation, StreamInputs]:
    """Find where each input continues, and compare the inputs with those of the checkpoint.

    What is written: steps 3 to 5 of the module. The generation comes with its state as it is now.

    Raises:
        StateError: an input is not what the checkpoint has read, or lacks what was not read.
    """
    run, model, folder, session = query.run, query.model, query.folder, query.session
    state = stream_sources.with_present_source_names(run, model, generation.state, folder)
    state, readings = initial_snapshot.find_beginnings(run, model, session, state, folder)
    if any(reading.elsewhere for reading in readings.values()):
        query = query.over_tables(readings)
    has_rows = generation.table is not None
    state, streams = stream_sources.check_sources(run, model, folder, state, query.frame, written=has_rows)
    generation = replace(generation, state=state)
    take_back(run, model, folder.checkpoint(state.generation))
    remembered = resume_sources(run, model, session, state, folder)
    landed = verify(run, model, session, folder, state.generation, generation.reached, query.place.folders)
    dedup = {item.name: item.dedup for item in model.inputs if len(item.dedup) > 1}
    stream_sources.record(folder, state.generation, model, replace(streams, order=query.order, dedup=dedup))
    return query, generation, StreamInputs(readings, remembered, landed)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
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
    earlier_state, kind = folder.load(), run.plan.actions[model.id].kind
    reset_state = reset_checkpoint.state_after_reset(run, model, folder) if kind is ActionKind.RESET else None
    continued_state = None if kind is ActionKind.REFRESH else reset_state or earlier_state
    query = open_query(run, model, session, folder, continued_state)
    full_refresh.clear_staging(query.run, query.model, session)
    quarantine = quarantine_of(query.run, query.model) if quarantines(query.model, query.watched_inputs) else None
    earlier_columns = given_before(
        earlier_state, run.plan.actions[model.id].comparison, refresh=kind is ActionKind.REFRESH
    )
    generation = open_generation(query, reset_state, earlier_columns)
    query, generation, inputs = open_inputs(query, generation)
    deleted = deleted_of(query.run, query.model, generation.state.remembers)
    if deleted is not None:
        deleted.fit(query.frame, fresh=generation.table is None)
    query, notes = _as_table(query, generation, earlier_columns)
    every_group = with_groups_left_out(query.model, query.frame)
    writer = _writer(query, generation, inputs, quarantine, deleted, every_group)
    rows = expectations.checked_rows(every_group.frame, query.model, query.run.manifest)
    return PreparedQuery(query, generation, inputs, writer, rows, notes)


def _as_table(
    query: StreamQuery, generation: Generation, earlier_columns: frozenset[str] | None
) -> tuple[StreamQuery, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    model, frame = query.model, query.frame
    if generation.table is not None:
        columns, notes = table_setup.fitted(model, table_setup.columns_of(model, frame), earlier_columns)
        table_setup.set_properties(model, query.session, generation.table)
        frame = table_setup.spelled_as(frame, columns.columns)
    return replace(query, model=table_setup.as_spelled(model, frame.columns), frame=frame), notes


def _writer(
    query: StreamQuery,
    generation: Generation,
    inputs: StreamInputs,
    quarantine: Quarantine | None,
    deleted: Deleted | None,
    every_group: EveryGroup,
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
        output=output_of(model, relation.sql, deleted, branch, scope=every_group.scope, repeats=every_group.repeats),
        base=table.snapshot if table is not None else None,
        descends=descends_in(run, relation, branch),
    )


def _rules(query: StreamQuery, inputs: StreamInputs, quarantine: Quarantine | None, generation: int) -> Rules:
    run, model, landed = query.run, query.model, inputs.landed
    return replace(
        rules_of(model, query.watched_inputs, quarantine, query.folder.batches(generation)),
        batch_fault=partial(_batch_fault, landed, Beginnings(run, model, inputs.readings, landed.checkpoint)),
        refresh=partial(refresh_static, query.session, run.manifest, model),
    )


def _batch_fault(landed: Landed, beginnings: Beginnings, batch: int) -> EngineError | None:
    """Why a micro-batch that was computed cannot be committed, because of what was read; None: it can."""
    return landed.refused(batch) or beginnings.batch_fault(batch)
