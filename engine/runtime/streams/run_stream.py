"""The life of one streaming query in a bounded build: prepare, start, follow (until all is read), finish.

The plan has decided what becomes of the model (`engine.plan.actions`); tables may have moved since, so that `prepare`
asks again, with the same code, before it writes. A turn of `engine start` ends between two micro-batches: the one that
was begun has bounds in the checkpoint and no rows, and the next turn begins with it.

State: Spark leaves it to a task that runs once a minute to replace changelogs by snapshots and to remove what is older
than `spark.sql.streaming.minBatchesToRetain`. Shorter builds never get there, so it is run at their end; on a cluster,
where no driver can ask the stores, the task runs more often (`session_conf`).

A query that reads tables cannot use availableNow, and with a processing-time trigger a fast source would keep it alive
(26 s and 55 micro-batches, measured). So Spark's other sources fix their end as for availableNow
(`prepareForTriggerAvailableNow`). Tables, taken whole in each micro-batch, count as read once some micro-batches have
brought rows of nothing else.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode, TriggerKind
from engine.errors import RunError
from engine.events import Outcome, Status
from engine.lake import table_writer as lake
from engine.plan.actions.state_checks import waits
from engine.runtime.context.run_context import Run
from engine.runtime.inputs import initial_snapshot, source_cleanup
from engine.runtime.lifecycle import full_refresh, reset_checkpoint
from engine.runtime.spark_support import explain, hooks
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.runtime.streams.prepare import PreparedQuery, prepare
from engine.runtime.writer.query_progress import Progress
from engine.spark.internals.queries import compact_stores, fix_ends, last_report
from engine.spark.internals.run_sessions import list_callback_once, note_session
from engine.state import Phase
from engine.state.state_path import StatePath, spark_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


_START_SECONDS = 60.0
# One that comes again after a crash, one that takes what waits, one that closes what the moved watermark closes.
_UNBOUNDED_BATCHES = 3


class EndReached(Exception):  # noqa: N818 - nothing went wrong
    """Ends the query before a micro-batch with rows that came after the build had started."""


@dataclass(slots=True)
class EndOffsets:
    """The foreachBatch function of such a build: fixes the ends in its first micro-batch, and stops after them.

    In a micro-batch Spark waits for it and asks no source for anything. `reached`: the query was ended here; the
    micro-batch it was at belongs to the next build.
    """

    write: Callable[[DataFrame, int], None]
    query: Future[StreamingQuery]
    reached: bool = False
    error: BaseException | None = None
    _fixed: list[bool] | None = None
    _batches_without: int = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        try:
            if self._fixed is None:
                self._fixed = fix_ends(self.query.result(_START_SECONDS))
            else:
                self.reached = self._is_past_end(self._fixed)
        except BaseException as error:
            self.error = error
            raise
        if self.reached:
            raise EndReached
        self.write(frame, batch)

    def _is_past_end(self, fixed: list[bool]) -> bool:
        """Whether several micro-batches in a row had no rows but those of tables."""
        record = json.loads(last_report(self.query.result(_START_SECONDS)))
        rows = [source["numInputRows"] for source in record["sources"]]
        bounded = any(count for count, ends in zip(rows, fixed, strict=True) if ends)
        self._batches_without = 0 if bounded else self._batches_without + 1
        return self._batches_without >= _UNBOUNDED_BATCHES


_log = logging.getLogger("engine.runtime")


def compact(session: SparkSession, query: StreamingQuery, checkpoint: StatePath) -> None:
    """Run Spark's maintenance of each store that a query has used, and close it; the query has ended.

    A store that cannot be compacted now is compacted by a later build: that is logged, and no fault of the build.
    """
    try:
        compact_stores(session, query, f"{spark_location(checkpoint)}/state", _stores(checkpoint))
    except spark_exceptions():
        _log.warning("the state in %s was not compacted", checkpoint, exc_info=True)


def _stores(checkpoint: StatePath) -> Iterator[tuple[int, int, str]]:
    """The stores that a checkpoint may have: `state/<operator>/<partition>`, with the name of all but the default."""
    for partition in sorted((checkpoint / "state").glob("[0-9]*/[0-9]*")):
        for name in ("default", *(path.name for path in partition.iterdir() if path.is_dir())):
            yield int(partition.parent.name), int(partition.name), name


class TurnOver(Exception):  # noqa: N818 - nothing went wrong
    pass


@dataclass(slots=True)
class TurnBound:
    """The foreachBatch function of a turn; `ends_at` is on the monotonic clock; None: the turn is never over."""

    write: Callable[[DataFrame, int], None]
    ends_at: float | None
    is_over: bool = False
    _batches: int = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one micro-batch, unless the turn is over; each turn has one at least."""
        if self.ends_at is not None and self._batches and time.monotonic() > self.ends_at:
            self.is_over = True
            raise TurnOver
        self.write(frame, batch)
        self._batches += 1


_POLL_SECONDS = 0.25
_POOL = "spark.scheduler.pool"


@dataclass(frozen=True, slots=True)
class StartedQuery:
    query: StreamingQuery
    ends: EndOffsets | None
    bound: TurnBound


