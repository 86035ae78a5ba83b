"""The numbers of a unit test, from Spark's progress records and from the writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from engine.runtime.writer.micro_batch_writer import WrittenBatch


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """What a query told of one step, or of all steps together.

    Attributes:
        rows_in: rows read, without those of a flush.
        rows_out: rows written.
        late: rows behind the watermark, as Spark counts them.
        duplicates: repeats that a dedup dropped.
        quarantined: rows in the quarantine.
        failed: rows that failed expectations, by name.
        state_rows: rows held in state after it, without those of a flush.
        watermark: with which the next micro-batch begins, milliseconds since 1970; None: there is none yet.
        times: of each micro-batch with event times: the watermark with which it began (None: there was none), and its
            earliest event time, milliseconds since 1970.
    """

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    duplicates: int = 0
    quarantined: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    state_rows: int = 0
    watermark: int | None = None
    times: tuple[tuple[int | None, int], ...] = ()

    def plus(self, later: StepMetrics) -> StepMetrics:
        """Both together; state and watermark are the later ones."""
        names = {*self.failed, *later.failed}
        return replace(
            later,
            rows_in=self.rows_in + later.rows_in,
            rows_out=self.rows_out + later.rows_out,
            late=self.late + later.late,
            duplicates=self.duplicates + later.duplicates,
            quarantined=self.quarantined + later.quarantined,
            failed={name: self.failed.get(name, 0) + later.failed.get(name, 0) for name in names},
            times=(*self.times, *later.times),
        )


def put_into_state(record: Mapping[str, Any]) -> int:
    """How many rows a micro-batch put into state."""
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
    operators = record.get("stateOperators") or []
    return StepMetrics(
        rows_in=0 if hidden else int(record.get("numInputRows", 0)),
        rows_out=written.rows,
        late=sum(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators),
        duplicates=0 if hidden else sum(_duplicates(o) for o in operators),
        quarantined=written.quarantined,
        failed=dict(written.failed_checks),
        state_rows=max(sum(int(o.get("numRowsTotal", 0)) for o in operators) - flushed, 0),
        watermark=watermark,
        times=() if hidden else _times(record),
    )


def _times(record: Mapping[str, Any]) -> tuple[tuple[int | None, int], ...]:
    told = record.get("eventTime") or {}
    if "min" not in told:
        return ()
    began, earliest = (_millis(told.get(key)) for key in ("watermark", "min"))
    return ((began or None, earliest),)


def _millis(text: str | None) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000) if text else 0


def _duplicates(operator: Mapping[str, Any]) -> int:
    return int((operator.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0))
