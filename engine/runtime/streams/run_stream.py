"""The life of one streaming query in a bounded build: check, start, follow, end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode, StateProvider, TriggerKind
from engine.errors import EngineError, RunError
from engine.events import Outcome, Status
from engine.lake import table_writer as lake
from engine.lake.table_facts import TableFacts
from engine.plan import ActionKind
from engine.plan.actions import state_checks
from engine.plan.actions.staged_rows import waits
from engine.plan.deployed import generations
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.runtime.context.expected_table import descends_in
from engine.runtime.context.run_context import Run
from engine.runtime.inputs import dedup_keys, initial_snapshot, stream_sources
from engine.runtime.inputs.begin_check import Beginnings
from engine.runtime.inputs.end_offsets import EndOffsets
from engine.runtime.inputs.no_data_batch import take_back
from engine.runtime.inputs.register_inputs import refresh_static, register
from engine.runtime.inputs.source_cleanup import finish
from engine.runtime.inputs.source_file_check import Landed, verify
from engine.runtime.inputs.source_resume import resume_sources
from engine.runtime.lifecycle import (
    first_build,
    full_refresh,
    publish,
    replaced_materialization,
    reset_checkpoint,
)
from engine.runtime.quality import expectations
from engine.runtime.quality.quarantine import quarantine_of, quarantines
from engine.runtime.sinks import output_of, table_setup
from engine.runtime.sinks.deleted_keys import deleted_of
from engine.runtime.spark_support import explain, hooks
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.runtime.spark_support.state_order import in_order_of_state
from engine.runtime.streams.state_maintenance import compact
from engine.runtime.writer.batch_rules import rules_of
from engine.runtime.writer.micro_batch_writer import BatchWriter
from engine.runtime.writer.query_progress import Progress
from engine.sources import Place
from engine.state import ModelState, Phase, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.25
_HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
# Spark keeps this many progress records; more than can come between two polls.
_PROGRESS_KEPT = 100


def run_stream(run: Run, model: Model) -> Outcome:
    """Bring a streaming table up to date with what there is now.

    Raises:
        StateError: state, table and upstream tables do not belong together; nothing was written.
        pyspark.errors.PySparkException: Spark rejected or failed the query.
    """
    session = _session(run, model)
    folder = run.state(model)
    before = folder.load()
    kind = run.plan.actions[model.id].kind
    refresh = kind is ActionKind.REFRESH
    renewed = reset_checkpoint.renewed(run, model, folder) if kind is ActionKind.RESET else None
    known = None if refresh else renewed or before
    run, since = reset_checkpoint.placed(run, model, known), reset_checkpoint.after(run, model, known)
    model, place = _as_begun(run, model, folder, known)
    watched = register(session, run.manifest, model, place, bounded=False, since=since)
    model, frame = _resuming(session, model, folder, known)
    full_refresh.clear_staging(run, model, session)
    quarantine = quarantine_of(run, model) if quarantines(model, watched) else None
    given = table_setup.given_before(run, model, before)
    if renewed is not None:
        state, table = _reset(run, model, folder, frame, renewed, given)
    else:
        state, table = _rebuilding(run, model, folder, frame) if refresh else _ready(run, model, folder, frame, given)
    # A generation that is built beside the table writes into its staging table.
    beside = state.phase is Phase.BUILDING
    relation, branch = (
        (full_refresh.staging(model, state.generation), None) if beside else (model.relation, publish.branch_of(model))
    )
    state, readings = initial_snapshot.begin(
        run, model, session, stream_sources.renamed(run, model, state, folder), folder
    )
    if any(reading.elsewhere for reading in readings.values()):
        watched = register(session, run.manifest, model, place, bounded=False, tables=readings, since=since)
        frame = session.sql(model.sql)
    state, streams = stream_sources.checked(run, model, folder, state, frame, written=table is not None)
    take_back(run, model, folder.checkpoint(state.generation))
    sources = resume_sources(run, model, session, state, folder)
    reached = _reached(state, table)
    landed = verify(run, model, session, folder, state.generation, reached)
    stream_sources.record(folder, state.generation, model, streams)
    deleted = deleted_of(run, model, state.remembers)
    if deleted is not None:
        deleted.fit(frame, fresh=table is None)
    notes: tuple[str, ...] = ()
    if table is not None:
        columns, notes = table_setup.fitted(model, table_setup.columns_of(model, frame), given)
        table_setup.set_properties(model, session, table)
        frame = table_setup.spelled_as(frame, columns.columns)
    model = table_setup.as_spelled(model, frame.columns)
    writer = BatchWriter(
        relation=relation.sql,
        markers=lambda batch: run.markers(model, state, batch),
        folder=folder,
        state=replace(
            state,
            sources=sources,
            settled=place.settled,
            fingerprint=model.fingerprint,
            columns=tuple(table_setup.columns_of(model, frame).columns),
            model=model.name,
            environment=run.environment,
            engine_version=__version__,
            spark_version=run.spark.version,
        ),
        reached=reached,
        snapshots=generations.committed_batches(table.history if table else (), state),
        rules=replace(
            rules_of(model, watched, quarantine, folder.generation(state.generation)),
            changed=partial(_rejected, landed, Beginnings(run, model, readings, landed.checkpoint)),
            refresh=partial(refresh_static, session, run.manifest, model),
        ),
        output=output_of(model, relation.sql, deleted, branch),
        base=table.snapshot if table is not None else None,
        descends=descends_in(run, relation, branch),
    )
    rows = expectations.checked(frame, model.expectations)
    outcome = _follow(run, model, writer, rows, bounded_trigger=not readings)
    reset_checkpoint.pass_files(landed, writer, since)
    if beside:
        outcome = replace(outcome, status=Status.SUCCESS, message="", snapshot_id=_rebuilt(run, model, session, writer))
    initial_snapshot.clear(run, model, session, folder.generations())
    hooks.after(session, model)
    # Of a rebuild that waits for its tests nothing may be left in the end; then its files are needed once more.
    done = finish(landed) if folder.pending() is None else ""
    return replace(outcome, note=_notes(outcome.note, *notes, done))


def _notes(first: str, *more: str) -> str:
    """Several notes as one; an edit of a query with state has noted columns that are gone."""
    return "; ".join([*filter(None, [first]), *(text for text in more if text and text not in first)])


def _as_begun(run: Run, model: Model, folder: TableState, known: ModelState | None) -> tuple[Model, Place]:
    """Return the model with the order of its dedup keys, and what the first build of its generation pinned."""
    if known is None:
        return dedup_keys.ordered(model, None), replace(run.place, settled={})
    settled = stream_sources.renamed(run, model, known, folder).settled if known.batch is not None else {}
    ordered = dedup_keys.ordered(model, folder.checkpoint(known.generation))
    return ordered, replace(run.place, settled=dict(settled))


def _resuming(
    session: SparkSession, model: Model, folder: TableState, known: ModelState | None
) -> tuple[Model, DataFrame]:
    """The query in the order of the state that it resumes, and its checked rows."""
    model = in_order_of_state(session, model, folder, known)
    frame = session.sql(model.sql)
    table_setup.check_declared(model, frame)
    return model, frame


def _rebuilt(run: Run, model: Model, session: SparkSession, writer: BatchWriter) -> int | None:
    """Publish a generation that was built beside the table, unless it waits for its tests: the table's snapshot."""
    if waits(model):
        writer.record(phase=Phase.STAGED)
        return None
    done = full_refresh.publish(run, model, writer.folder, session, writer.state)
    lake.drop_table(session, full_refresh.staging(model, done.generation).sql)
    return done.snapshot


