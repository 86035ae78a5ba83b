"""Whether comparing many rows of the inputs of a batch table is worth its time, by what it took before.

Where rows of keys cannot be followed, or not quicker, a comparison only finds out whether anything changed at all. A
table whose inputs change with each build would pay for it each time, and be slower under `refresh: auto` than in full.
Few rows are always compared (see `refresh_table`).
"""

from __future__ import annotations

from collections.abc import Mapping

# A comparison may take this part of a full computation, however seldom it helps.
_PART = 0.1
# After the first, the second, the third comparison in a row that was in vain, so many builds do without one.
_BUILDS = (2, 4, 8)

_FULL, _COMPARED, _IN_VAIN, _SINCE = "full", "compared", "in_vain", "since"


def why_not_compared(costs: Mapping[str, float]) -> str:
    """Return why a build should not compare, by the costs that the last one left; empty: it should."""
    in_vain = int(costs.get(_IN_VAIN, 0))
    compared, full = costs.get(_COMPARED, 0.0), costs.get(_FULL, 0.0)
    if in_vain < 1 or compared <= _PART * full:
        return ""
    builds = _BUILDS[min(in_vain, len(_BUILDS)) - 1] - int(costs.get(_SINCE, 0))
    if builds <= 0:
        return ""
    took = f"the last comparison took {compared:.1f} s, computing all {full:.1f} s, and rows had changed"
    return f"{took}; {'this build does' if builds == 1 else f'{builds} builds do'} without one"


def after_full(costs: Mapping[str, float], full: float, compared: float | None) -> dict[str, float]:
    """Return the costs after a full computation.

    Args:
        costs: before it.
        full: its seconds.
        compared: the seconds of a comparison of many rows that was in vain; None: there was none.
    """
    in_vain, now = costs.get(_IN_VAIN, 0), {**costs, _FULL: round(full, 3)}
    if compared is not None:
        return {**now, _COMPARED: round(compared, 3), _IN_VAIN: in_vain + 1, _SINCE: 0}
    return {**now, _SINCE: costs.get(_SINCE, 0) + 1} if in_vain else now


def after_comparison(costs: Mapping[str, float]) -> dict[str, float]:
    """Return the costs after a comparison that made a full computation needless."""
    return {_FULL: costs[_FULL]} if _FULL in costs else {}
