"""Bounds of a join that no pair of rows can meet: `b.ts between a.ts and a.ts - interval 1 hour`."""

from __future__ import annotations

from engine.compile.columns.plan_values import TIMES
from engine.compile.sql.query_nodes import TreeNode
from engine.compile.streaming.query_plan.logical_plan import Join, Side


def contradiction(join: Join) -> TreeNode | None:
    """The condition with which the time bounds of a join exclude each other; None: some rows can meet them."""
    least: dict[tuple[int, int], tuple[float, bool]] = {}
    for condition in join.conditions:
        smaller, greater = condition.left_side, condition.right_side
        if condition.sign in {">", ">="}:
            smaller, greater = greater, smaller
        elif condition.sign not in {"<", "<="}:
            continue
        one, other, equal = _point(smaller), _point(greater), condition.sign in {"<=", ">="}
        if one is None or other is None or one[0] == other[0]:
            continue
        # one - other is at most this; the second is False where it must be less.
        bound = other[1] - one[1], equal
        least[one[0], other[0]] = min(least.get((one[0], other[0]), bound), bound)
        back = least.get((other[0], one[0]))
        if back is not None and (bound[0] + back[0] < 0 or (bound[0] + back[0] == 0 and not (equal and back[1]))):
            return condition.node
    return None


def _point(side: Side | None) -> tuple[int, float] | None:
    """The time that is so many seconds after a column."""
    terms = side.terms if side is not None and side.terms is not None else ()
    times = [(term, term.column) for term in terms if term.column is not None]
    if len(times) != 1 or times[0][0].negative or times[0][0].rounded or times[0][1].type not in {*TIMES, "date", ""}:
        return None
    return times[0][1].id, sum(
        -term.seconds if term.negative else term.seconds for term in terms if term.column is None
    )
