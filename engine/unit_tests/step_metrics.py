"""The numbers of a unit test, from Spark's progress reports and from the writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.events import Metrics
from engine.runtime.writer.micro_batch_writer import WrittenBatch
from engine.runtime.writer.query_progress import metrics_of
from engine.times import time_millis


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetrics(Metrics):
    """The numbers of one or all steps, without rows that a flush read or keeps in state; times in ms since 1970.

    `watermark`: with which the next micro-batch begins; None: there is none yet. `times`: for each micro-batch with
    event times: its watermark (None: none) and its earliest event time. `flushed`: a flush has moved the watermark past
    every row.
    """

    watermark: int | None = None
    times: tuple[tuple[int | None, int], ...] = ()
    flushed: bool = False

    def with_step(self, later: StepMetrics) -> StepMetrics:
        """Return the sum of both; state and watermark are the later ones."""
        return StepMetrics(
            watermark=later.watermark,
            times=(*self.times, *later.times),
            flushed=self.flushed or later.flushed,
            **self.plus(later).numbers(),
        )


def rows_put_into_state(record: Mapping[str, Any]) -> int:
    return sum(int(o.get("numRowsUpdated", 0)) for o in record.get("stateOperators") or ())


def batch_metrics(
    record: Mapping[str, Any], written_batch: WrittenBatch, watermark: int | None, flushed: int, *, hidden: bool
) -> StepMetrics:
    """Return the numbers of a micro-batch.

    Args:
        record: Spark's progress report.
        watermark: of the next micro-batch.
        flushed: rows of the last flush in state.
        hidden: its rows are those of a flush.
    """
    metrics = metrics_of(record, written_batch.metrics)
    state_rows = max(metrics.state_rows - flushed, 0)
    metrics = replace(metrics, rows_in=0, duplicates=0) if hidden else metrics
    numbers = replace(metrics, state_rows=state_rows).numbers()
    return StepMetrics(watermark=watermark, times=() if hidden else _times(record), **numbers)


def _times(record: Mapping[str, Any]) -> tuple[tuple[int | None, int], ...]:
    event_times = record.get("eventTime") or {}
    if "min" not in event_times:
        return ()
    start_watermark, earliest = (_millis(event_times.get(key)) for key in ("watermark", "min"))
    return ((start_watermark or None, earliest),)


def _millis(text: str | None) -> int:
    return time_millis(text) if text else 0
