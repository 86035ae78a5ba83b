"""The life of one streaming query in a bounded build: check, start, follow, end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.compile import Model
from engine.errors import RunError
from engine.events import BatchCommitted, Status
from engine.lake.read import TableFacts
from engine.plan import Change
from engine.runtime import checks, rebuild, tables
from engine.runtime.inputs import register
from engine.runtime.next_window import next_close
from engine.runtime.run import Outcome, Run
from engine.runtime.spark_errors import spark_exceptions
from engine.runtime.writer import BatchWriter, Written
from engine.state import ModelState, Phase, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.25
# Spark keeps this many progress records; more than can come between two polls.
_PROGRESS_KEPT = 100
_EPOCH = "1970-01-01T00:00:00.000Z"


def run_stream(run: Run, model: Model) -> Outcome:
    """Bring a streaming table up to date with what there is now.

    Raises:
        StateError: state, table and upstream tables do not belong together; nothing was written.
        pyspark.errors.PySparkException: Spark refused or failed the query.
    """
    session = run.spark.newSession()
    _configure(session, model)
    register(session, run.manifest, model, run.root, bounded=False)
    frame = session.sql(model.sql)
    folder = run.state(model)
    rebuild.clear_staging(run, model, folder.load(), session)
    refresh = run.plan.actions[model.id].change is Change.REFRESH
    state, table = _renewed(run, model, folder, frame) if refresh else _ready(run, model, folder, frame)
    # A generation that is built beside the table writes into its staging table.
    beside = state.phase is Phase.BUILDING
    relation = rebuild.staging(model, state.generation) if beside else model.relation
    upstreams = checks.check_upstreams(run, model, state, folder)
    folder.save_facts(state.generation, model.fingerprint, model.facts)
    writer = BatchWriter(
        relation=relation.sql,
        markers=lambda batch: run.markers(model, state.generation, batch),
        folder=folder,
        state=replace(
            state,
            upstreams={**upstreams, **state.upstreams},
            fingerprint=model.fingerprint,
            engine_version=__version__,
            spark_version=run.spark.version,
        ),
        reached=checks.committed_batch(table.history, state.generation) if table else None,
        snapshots=_snapshots(table, state.generation),
    )
    outcome = _follow(run, model, writer, frame, bounded_trigger=not upstreams)
    if beside:
        published = rebuild.publish(run, model, folder, session, writer.state)
        outcome = replace(outcome, status=Status.SUCCESS, message="", snapshot_id=published.snapshot)
    return outcome


def _configure(session: SparkSession, model: Model) -> None:
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(_PROGRESS_KEPT))
    if model.state_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(model.state_partitions))


def _snapshots(table: TableFacts | None, generation: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for snapshot in table.history if table else ():
        batch = snapshot.marker("batch-id")
        if batch is not None and snapshot.marker("generation") == str(generation):
            found.setdefault(int(batch), snapshot.id)
    return found


def _ready(run: Run, model: Model, folder: TableState, frame: DataFrame) -> tuple[ModelState, TableFacts | None]:
    """State and table that belong together; both are made if the model is new."""
    state = folder.load()
    table = run.lake.table(model.relation.schema, model.relation.name)
    if state is None or state.phase is Phase.BUILDING:
        checks.fresh(model, table)
        return _first(model, folder, frame), None
    if _never_wrote(state, table):
        return _first(model, folder, frame), None
    checks.check_table(model, state, folder, table)
    if table is not None:
        tables.check_columns(model, frame, table)
    return state, table


def _never_wrote(state: ModelState, table: TableFacts | None) -> bool:
    """A start that failed before its first batch ended; it is made again, as the query may differ by now."""
    return state.batch is None and table is not None and table.uuid == state.uuid and not table.history


def _first(model: Model, folder: TableState, frame: DataFrame) -> ModelState:
    generation = max(folder.generations(), default=1)
    made = replace(tables.make(model, model.relation, generation, folder, frame), phase=Phase.PUBLISHED)
    folder.save(made)
    return made


def _renewed(run: Run, model: Model, folder: TableState, frame: DataFrame) -> tuple[ModelState, TableFacts | None]:
    """The state of a full refresh: beside the table if there is one, else an ordinary first start."""
    table = run.lake.table(model.relation.schema, model.relation.name)
    if table is None:
        return _first(model, folder, frame), None
    checks.check_ours(model, table)
    return rebuild.begin(model, folder, frame, table), None


def _follow(run: Run, model: Model, writer: BatchWriter, frame: DataFrame, *, bounded_trigger: bool) -> Outcome:
    checkpoint = writer.folder.checkpoint(writer.state.generation)
    stream = (
        frame.writeStream.foreachBatch(writer)
        .outputMode("append")
        .queryName(model.name)
        .option("checkpointLocation", checkpoint.as_uri())
    )
    # availableNow dies on a table once the first snapshot it ever read has expired (iceberg#18000).
    trigger: Any = {"availableNow": True} if bounded_trigger else {"processingTime": "0 seconds"}
    query = stream.trigger(**trigger).start()
    progress = _Progress(run, model, writer, query)
    try:
        writer.record(query_id=str(query.id))
        for _ in _until_done(query, bounded_trigger=bounded_trigger):
            progress.drain()
            _heed_stop(run, query)
        progress.drain()
    except spark_exceptions():
        # Spark wraps what happened in the writer beyond recognition.
        if writer.error is not None:
            raise writer.error from None
        raise
    finally:
        query.stop()
    return progress.outcome()


def _heed_stop(run: Run, query: StreamingQuery) -> None:
    if run.stop.is_set():
        query.stop()
        raise RunError("interrupted", "stopped before it had read all there is")


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


@dataclass(slots=True)
class _Progress:
    """Reads Spark's progress records once each, adds what the writer knows, and sums up."""

    run: Run
    model: Model
    writer: BatchWriter
    query: StreamingQuery
    last: int = -1
    seen: set[int] = field(default_factory=set)
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    state_rows: int = 0
    batches: int = 0
    watermark: str | None = None
    snapshot: int | None = None
    started: float = field(default_factory=time.monotonic)

    def drain(self) -> None:
        """Emit the batches that ended since the last call."""
        records = self.query._jsq.recentProgress()  # noqa: SLF001
        fresh = []
        for index in range(len(records) - 1, -1, -1):
            if int(records[index].batchId()) <= self.last:
                break
            fresh.append(json.loads(records[index].json()))
        for record in reversed(fresh):
            if record["batchId"] in self.writer.written and record["batchId"] not in self.seen:
                self._batch(record)

    def _batch(self, record: dict[str, Any]) -> None:
        batch = int(record["batchId"])
        self.last = batch
        self.seen.add(batch)
        operators = record.get("stateOperators") or []
        written = self.writer.written.get(batch, Written(0, None))
        late = sum(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators)
        watermark = (record.get("eventTime") or {}).get("watermark")
        self.rows_in += int(record.get("numInputRows", 0))
        self.rows_out += written.rows
        self.late += late
        self.state_rows = sum(int(o.get("numRowsTotal", 0)) for o in operators)
        self.batches += 1
        self.watermark = watermark if watermark and watermark != _EPOCH else self.watermark
        self.snapshot = written.snapshot or self.snapshot
        self.run.emit(
            BatchCommitted(
                node=self.model.id,
                batch_id=batch,
                rows_in=int(record.get("numInputRows", 0)),
                rows_out=written.rows,
                late=late,
                state_rows=self.state_rows,
                watermark=self.watermark,
                snapshot_id=written.snapshot,
                seconds=float(record.get("batchDuration", 0)) / 1000,
                replayed=written.replayed,
            )
        )

    def outcome(self) -> Outcome:
        """What the query did, all in all."""
        action = self.run.plan.actions[self.model.id]
        notes = list(action.reasons) if action.change is Change.FORWARD else []
        closes = next_close(self.model, self.watermark, self.state_rows)
        changed = any(w.snapshot is not None and not w.replayed for w in self.writer.written.values())
        read = self.rows_in > 0 or changed or action.change is Change.NEW
        return Outcome(
            status=Status.SUCCESS if read else Status.UNCHANGED,
            message="" if read else "nothing new",
            rows_in=self.rows_in,
            rows_out=self.rows_out,
            late=self.late,
            state_rows=self.state_rows,
            batches=self.batches,
            watermark=self.watermark,
            snapshot_id=self.snapshot or self.writer.state.snapshot,
            note="; ".join([*notes, closes] if closes else notes),
        )
