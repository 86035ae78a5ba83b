"""What a streaming query reports of its micro-batches, with what the writer knows of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.events import BatchCommitted, Diagnosed, Metrics, Outcome, Status
from engine.plan import Change
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.watermark_lag import EventTimes, ahead_of_clock, policy_of, timed
from engine.runtime.quality import too_many_bad_records
from engine.runtime.quality.bad_records import by_name, reasons_by_name
from engine.runtime.spark_support.state_operators import held_in_state
from engine.runtime.writer.micro_batch_writer import BatchWriter, WrittenBatch
from engine.runtime.writer.next_window import next_close
from engine.runtime.writer.read_amounts import read_amounts, unread_amounts
from engine.spark.internals.queries import recent_reports

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_EPOCH = "1970-01-01T00:00:00.000Z"


@dataclass(slots=True)
class Progress:
    """Reads Spark's progress records once each, adds what the writer knows, and sums up."""

    run: Run
    model: Model
    writer: BatchWriter
    query: StreamingQuery
    last: int = -1
    seen: set[int] = field(default_factory=set)
    total: Metrics = field(default_factory=Metrics)
    batches: int = 0
    watermark: str | None = None
    snapshot: int | None = None
    times: EventTimes = field(init=False)

    def __post_init__(self) -> None:
        self.times = EventTimes(timed(self.model), self.writer.state.event_times)

    def drain(self) -> None:
        records = recent_reports(self.query)
        fresh = []
        for index in range(len(records) - 1, -1, -1):
            if int(records[index].batchId()) <= self.last:
                break
            fresh.append(json.loads(records[index].json()))
        for record in reversed(fresh):
            # A query that waits reports the batch to come, too.
            ran = "addBatch" in (record.get("durationMs") or {})
            if ran and record["batchId"] in self.writer.written and record["batchId"] not in self.seen:
                self._batch(record)

    def _batch(self, record: dict[str, Any]) -> None:
        batch = int(record["batchId"])
        self.last = batch
        self.seen.add(batch)
        written = self.writer.written.get(batch, WrittenBatch())
        metrics = metrics_of(record, written.metrics)
        watermark = (record.get("eventTime") or {}).get("watermark")
        bad = self._bad_records(metrics)
        self.total = replace(self.total.plus(metrics), bad_records=bad)
        self.batches += 1
        self.watermark = watermark if watermark and watermark != _EPOCH else self.watermark
        self.snapshot = written.snapshot or self.snapshot
        self.times.see(record)
        self.run.emit(
            BatchCommitted(
                node=self.model.id,
                batch_id=batch,
                watermark=self.watermark,
                snapshot_id=written.snapshot,
                seconds=float(record.get("batchDuration", 0)) / 1000,
                replayed=written.replayed,
                read=self._read(record),
                held=held_in_state(record),
                **self._shown(metrics).numbers(),
            )
        )

    def _read(self, record: dict[str, Any]) -> dict[str, int]:
        if not (unread := unread_amounts(self.run.plan.actions[self.model.id])):
            return {}
        return read_amounts(record, unread, self.writer.folder.checkpoint(self.writer.state.generation))

    def _bad_records(self, metrics: Metrics) -> dict[str, int]:
        found = dict(self.total.bad_records)
        for item in self.writer.rules.watched:
            count = metrics.bad_records.get(item.view, 0)
            # A static side is read again in each micro-batch, with the same bad records.
            found[item.view] = count + found.get(item.view, 0) if item.once else count
        return found

    def _shown(self, metrics: Metrics) -> Metrics:
        """Numbers with inputs by their names, and without checks that no row failed."""
        failed = {name: count for name, count in metrics.failed_checks.items() if count}
        bad = by_name(self.writer.rules.watched, metrics.bad_records)
        reasons = reasons_by_name(self.writer.rules.watched, metrics.bad_reasons)
        return replace(metrics, bad_records=bad, bad_reasons=reasons, failed_checks=failed)

    def outcome(self) -> Outcome:
        action = self.run.plan.actions[self.model.id]
        notes = list(action.notes)
        closes = next_close(self.model, self.watermark, self.total.state_rows)
        held = self._watermark_held()
        changed = any(w.snapshot is not None and not w.replayed for w in self.writer.written.values())
        fresh = action.comparison is not None and action.comparison.change is Change.NEW
        read = self.total.rows_in > 0 or changed or fresh
        total = self._shown(self.total)
        for warning in too_many_bad_records.warnings(self.model.name, self.writer.rules.watched, total.bad_records):
            self.run.emit(Diagnosed(warning))
        return Outcome(
            status=Status.SUCCESS if read else Status.UNCHANGED,
            message="" if read else "no new data",
            batches=self.batches,
            watermark=self.watermark,
            watermark_held=held,
            snapshot_id=self.snapshot or self.writer.state.snapshot,
            note="; ".join([*notes, closes] if closes else notes),
            event_times=self.times.by_name(),
            **total.numbers(),
        )

    def _watermark_held(self) -> str:
        if (known := self.times.known()) != self.writer.state.event_times:
            self.writer.record(event_times=known)
        held = self.times.held_back(self.model, self.watermark, self.total.state_rows, policy_of(self.run.spark))
        for warning in (held, ahead_of_clock(self.model, self.watermark, datetime.now(UTC))):
            if warning is not None:
                self.run.emit(Diagnosed(warning))
        return held.message if held is not None else ""


def metrics_of(record: Mapping[str, Any], written: Metrics) -> Metrics:
    operators = record.get("stateOperators") or []
    return replace(
        written,
        rows_in=int(record.get("numInputRows", 0)),
        late=sum(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators),
        duplicates=sum(int((o.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0)) for o in operators),
        state_rows=sum(int(o.get("numRowsTotal", 0)) for o in operators),
    )
