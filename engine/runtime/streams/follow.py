"""Starting a streaming query, and following it until it has read all there was when it started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.nodes.model_settings import OutputMode, TriggerKind
from engine.errors import RunError
from engine.events import Outcome
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.end_offsets import EndOffsets
from engine.runtime.spark_support import explain
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.runtime.streams.prepare import PreparedQuery
from engine.runtime.streams.state_maintenance import compact
from engine.runtime.streams.turn_bound import TurnBound
from engine.runtime.writer.query_progress import Progress
from engine.spark.internals.run_sessions import list_callback_once, note_session
from engine.state.state_path import StatePath, spark_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_POLL_SECONDS = 0.25
_POOL = "spark.scheduler.pool"


@dataclass(frozen=True, slots=True)
class StartedQuery:
    """A query that runs; `ends` ends it; None: its trigger does."""

    query: StreamingQuery
    ends: EndOffsets | None
    bound: TurnBound


def start(prepared: PreparedQuery) -> StartedQuery:
    """Start a prepared query.

    Raises:
        pyspark.errors.PySparkException: Spark cannot start it.
    """
    model, writer = prepared.query.model, prepared.writer
    once = model.operation.trigger.kind is TriggerKind.ONCE
    # availableNow dies on a table once the first snapshot it ever read has expired (iceberg#18000).
    of_tables = bool(prepared.inputs.readings)
    ends = EndOffsets(writer, writer.query) if of_tables and not once else None
    checkpoint = writer.folder.checkpoint(writer.state.generation)
    # A rebuild is published when all is read.
    bound = TurnBound(ends or writer, None if prepared.generation.beside or once else prepared.query.run.until)
    stream = stream_writer(model, prepared.rows, bound, checkpoint)
    trigger: Any = {"processingTime": "0 seconds"} if of_tables else {"availableNow": True}
    with _own_pool(prepared):
        return StartedQuery(stream.trigger(**({"once": True} if once else trigger)).start(), ends, bound)


@contextmanager
def _own_pool(prepared: PreparedQuery) -> Iterator[None]:
    """Give each model a pool of its own in a turn of `engine start`, where Spark's scheduler is fair."""
    if prepared.query.run.until is None:
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
    """Return Spark's writer of a model's micro-batches, without a trigger."""
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


def follow(prepared: PreparedQuery, started: StartedQuery) -> Outcome:
    """Show the micro-batches of a query as they end, until the query has; return what it did, all in all.

    Raises:
        EngineError: the writer rejected a micro-batch; `interrupted`.
        pyspark.errors.PySparkException: Spark failed the query.
    """
    run, model, writer = prepared.query.run, prepared.query.model, prepared.writer
    query, ends = started.query, started.ends
    progress = Progress(run, model, writer, query)
    try:
        writer.query.set_result(query)
        writer.record(query_id=str(query.id))
        for _ in _until_done(started):
            progress.drain()
            _heed_stop(run, query)
        progress.drain()
        explain.tell_stream(model, query)
    except spark_exceptions():
        # Spark wraps what happened in the writer beyond recognition.
        if (error := writer.error or (ends.error if ends else None)) is not None:
            raise error from None
        if not started.bound.over and (ends is None or not ends.reached):
            raise
        progress.drain()
    finally:
        query.stop()
        # Java holds the writer as long as it holds the query: a writer that held the query would keep both alive.
        writer.query = Future()
    if model.stateful:
        compact(run.spark, query, writer.folder.checkpoint(writer.state.generation))
    return replace(progress.outcome(), more=started.bound.over)


def _heed_stop(run: Run, query: StreamingQuery) -> None:
    if run.stop.is_set():
        query.stop()
        raise RunError("interrupted", "stopped before it had read all data", "The next build continues from there.")


def _until_done(started: StartedQuery) -> Iterator[None]:
    if started.ends is None:
        while not started.query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type] # seconds, fractions too
            yield
        return
    from concurrent.futures import ThreadPoolExecutor
    from concurrent.futures import TimeoutError as NotYet

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(started.query.processAllAvailable)
        while True:
            try:
                waiting.result(_POLL_SECONDS)
            except NotYet:
                yield
            else:
                return
