"""The bound on what a turn of `engine start` takes: after its time a query ends between two micro-batches.

The micro-batch that was begun meanwhile has bounds in the checkpoint and no rows in the table: the next turn begins
with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TurnOver(Exception):  # noqa: N818 - nothing went wrong
    pass


@dataclass(slots=True)
class TurnBound:
    """The foreachBatch function of a turn; `until` is on the monotonic clock; None: the turn is never over."""

    write: Callable[[DataFrame, int], None]
    until: float | None
    over: bool = False
    _written: int = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one micro-batch, unless the turn is over; each turn has one at least."""
        if self.until is not None and self._written and time.monotonic() > self.until:
            self.over = True
            raise TurnOver
        self.write(frame, batch)
        self._written += 1
