"""What each model has not read yet, from the facts of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.plan import Plan


@dataclass(frozen=True, slots=True)
class Lag:
    """What an input has that its reader has not read.

    Attributes:
        input: its name.
        what: `files`, `offsets`, `snapshots` or `tables`; empty: only the system behind it knows.
        count: how many; None: not known.
        oldest_at: when the oldest of it came to be: time of a record, modification time of a file, commit time of a
            snapshot, in seconds since 1970; None: not known, or there is none.
    """

    input: str
    what: str
    count: int | None
    oldest_at: float | None = None


def lags(plan: Plan) -> dict[str, tuple[Lag, ...]]:
    """Return the unread input of each streaming model of a plan, by node id."""
    return {
        node: tuple(Lag(unread.name, unread.what, unread.count) for unread in action.unread)
        for node, action in plan.actions.items()
        if action.unread
    }


def is_behind(found: Iterable[Lag]) -> bool:
    """Whether there is certainly unread input."""
    return any(lag.count for lag in found)


def seconds_unread(found: Iterable[Lag], at: float) -> float | None:
    """Return the age of the oldest unread input; 0: all is read; None: not known.

    An input whose oldest record is not known may have an older one: the age is a lower bound then.
    """
    inputs = tuple(found)
    if all(lag.count == 0 for lag in inputs):
        return 0.0 if inputs else None
    oldest = min((lag.oldest_at for lag in inputs if lag.oldest_at is not None), default=None)
    return None if oldest is None else round(max(at - oldest, 0.0), 1)


def totals(found: Iterable[Lag]) -> Mapping[str, int]:
    """Sum what is known by its unit: `{"files": 3}`."""
    sums: dict[str, int] = {}
    for lag in found:
        if lag.what and lag.count is not None:
            sums[lag.what] = sums.get(lag.what, 0) + lag.count
    return sums
