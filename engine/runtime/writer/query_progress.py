"""What a streaming query reports of its micro-batches, with what the writer knows of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.compile import Model
from engine.events import BatchCommitted, Diagnosed, Status
from engine.plan import Change
from engine.runtime.context.run_context import Outcome, Run
from engine.runtime.inputs.watermark_lag import EventTimes, policy_of, timed
from engine.runtime.quality.bad_records import by_name
from engine.runtime.writer.micro_batch_writer import BatchWriter, WrittenBatch
from engine.runtime.writer.next_window import next_close

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
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    state_rows: int = 0
    batches: int = 0
    watermark: str | None = None
    snapshot: int | None = None
    bad_records: Counter[str] = field(default_factory=Counter)
    failed_checks: Counter[str] = field(default_factory=Counter)
    quarantined: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    times: EventTimes = field(init=False)

    def __post_init__(self) -> None:
        self.times = EventTimes(timed(self.model), self.writer.state.event_times)

    def drain(self) -> None:
        """Emit the batches that ended since the last call."""
        records = self.query._jsq.recentProgress()  # noqa: SLF001
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
        operators = record.get("stateOperators") or []
        written = self.writer.written.get(batch, WrittenBatch(0, None))
        late = sum(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators)
        watermark = (record.get("eventTime") or {}).get("watermark")
        self.rows_in += int(record.get("numInputRows", 0))
        self.rows_out += written.rows
        self.rows_updated += written.updated
        self.rows_deleted += written.deleted
        self.late += late
        self.state_rows = sum(int(o.get("numRowsTotal", 0)) for o in operators)
        self.batches += 1
        self.watermark = watermark if watermark and watermark != _EPOCH else self.watermark
        self.snapshot = written.snapshot or self.snapshot
        self._taken_out(written)
        self.times.see(record)
        self.run.emit(
            BatchCommitted(
                node=self.model.id,
                batch_id=batch,
                rows_in=int(record.get("numInputRows", 0)),
                rows_out=written.rows,
                late=late,
                bad_records=by_name(self.writer.rules.watched, written.bad_records),
                failed_checks=_some(written.failed_checks),
                quarantined=written.quarantined,
                rows_updated=written.updated,
                rows_deleted=written.deleted,
                state_rows=self.state_rows,
                watermark=self.watermark,
                snapshot_id=written.snapshot,
                seconds=float(record.get("batchDuration", 0)) / 1000,
                replayed=written.replayed,
            )
        )

    def _taken_out(self, written: WrittenBatch) -> None:
        for item in self.writer.rules.watched:
            found = written.bad_records.get(item.view, 0)
            # A static side is read again in each micro-batch, with the same bad records.
            self.bad_records[item.view] = found + self.bad_records[item.view] if item.once else found
        self.failed_checks.update(written.failed_checks)
        self.quarantined += written.quarantined

    def outcome(self) -> Outcome:
        """What the query did, all in all."""
        action = self.run.plan.actions[self.model.id]
        notes = list(action.notes)
        closes = next_close(self.model, self.watermark, self.state_rows)
        self._event_times()
        changed = any(w.snapshot is not None and not w.replayed for w in self.writer.written.values())
        read = self.rows_in > 0 or changed or (action.comparison is not None and action.comparison.change is Change.NEW)
        return Outcome(
            status=Status.SUCCESS if read else Status.UNCHANGED,
            message="" if read else "nothing new",
            rows_in=self.rows_in,
            rows_out=self.rows_out,
            late=self.late,
            bad_records=by_name(self.writer.rules.watched, self.bad_records),
            failed_checks=_some(self.failed_checks),
            quarantined=self.quarantined,
            rows_updated=self.rows_updated,
            rows_deleted=self.rows_deleted,
            state_rows=self.state_rows,
            batches=self.batches,
            watermark=self.watermark,
            snapshot_id=self.snapshot or self.writer.state.snapshot,
            note="; ".join([*notes, closes] if closes else notes),
            event_times=self.times.by_name(),
        )

    def _event_times(self) -> None:
        """Remember how far each input is, and tell if one of them holds back the others."""
        if (known := self.times.known()) != self.writer.state.event_times:
            self.writer.record(event_times=known)
        held = self.times.held_back(self.model, self.watermark, self.state_rows, policy_of(self.run.spark))
        if held is not None:
            self.run.emit(Diagnosed(held))


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
