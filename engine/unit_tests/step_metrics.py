"""The numbers of a unit test, from Spark's progress records and from the writer."""

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
    """The numbers of one step, or of all steps together, without rows that a flush read or holds in state.

    Attributes:
        watermark: with which the next micro-batch begins, milliseconds since 1970; None: there is none yet.
        times: of each micro-batch with event times: the watermark with which it began (None: there was none), and its
            earliest event time, milliseconds since 1970.
        flushed: a flush has moved the watermark past every row.
    """

    watermark: int | None = None
    times: tuple[tuple[int | None, int], ...] = ()
    flushed: bool = False

    def with_step(self, later: StepMetrics) -> StepMetrics:
        """Both together; state and watermark are the later ones."""
        return StepMetrics(
            watermark=later.watermark,
            times=(*self.times, *later.times),
            flushed=self.flushed or later.flushed,
            **self.plus(later).numbers(),
        )


def put_into_state(record: Mapping[str, Any]) -> int:
    return sum(int(o.get("numRowsUpdated", 0)) for o in record.get("stateOperators") or ())


def of_batch(
    record: Mapping[str, Any], written: WrittenBatch, watermark: int | None, flushed: int, *, hidden: bool
) -> StepMetrics:
    """The numbers of a micro-batch.

    Args:
        record: Spark's progress of it.
        written: what the writer says.
        watermark: of the next micro-batch.
        flushed: rows of the last flush that are held in state.
        hidden: its rows are those of a flush.
    """
    metrics = metrics_of(record, written.metrics)
    held = max(metrics.state_rows - flushed, 0)
    metrics = replace(metrics, rows_in=0, duplicates=0) if hidden else metrics
    numbers = replace(metrics, state_rows=held).numbers()
    return StepMetrics(watermark=watermark, times=() if hidden else _times(record), **numbers)


def _times(record: Mapping[str, Any]) -> tuple[tuple[int | None, int], ...]:
    told = record.get("eventTime") or {}
    if "min" not in told:
        return ()
    began, earliest = (_millis(told.get(key)) for key in ("watermark", "min"))
    return ((began or None, earliest),)


def _millis(text: str | None) -> int:
    return time_millis(text) if text else 0