def start(prepared: PreparedQuery) -> StartedQuery:
    """Start a prepared query. Raises pyspark.errors.PySparkException: Spark cannot start it."""
    model, writer = prepared.query.model, prepared.writer
    once = model.operation.trigger.kind is TriggerKind.ONCE
    # availableNow dies on a table once the first snapshot it ever read has expired (iceberg#18000).
    of_tables = bool(prepared.inputs.readings)
    ends = EndOffsets(writer, writer.query) if of_tables and not once else None
    checkpoint = writer.folder.checkpoint(writer.state.generation)
    # A rebuild is published when all is read.
    bound = TurnBound(ends or writer, None if prepared.generation.is_rebuild or once else prepared.query.run.ends_at)
    stream = stream_writer(model, prepared.rows, bound, checkpoint)
    trigger: Any = {"processingTime": "0 seconds"} if of_tables else {"availableNow": True}
    with _own_pool(prepared):
        return StartedQuery(stream.trigger(**({"once": True} if once else trigger)).start(), ends, bound)


@contextmanager
def _own_pool(prepared: PreparedQuery) -> Iterator[None]:
    """Give each model a pool of its own in a turn of `engine start`, where Spark's scheduler is fair."""
    if prepared.query.run.ends_at is None:
        yield
        return
    context = prepared.query.run.spark.sparkContext
    context.setLocalProperty(_POOL, prepared.query.model.name)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, None)  # type: ignore[arg-type] # PySpark's annotation leaves it out


def stream_writer(
    model: Model, rows: DataFrame, write: Callable[[DataFrame, int], None], checkpoint: StatePath
) -> DataStreamWriter:
    noted: list[int] = []

    def write_noted(frame: DataFrame, batch: int) -> None:
        if not noted:
            noted.append(batch)
            note_session(rows.sparkSession, frame.sparkSession)
        try:
            write(frame, batch)
        finally:
            list_callback_once(rows.sparkSession)

    return (
        rows.writeStream.foreachBatch(write_noted)
        .outputMode((model.write.output_mode or OutputMode.APPEND).value)
        .queryName(model.name)
        .option("checkpointLocation", spark_location(checkpoint))
    )


def follow(prepared: PreparedQuery, started_query: StartedQuery) -> Outcome:
    """Show the micro-batches of a query as they end, until the query has; return what it did, all in all.

    Raises:
        EngineError: the writer rejected a micro-batch; `interrupted`.
        pyspark.errors.PySparkException: Spark failed the query.
    """
    run, model, writer = prepared.query.run, prepared.query.model, prepared.writer
    query, ends = started_query.query, started_query.ends
    progress = Progress(run, model, writer, query)
    try:
        writer.query.set_result(query)
        writer.record(query_id=str(query.id))
        for _ in _until_done(started_query):
            progress.drain()
            _heed_stop(run, query)
        progress.drain()
        explain.log_stream_plan(model, query)
    except spark_exceptions():
        # Spark wraps what happened in the writer beyond recognition.
        if (error := writer.error or (ends.error if ends else None)) is not None:
            raise error from None
        if not started_query.bound.is_over and (ends is None or not ends.reached):
            raise
        progress.drain()
    finally:
        query.stop()
        # Java holds the writer as long as it holds the query: a writer that held the query would keep both alive.
        writer.query = Future()
    if model.stateful:
        compact(run.spark, query, writer.folder.checkpoint(writer.state.generation))
    return replace(progress.outcome(), more=started_query.bound.is_over)


def _heed_stop(run: Run, query: StreamingQuery) -> None:
    if run.stop.is_set():
        query.stop()
        raise RunError("interrupted", "stopped before it had read all data", "The next build continues from there.")


def _until_done(started_query: StartedQuery) -> Iterator[None]:
    if started_query.ends is None:
        while not started_query.query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type] # seconds, fractions too
            yield
        return
    from concurrent.futures import ThreadPoolExecutor
    from concurrent.futures import TimeoutError as NotYet

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(started_query.query.processAllAvailable)
        while True:
            try:
                waiting.result(_POLL_SECONDS)
            except NotYet:
                yield
            else:
                return


def finish(prepared: PreparedQuery, outcome: Outcome) -> Outcome:
    """End the turn of a model whose query has read all there was; return its outcome with all notes.

    Raises EngineError: a rebuild could not be published, or `post_hook` failed; the rows are written.
    """
    query, landed = prepared.query, prepared.inputs.landed
    run, model, session, folder = query.run, query.model, query.session, query.folder
    reset_checkpoint.pass_files(landed, prepared.writer, query.files_from)
    if prepared.generation.is_rebuild:
        outcome = replace(outcome, status=Status.SUCCESS, message="", snapshot_id=_publish_rebuild(prepared))
    initial_snapshot.drop_old_seeds(run, model, session)
    hooks.run_post_hook(session, model)
    # Of a rebuild that waits for its tests nothing may be left in the end; then its files are needed once more.
    cleanup_note = source_cleanup.clean_up_files(landed) if folder.unpublished() is None else ""
    return replace(outcome, note=_notes(outcome.note, *prepared.notes, cleanup_note))


def _publish_rebuild(prepared: PreparedQuery) -> int | None:
    run, model, session = prepared.query.run, prepared.query.model, prepared.query.session
    writer = prepared.writer
    if waits(model):
        writer.record(phase=Phase.STAGED)
        return None
    published = full_refresh.publish(run, model, writer.folder, session, writer.state)
    lake.drop_table(session, full_refresh.staging(model, published.generation).sql)
    return published.snapshot


def _notes(first: str, *more: str) -> str:
    """Several notes as one; an edit of a query with state has noted columns that are gone."""
    return "; ".join([*filter(None, [first]), *(text for text in more if text and text not in first)])


def run_stream(run: Run, model: Model) -> Outcome:
    """Bring a streaming table up to date with what there is now.

    Raises:
        StateError: state, table and upstream tables do not belong together; nothing was written.
        pyspark.errors.PySparkException: Spark rejected or failed the query.
    """
    prepared = prepare(run, model)
    return finish(prepared, follow(prepared, start(prepared)))
