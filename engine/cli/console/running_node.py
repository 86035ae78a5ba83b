"""How far a model that runs is, and a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.events import BatchCommitted


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A model that runs.

    Attributes:
        began: on the monotonic clock.
        unit: in which its input is counted; empty: it is not.
        total: how much of it there was to read.
        units_read: how much of that was read.
        rows: read in committed micro-batches.
        rate: rows per second of the last one.
        watermark: UTC text; empty: there is none.
    """

    name: str
    began: float
    unit: str = ""
    total: int = 0
    units_read: int = 0
    rows: int = 0
    rate: float = 0.0
    watermark: str = ""

    def with_batch(self, batch: BatchCommitted) -> RunningNode:
        return replace(
            self,
            units_read=min(self.total, self.units_read + batch.read.get(self.unit, 0)),
            rows=self.rows + batch.rows_in,
            rate=batch.rows_in / batch.seconds if batch.seconds else 0.0,
            watermark=batch.watermark or self.watermark,
        )


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is: its nodes, those that have ended, and when it began on the monotonic clock."""

    total: int
    ended: int
    began: float
