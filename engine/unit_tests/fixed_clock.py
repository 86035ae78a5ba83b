"""The clock of a streaming query: `current_timestamp()` of a micro-batch is what it shows.

Spark takes the clock when it makes a query and has no public way to give one; the field is set while the query is
idle, before the first micro-batch (measured on Spark 4.1.4).
"""

# ruff: noqa: SLF001

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.times import time_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIELD = "triggerClock"


@dataclass(slots=True)
class FixedClock:
    """A clock that does not move until it is set.

    Attributes:
        session: of the query.
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
        util: Any = self.session._jvm.org.apache.spark.util  # type: ignore[union-attr]
        inner = query._jsq.streamingQuery()
        field = _field(inner)
        if at is not None:
            field.set(inner, util.ManualClock(at))
        elif "Manual" in str(field.get(inner).getClass().getName()):
            field.set(inner, util.SystemClock())


def _field(query: Any) -> Any:
    kind = query.getClass()
    while kind is not None:
        for found in kind.getDeclaredFields():
            if found.getName() == _FIELD or found.getName().endswith(f"$${_FIELD}"):
                found.setAccessible(True)
                return found
        kind = kind.getSuperclass()
    raise RuntimeError(f"this version of Spark has no {_FIELD}")


def millis(text: str) -> int:
    """A time of a unit test (UTC) in milliseconds since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def shown(at: int | None) -> str:
    """The way back: 2013-01-01 12:10:00."""
    return "none yet" if at is None else time_text(at)
