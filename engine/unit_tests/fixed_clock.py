"""The clock of a streaming query: `current_timestamp()` of a micro-batch is what it shows."""

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
    """A clock that does not move until it is set.

    Attributes:
        now: what it shows, in milliseconds since 1970; None: the machine's time.
    """

    session: SparkSession
    now: int | None = None

    def set(self, now: int, query: Any) -> None:
        """Set the clock of a running query."""
        self.now = now
        self.wind(query)

    def wind(self, query: Any) -> None:
        """Let a query see this clock."""
        self.show(self.now, query)

    def show(self, at: int | None, query: Any) -> None:
        """Let a query see a time until it is wound again; None: the machine's."""
        set_clock(self.session, query, at)


def millis(text: str) -> int:
    """A time of a unit test (UTC) in milliseconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def shown(at: int | None) -> str:
    return "none yet" if at is None else time_text(at)
