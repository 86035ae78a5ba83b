"""What a streaming query reports of its micro-batches: progress, unread input, held state, the next window's close."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.compile import Model
from engine.errors import StateError
from engine.events import BatchCommitted, Diagnosed, HeldInState, Metrics, Outcome, Status
from engine.plan import Action, Change
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.watermark_lag import EventTimes, ahead_of_clock, policy_of, timed
from engine.runtime.quality import bad_records
from engine.runtime.quality.bad_records import by_name, reasons_by_name
from engine.runtime.writer.micro_batch_writer import BatchWriter, WrittenBatch
from engine.spark.internals.queries import recent_reports
from engine.state.file_log import files_of_entries
from engine.state.state_path import StatePath
from engine.times import duration_seconds

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


JOIN: Final = "symmetricHashJoin"
_KEYS = ("keys of dedup", "keys that were read; a row that repeats one is dropped")
# What each holds, and what that is for.
_WORDS: Final = {
    "stateStoreSave": ("open groups", "groups of GROUP BY, one a window and key, that later rows can still change"),
    "sessionWindowStateStoreSaveExec": ("open sessions", "session windows that later rows can still extend"),
    "dedupe": _KEYS,
    "dedupeWithinWatermark": _KEYS,
    "globalLimit": ("rows counted by LIMIT", "how many rows LIMIT has let through"),
    JOIN: ("rows that may still find a match", "rows of both sides of a join that later rows of the other can match"),
}


def meaning_of(operator: str) -> str:
    return _WORDS.get(operator, (operator, ""))[0]


def held_in_state(record: Mapping[str, Any]) -> tuple[HeldInState, ...]:
    steps = []
    for item in record.get("stateOperators") or ():
        operator = str(item.get("operatorName", ""))
        meaning, explanation = _WORDS.get(operator, (operator, ""))
        count, memory = (max(0, int(item.get(key) or 0)) for key in ("numRowsTotal", "memoryUsedBytes"))
        steps.append(HeldInState(operator, meaning, explanation, count, memory))
    return tuple(steps)


FILES, OFFSETS = "files", "offsets"
# What an offset of another form, or a log that was edited, raises where it is read.
_OTHER = (StateError, OSError, ValueError, LookupError, TypeError, AttributeError)


def unread_amounts(action: Action) -> dict[str, int]:
    sums: dict[str, int] = {}
    for unread in action.unread:
        if unread.unit and unread.count:
            sums[unread.unit] = sums.get(unread.unit, 0) + unread.count
    return sums


def read_amounts(record: Mapping[str, Any], units: Iterable[str], checkpoint: StatePath) -> dict[str, int]:
    """Return how many files and offsets a micro-batch read; files are looked up in a local checkpoint only."""
    amounts: dict[str, int] = {}
    try:
        for line, source in enumerate(record.get("sources") or ()):
            start, end = (_offset(source.get(key)) for key in ("startOffset", "endOffset"))
            if OFFSETS in units and isinstance(start, dict) and (count := sum(_offsets(start, end))):
                amounts[OFFSETS] = amounts.get(OFFSETS, 0) + count
            if FILES in units and isinstance(end, dict) and "logOffset" in end and isinstance(checkpoint, Path):
                first = int(start["logOffset"]) if isinstance(start, dict) else -1
                count = files_of_entries(checkpoint, line, first, int(end["logOffset"]))
                amounts[FILES] = amounts.get(FILES, 0) + count
    except _OTHER:
        return {}
    return amounts


def _offset(value: Any) -> Any:
    """An offset as a value: Spark's record has it as JSON or as a string of JSON."""
    return json.loads(value) if isinstance(value, str) else value


def _offsets(start: Mapping[str, Any], end: Any) -> Iterator[int]:
    for topic, partitions in end.items():
        if isinstance(partitions, dict):
            start_offsets = start.get(topic) or {}
            yield from (int(at) - int(start_offsets[p]) for p, at in partitions.items() if p in start_offsets)


