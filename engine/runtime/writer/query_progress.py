"""What a streaming query reports of its micro-batches, with what the writer knows of them.

When the next window of a query will be written: the question everybody has after the first build.

How much unread input a query has, and how much of it a micro-batch read, in units that are counted.

Spark's names of the steps of a query that keep state, in plain words, and what its progress says they hold.
"""

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
    found = []
    for item in record.get("stateOperators") or ():
        operator = str(item.get("operatorName", ""))
        meaning, explanation = _WORDS.get(operator, (operator, ""))
        count, memory = (max(0, int(item.get(key) or 0)) for key in ("numRowsTotal", "memoryUsedBytes"))
        found.append(HeldInState(operator, meaning, explanation, count, memory))
    return tuple(found)


FILES, OFFSETS = "files", "offsets"
# What an offset of another form, or a log that was edited, raises where it is read.
_OTHER = (StateError, OSError, ValueError, LookupError, TypeError, AttributeError)


def unread_amounts(action: Action) -> dict[str, int]:
    """Return how much the inputs of a model have that it has not read, by unit, as far as the plan counted it."""
    sums: dict[str, int] = {}
    for unread in action.unread:
        if unread.what and unread.count:
            sums[unread.what] = sums.get(unread.what, 0) + unread.count
    return sums


def read_amounts(record: Mapping[str, Any], wanted: Iterable[str], checkpoint: StatePath) -> dict[str, int]:
    """Return how many files and offsets a micro-batch read; files are looked up in a local checkpoint only."""
    found: dict[str, int] = {}
    try:
        for line, source in enumerate(record.get("sources") or ()):
            begin, end = (_offset(source.get(key)) for key in ("startOffset", "endOffset"))
            if OFFSETS in wanted and isinstance(begin, dict) and (count := sum(_offsets(begin, end))):
                found[OFFSETS] = found.get(OFFSETS, 0) + count
            if FILES in wanted and isinstance(end, dict) and "logOffset" in end and isinstance(checkpoint, Path):
                first = int(begin["logOffset"]) if isinstance(begin, dict) else -1
                count = files_of_entries(checkpoint, line, first, int(end["logOffset"]))
                found[FILES] = found.get(FILES, 0) + count
    except _OTHER:
        return {}
    return found


def _offset(value: Any) -> Any:
    """An offset as a value: Spark's record has it as JSON or as a string of JSON."""
    return json.loads(value) if isinstance(value, str) else value


def _offsets(begin: Mapping[str, Any], end: Any) -> Iterator[int]:
    for topic, partitions in end.items():
        if isinstance(partitions, dict):
            before = begin.get(topic) or {}
            yield from (int(at) - int(before[p]) for p, at in partitions.items() if p in before)


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
        passed = closes + delay
    except (ValueError, OverflowError):
        # A time beyond the year 9999: nobody waits for the next one.
        return ""
    return f"the window that ends at {closes:%Y-%m-%d %H:%M} closes when event time passes {passed:%Y-%m-%d %H:%M}"


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
        for warning in bad_records.warnings(self.model.name, self.writer.rules.watched, total.bad_records):
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
