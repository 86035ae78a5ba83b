"""Time bounds of joins, found as Spark finds them (its StreamingJoinHelper)."""

from __future__ import annotations

from engine.compile.streaming.query_plan.logical_plan import Condition, Join, LogicalPlan, Side, Term


def separates(join: Join, condition: Condition) -> bool:
    """Whether each side of a comparison uses one side of the join."""
    left, right = condition.left, condition.right
    if left is None or right is None or not left.refs or not right.refs:
        return False
    ours, theirs = _ids(join.left), _ids(join.right)
    return (left.refs <= ours and right.refs <= theirs) or (left.refs <= theirs and right.refs <= ours)


def event_time_equality(join: Join) -> bool:
    """Whether a watermarked column is one of the equality keys.

    `<=>` does not count: Spark wraps its sides.
    """
    return any(
        side is not None and side.column is not None and side.column.watermark
        for condition in join.conditions
        if condition.sign == "=" and not condition.shared and separates(join, condition)
        for side in (condition.left, condition.right)
    )


def bounds_state(of: LogicalPlan, by: LogicalPlan, conditions: tuple[Condition, ...]) -> bool:
    """Whether a condition bounds a column of one side from below by the watermark of the other.

    Spark solves `a < b` for the column; what it cannot compute is not a bound. A bound by constants counts too.
    """
    if not any(column.watermark for column in by.columns):
        return False
    return any(_bounds(of, by, condition) for condition in conditions)


def _bounds(of: LogicalPlan, by: LogicalPlan, condition: Condition) -> bool:
    smaller, greater = condition.left, condition.right
    if condition.sign in {">", ">="}:
        smaller, greater = greater, smaller
    elif condition.sign not in {"<", "<="}:
        return False
    terms = _difference(smaller, greater)
    if terms is None:
        return False
    ours = {t for t in terms if t.column is not None and t.column.id in _ids(of)}
    theirs = [t.column for t in terms if t.column is not None and t.column.id not in _ids(of)]
    if len(ours) != 1 or len({c.id for c in theirs}) > 1:
        return False
    (own,) = ours
    marked = {c.id for c in by.columns if c.watermark}
    rest = [t for t in terms if t != own]
    return own.negative and bool(rest) and all(c.id in marked for c in theirs)


def _difference(smaller: Side | None, greater: Side | None) -> list[Term] | None:
    if smaller is None or greater is None or smaller.terms is None or greater.terms is None:
        return None
    return [*smaller.terms, *(Term(not t.negative, t.column) for t in greater.terms)]


def _ids(plan: LogicalPlan) -> frozenset[int]:
    return frozenset(column.id for column in plan.columns)
