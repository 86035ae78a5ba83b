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
    """

    input: str
    what: str
    count: int | None


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


def totals(found: Iterable[Lag]) -> Mapping[str, int]:
    """Sum what is known by its unit: `{"files": 3}`."""
    sums: dict[str, int] = {}
    for lag in found:
        if lag.what and lag.count is not None:
            sums[lag.what] = sums.get(lag.what, 0) + lag.count
    return sums
