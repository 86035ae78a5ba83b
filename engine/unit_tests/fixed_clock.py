"""The clock of a streaming query in a unit test: `current_timestamp()` of a micro-batch returns its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.spark.internals.queries import set_clock
from engine.times import time_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class FixedClock:
    """A clock that moves only when it is set: `now` in milliseconds since 1970; None: the machine's time."""

    session: SparkSession
    now: int | None = None

    def set(self, now: int, query: Any) -> None:
        """Set the clock of a running query."""
        self.now = now
        self.apply(query)

    def apply(self, query: Any) -> None:
        """Make a query see this clock."""
        self.show(self.now, query)

    def show(self, at: int | None, query: Any) -> None:
        """Make a query see another time until `apply`; None: the machine's."""
        set_clock(self.session, query, at)


def millis(text: str) -> int:
    """Return a time of a unit test (UTC) in milliseconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def mark_text(at: int | None) -> str:
    return "none yet" if at is None else time_text(at)
