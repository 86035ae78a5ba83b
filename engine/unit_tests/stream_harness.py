"""A model's own query and writer over given rows: one query runs through the steps of a unit test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.compile.nodes.unit_test_steps import StepKind, UnitTestStep
from engine.runtime.quality import expectations
from engine.runtime.quality.quarantine import Quarantine, quarantines
from engine.runtime.sinks import Output, output_of, table_setup
from engine.runtime.sinks.deleted_keys import Deleted
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.runtime.streams.groups_left_out import with_groups_left_out
from engine.runtime.streams.run_stream import stream_writer
from engine.runtime.writer.micro_batch_writer import BatchWriter, Rules, WrittenBatch, compute_only, rules_of
from engine.spark.internals.plans import join_as_sql
from engine.spark.internals.queries import recent_reports
from engine.state import ModelState, TableState
from engine.state import checkpoint as spark_checkpoint
from engine.unit_tests.fixed_clock import FixedClock, millis
from engine.unit_tests.given_inputs import FedModel, Feed, add
from engine.unit_tests.step_metrics import StepMetrics, batch_metrics, rows_put_into_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Event times of flushes, each far ahead of the one before.
_FAR = 5000
_FAR_STEP = 100


@dataclass(slots=True)
class Trial:
    """A streaming model under test; `state` is the content of model.json."""

    session: SparkSession
    model: Model
    feeds: Mapping[str, Feed]
    folder: TableState
    frame: DataFrame
    rules: Rules
    output: Output
    state: ModelState
    clock: FixedClock
    metrics: StepMetrics = field(default_factory=StepMetrics)
    _writer: BatchWriter | None = None
    _query: Any = None
    _last_batch: int = -1
    _flushes: int = 0
    _flushed: int = 0
    _hiding: bool = False
    _hidden: set[int] = field(default_factory=set)

    def start(self) -> None:
        self._writer = BatchWriter(
            relation=self.model.relation.sql,
            markers=self._markers,
            folder=self.folder,
            state=self.state,
            reached=self.state.batch,
            snapshots={},
            rules=self.rules,
            output=self.output,
        )
        stream = stream_writer(self.model, self.frame, self._write, self.folder.checkpoint(1))
        self._query = stream.trigger(processingTime="0 seconds").start()
        self._writer.query.set_result(self._query)
        self.clock.apply(self._query)

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None
        if self._writer is not None:
            self.state = self._writer.state
            self._writer.query = Future()

    def step(self, step: UnitTestStep) -> StepMetrics:
        """Run a step's micro-batch, and the batch without data after it; raises errors of the writer and of Spark."""
        if step.now is not None:
            self.clock.set(millis(step.now), self._query)
        if step.kind is StepKind.RESTART:
            self.stop()
            self.start()
        elif step.kind is StepKind.FLUSH:
            self._flush()
        elif step.given:
            fed_rows = [(self.feeds[rows.view], self.feeds[rows.view].rows(rows.rows)) for rows in step.given]
            add(self._query, fed_rows, self.session)
        self._process_available()
        step_metrics = replace(self._read_progress(), flushed=step.kind is StepKind.FLUSH)
        self.metrics = self.metrics.with_step(step_metrics)
        return step_metrics

    def _markers(self, batch: int) -> Mapping[str, str]:
        return {"model": self.model.name, "generation": "1", "batch-id": str(batch), "fingerprint": "", "run-id": ""}

    def _write(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch; the rows of a flush are computed but not written."""
        writer = self._writer
        if writer is None:
            raise RuntimeError("a micro-batch of a query that was not started")
        if not self._hiding:
            writer(frame, batch)
            return
        self._hiding = False
        compute_only(frame)
        writer.record(batch=batch)
        writer.written_batches[batch] = WrittenBatch()
        self._hidden.add(batch)
        self.clock.apply(self._query)

    def _flush(self) -> None:
        self._flushes += 1
        at = f"{_FAR + _FAR_STEP * self._flushes}-01-01 00:00:00"
        rows = [(feed, frame) for feed in self.feeds.values() if (frame := feed.flushing(at)) is not None]
        if any(feed.item.watermark and feed.item.watermark.max_future for feed in self.feeds.values()):
            # A bound on the future holds against the clock, which is set back when the rows have been read.
            self.clock.show(millis(at), self._query)
        self._hiding = True
        add(self._query, rows, self.session)

    def _process_available(self) -> None:
        try:
            self._query.processAllAvailable()
        except spark_exceptions():
            if self._writer is not None and self._writer.error is not None:
                raise self._writer.error from None
            raise

    def _read_progress(self) -> StepMetrics:
        watermark = spark_checkpoint.next_watermark(self.folder.checkpoint(1))
        step = StepMetrics(state_rows=self.metrics.state_rows, watermark=watermark)
        written = self._writer.written_batches if self._writer is not None else {}
        for record in recent_reports(self._query):
            batch = int(record.batchId())
            if batch <= self._last_batch or batch not in written:
                continue
            progress = json.loads(record.json())
            # A query that waits shows so, with the number of the batch that is to come.
            if "addBatch" in (progress.get("durationMs") or {}):
                self._last_batch = batch
                hidden = batch in self._hidden
                self._flushed = rows_put_into_state(progress) if hidden else self._flushed
                step = step.with_step(batch_metrics(progress, written[batch], watermark, self._flushed, hidden=hidden))
        return step


def trial(session: SparkSession, fed_model: FedModel, folder: TableState) -> Trial:
    """Create the table of a model under test, without starting its query; raises RunError or Spark's errors."""
    model = fed_model.model
    join_as_sql(session)
    frame = table_setup.checked_frame(session, model)
    state = table_setup.make(model, model.relation, 1, folder, frame)
    quarantine = Quarantine(model, None) if quarantines(model, fed_model.watched) else None
    deleted = Deleted(model, None) if model.write.delete_when is not None else None
    frame_with_groups = with_groups_left_out(model, frame)
    return Trial(
        session=session,
        model=model,
        feeds=fed_model.feeds,
        folder=folder,
        frame=expectations.checked(frame_with_groups.frame, model.expectations),
        rules=rules_of(model, fed_model.watched, quarantine, folder.batches(1)),
        output=output_of(
            model, model.relation.sql, deleted, scope=frame_with_groups.scope, repeats=frame_with_groups.repeats
        ),
        state=state,
        clock=FixedClock(session),
    )