def next_close(model: Model, watermark: str | None, state_rows: int) -> str:
    """One sentence on when the next window closes, or nothing; `watermark`: Spark's, ISO text in UTC."""
    delays = {item.watermark.delay for item in model.inputs if item.watermark}
    # Without an offset they begin at multiples of their slide since 1970 (Spark, TimeWindow).
    windows = [w for w in model.windows.values() if w.kind != "session" and not w.start]
    if watermark is None or state_rows == 0 or len(delays) != 1 or not len(windows) == len(model.windows) == 1:
        return ""
    size = round(duration_seconds(windows[0].size) * 1000)
    slide = round(duration_seconds(windows[0].slide or windows[0].size) * 1000)
    delay = timedelta(seconds=duration_seconds(delays.pop()))
    try:
        at = round(datetime.fromisoformat(watermark).timestamp() * 1000)
        end = ((at - size) // slide + 1) * slide + size
        closes = datetime.fromtimestamp(end / 1000, UTC)
        closing_time = closes + delay
    except (ValueError, OverflowError):
        # A time beyond the year 9999: nobody waits for the next one.
        return ""
    return (
        f"the window that ends at {closes:%Y-%m-%d %H:%M} closes when event time passes {closing_time:%Y-%m-%d %H:%M}"
    )


_EPOCH = "1970-01-01T00:00:00.000Z"


@dataclass(slots=True)
class Progress:
    run: Run
    model: Model
    writer: BatchWriter
    query: StreamingQuery
    last_batch: int = -1
    seen_batches: set[int] = field(default_factory=set)
    total: Metrics = field(default_factory=Metrics)
    batches: int = 0
    watermark: str | None = None
    snapshot: int | None = None
    times: EventTimes = field(init=False)

    def __post_init__(self) -> None:
        self.times = EventTimes(timed(self.model), self.writer.state.event_times)

    def drain(self) -> None:
        records = recent_reports(self.query)
        new_records = []
        for index in range(len(records) - 1, -1, -1):
            if int(records[index].batchId()) <= self.last_batch:
                break
            new_records.append(json.loads(records[index].json()))
        for record in reversed(new_records):
            # A query that waits reports the batch to come, too.
            ran = "addBatch" in (record.get("durationMs") or {})
            if ran and record["batchId"] in self.writer.written_batches and record["batchId"] not in self.seen_batches:
                self._batch(record)

    def _batch(self, record: dict[str, Any]) -> None:
        batch = int(record["batchId"])
        self.last_batch = batch
        self.seen_batches.add(batch)
        written_batch = self.writer.written_batches.get(batch, WrittenBatch())
        metrics = metrics_of(record, written_batch.metrics)
        watermark = (record.get("eventTime") or {}).get("watermark")
        bad = self._bad_records(metrics)
        self.total = replace(self.total.plus(metrics), bad_records=bad)
        self.batches += 1
        self.watermark = watermark if watermark and watermark != _EPOCH else self.watermark
        self.snapshot = written_batch.snapshot or self.snapshot
        self.times.see(record)
        self.run.emit(
            BatchCommitted(
                node=self.model.id,
                batch_id=batch,
                watermark=self.watermark,
                snapshot_id=written_batch.snapshot,
                seconds=float(record.get("batchDuration", 0)) / 1000,
                replayed=written_batch.replayed,
                read=self._read_amounts(record),
                held=held_in_state(record),
                **self._shown_metrics(metrics).numbers(),
            )
        )

    def _read_amounts(self, record: dict[str, Any]) -> dict[str, int]:
        if not (unread := unread_amounts(self.run.plan.actions[self.model.id])):
            return {}
        return read_amounts(record, unread, self.writer.folder.checkpoint(self.writer.state.generation))

    def _bad_records(self, metrics: Metrics) -> dict[str, int]:
        counts = dict(self.total.bad_records)
        for item in self.writer.rules.watched_inputs:
            count = metrics.bad_records.get(item.view, 0)
            # A static side is re-read in each micro-batch, with the same bad records.
            counts[item.view] = count + counts.get(item.view, 0) if item.once else count
        return counts

    def _shown_metrics(self, metrics: Metrics) -> Metrics:
        failed_checks = {name: count for name, count in metrics.failed_checks.items() if count}
        bad = by_name(self.writer.rules.watched_inputs, metrics.bad_records)
        reasons = reasons_by_name(self.writer.rules.watched_inputs, metrics.bad_reasons)
        return replace(metrics, bad_records=bad, bad_reasons=reasons, failed_checks=failed_checks)

    def outcome(self) -> Outcome:
        action = self.run.plan.actions[self.model.id]
        notes = list(action.notes)
        closes = next_close(self.model, self.watermark, self.total.state_rows)
        lag_message = self._watermark_held()
        has_commits = any(w.snapshot is not None and not w.replayed for w in self.writer.written_batches.values())
        is_new = action.comparison is not None and action.comparison.change is Change.NEW
        has_progress = self.total.rows_in > 0 or has_commits or is_new
        total = self._shown_metrics(self.total)
        for warning in bad_records.warnings(self.model.name, self.writer.rules.watched_inputs, total.bad_records):
            self.run.emit(Diagnosed(warning))
        return Outcome(
            status=Status.SUCCESS if has_progress else Status.UNCHANGED,
            message="" if has_progress else "no new data",
            batches=self.batches,
            watermark=self.watermark,
            watermark_held=lag_message,
            snapshot_id=self.snapshot or self.writer.state.snapshot,
            note="; ".join([*notes, closes] if closes else notes),
            event_times=self.times.by_name(),
            **total.numbers(),
        )

    def _watermark_held(self) -> str:
        if (event_times := self.times.merged_times()) != self.writer.state.event_times:
            self.writer.record(event_times=event_times)
        lag = self.times.held_back(self.model, self.watermark, self.total.state_rows, policy_of(self.run.spark))
        for warning in (lag, ahead_of_clock(self.model, self.watermark, datetime.now(UTC))):
            if warning is not None:
                self.run.emit(Diagnosed(warning))
        return lag.message if lag is not None else ""


def metrics_of(record: Mapping[str, Any], writer_metrics: Metrics) -> Metrics:
    operators = record.get("stateOperators") or []
    return replace(
        writer_metrics,
        rows_in=int(record.get("numInputRows", 0)),
        late=sum(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators),
        duplicates=sum(int((o.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0)) for o in operators),
        state_rows=sum(int(o.get("numRowsTotal", 0)) for o in operators),
    )