def _reached(state: ModelState, table: TableFacts | None) -> int | None:
    """The newest micro-batch that is in the table.

    What state knows of was noted after its commit, and that commit is in the history of the table (it was checked);
    its marker may have expired with it.
    """
    if table is None:
        return None
    marked = generations.committed_batch(table.history, state)
    return max((batch for batch in (marked, state.batch) if batch is not None), default=None)


def _rejected(landed: Landed, beginnings: Beginnings, batch: int) -> EngineError | None:
    """Why a micro-batch that was computed cannot be committed, because of what was read; None: it can."""
    return landed.refused(batch) or beginnings.rejected(batch)


def _session(run: Run, model: Model) -> SparkSession:
    """A session of the model's own, as its header wants it."""
    session = run.spark.newSession()
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(_PROGRESS_KEPT))
    if model.operation.state_provider is StateProvider.HDFS:
        session.conf.set("spark.sql.streaming.stateStore.providerClass", _HDFS)
    if model.state_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(model.state_partitions))
    hooks.before(session, model)
    return session


def _ready(
    run: Run,
    model: Model,
    folder: TableState,
    frame: DataFrame,
    given: frozenset[str] | None,
) -> tuple[ModelState, TableFacts | None]:
    """State and table that belong together; both are made if the model is new."""
    state = folder.load()
    table = publish.as_written(run, model, state.snapshot if state is not None else None)
    if state is None or state.phase is not Phase.PUBLISHED:
        state_checks.fresh(model, table)
        replaced_materialization.stands_as_view(run, frame.sparkSession, model, table)
        return first_build.begin(run, model, folder, frame), None
    if run.plan.actions[model.id].kind is ActionKind.CREATE:
        return first_build.begin(run, model, folder, frame), None
    state_checks.check_table(model, state, read_checkpoint(folder.checkpoint(state.generation), files=False), table)
    if table is not None:
        table_setup.check_columns(model, table_setup.columns_of(model, frame), given)
    return state, table


