"""What each model has not read yet, from the facts of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.plan import Plan
    from engine.plan.actions.action import Unread, UnreadRecords
    from engine.sources import Place
    from engine.sources.traits import UnreadTimes


@dataclass(frozen=True, slots=True)
class Lag:
    """What an input has that its reader has not read.

    Attributes:
        what: `files`, `offsets`, `snapshots` or `tables`; empty: only the system behind it knows.
        count: how many; None: not known.
        oldest_at: when the oldest of it came to be: time of a record, modification time of a file, commit time of a
            snapshot, in seconds since 1970; None: not known, or there is none.
    """

    input: str
    what: str
    count: int | None
    oldest_at: float | None = None


@dataclass(frozen=True, slots=True)
class LagReader:
    """Tells what streaming models have not read; used by one thread, which asks again and again.

    What asks brokers for the times of records keeps its clients between.
    """

    _times: dict[Callable[[], UnreadTimes], UnreadTimes] = field(default_factory=dict)

    def lags(self, plan: Plan, place: Place) -> dict[str, tuple[Lag, ...]]:
        return {
            node: tuple(self._lag(unread, place) for unread in action.unread)
            for node, action in plan.actions.items()
            if action.unread
        }

    def close(self) -> None:
        while self._times:
            self._times.popitem()[1].close()

    def _lag(self, unread: Unread, place: Place) -> Lag:
        count = unread.present if unread.count is None else unread.count
        oldest = self._written_at(unread.records, place) if unread.records is not None else unread.oldest_at
        return Lag(unread.name, unread.unit, count, oldest)

    def _written_at(self, records: UnreadRecords, place: Place) -> float | None:
        """When the oldest of some records was written; None: not known."""
        from engine.sources import source_traits

        reader_type = source_traits(records.spec.format).unread_times
        if reader_type is None:
            return None
        if reader_type not in self._times:
            self._times[reader_type] = reader_type()
        try:
            lags = self._times[reader_type].oldest(records.spec, place, records.offsets, records.topics)
        except EngineError:
            return None
        return min(lags.values(), default=None)


def is_behind(lags: Iterable[Lag]) -> bool:
    return any(lag.count for lag in lags)


def seconds_unread(lags: Iterable[Lag], at: float) -> float | None:
    """Return the age of the oldest unread input; 0: all is read; None: not known.

    An input whose oldest record is not known may have an older one: the age is a lower bound then.
    """
    inputs = tuple(lags)
    if all(lag.count == 0 for lag in inputs):
        return 0.0 if inputs else None
    oldest = min((lag.oldest_at for lag in inputs if lag.oldest_at is not None), default=None)
    return None if oldest is None else round(max(at - oldest, 0.0), 1)


def totals(lags: Iterable[Lag]) -> Mapping[str, int]:
    """Sum what is known by its unit: `{"files": 3}`."""
    sums: dict[str, int] = {}
    for lag in lags:
        if lag.what and lag.count is not None:
            sums[lag.what] = sums.get(lag.what, 0) + lag.count
    return sums