def _reset(
    run: Run,
    model: Model,
    folder: TableState,
    frame: DataFrame,
    renewed: ModelState,
    given: frozenset[str] | None,
) -> tuple[ModelState, TableFacts | None]:
    """The state of a new checkpoint over the rows that are there."""
    table = publish.as_written(run, model)
    if table is not None:
        table_setup.check_columns(model, table_setup.columns_of(model, frame), given)
    reset_checkpoint.begin(run, model, folder, renewed)
    return renewed, table


def _rebuilding(run: Run, model: Model, folder: TableState, frame: DataFrame) -> tuple[ModelState, TableFacts | None]:
    """The state of a full refresh: beside the table if there is one, else an ordinary first start."""
    table = run.lake.table(model.relation.schema, model.relation.name)
    if table is None and replaced_materialization.stands_as_view(run, frame.sparkSession, model, table):
        return full_refresh.begin(model, folder, frame, None), None
    if table is None:
        made = table_setup.make(model, model.relation, max(folder.generations(), default=1), folder, frame)
        made = replace(made, phase=Phase.PUBLISHED)
        folder.save(made)
        return made, None
    state_checks.check_ours(model, table, folder.load())
    return full_refresh.begin(model, folder, frame, table), None


def _follow(run: Run, model: Model, writer: BatchWriter, frame: DataFrame, *, bounded_trigger: bool) -> Outcome:
    checkpoint = writer.folder.checkpoint(writer.state.generation)
    once = model.operation.trigger.kind is TriggerKind.ONCE
    ends = None if bounded_trigger or once else EndOffsets(writer, writer.query)
    stream = (
        frame.writeStream.foreachBatch(ends or writer)
        .outputMode((model.write.output_mode or OutputMode.APPEND).value)
        .queryName(model.name)
        .option("checkpointLocation", f"file:{checkpoint}")  # as it is: Hadoop decodes nothing
    )
    # availableNow dies on a table once the first snapshot it ever read has expired (iceberg#18000).
    trigger: Any = {"availableNow": True} if bounded_trigger else {"processingTime": "0 seconds"}
    if once:
        trigger, bounded_trigger = {"once": True}, True
    query = stream.trigger(**trigger).start()
    progress = Progress(run, model, writer, query)
    try:
        writer.query.set_result(query)
        writer.record(query_id=str(query.id))
        for _ in _until_done(query, bounded_trigger=bounded_trigger):
            progress.drain()
            _heed_stop(run, query)
        progress.drain()
        explain.tell_stream(model, query)
    except spark_exceptions():
        # Spark wraps what happened in the writer beyond recognition.
        if (error := writer.error or (ends.error if ends else None)) is not None:
            raise error from None
        if ends is None or not ends.reached:
            raise
        progress.drain()
    finally:
        query.stop()
        # Java holds the writer as long as it holds the query: a writer that held the query would keep both alive.
        writer.query = Future()
    if model.stateful:
        compact(run.spark, query, checkpoint)
    return progress.outcome()


def _heed_stop(run: Run, query: StreamingQuery) -> None:
    if run.stop.is_set():
        query.stop()
        raise RunError("interrupted", "stopped before it had read all data")


def _until_done(query: StreamingQuery, *, bounded_trigger: bool) -> Iterator[None]:
    """Yield now and then until the query has read all there was when it started."""
    if bounded_trigger:
        while not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type] # seconds, fractions too
            yield
        return
    from concurrent.futures import ThreadPoolExecutor
    from concurrent.futures import TimeoutError as NotYet

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(query.processAllAvailable)
        while True:
            try:
                waiting.result(_POLL_SECONDS)
            except NotYet:
                yield
            else:
                return
