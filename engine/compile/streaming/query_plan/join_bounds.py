"""Time bounds of joins of streams: which rows of a side leave the state, and when.

StreamingSymmetricHashJoinHelper drops the rows of both sides by the event time where it is one of the equalities;
otherwise those of a watermarked side by each comparison from which StreamingJoinHelper can compute a time.
`StreamJoins.java` hides the comparisons that say something else: what is left are those of `releases`.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from engine.compile.streaming.query_plan.logical_plan import Condition, Join, LogicalPlan, PlanColumn, Side, Term


class Bound(Struct, frozen=True):
    """A comparison that Spark solves for a column of one side.

    `own` is the column, `other` that of the other side; None: a constant. `rounded`: times are compared without a part
    of their seconds. `repeated`: a summand is there twice, which Spark counts once.
    """

    condition: Condition
    own: PlanColumn
    other: PlanColumn | None
    rounded: bool
    repeated: bool

    @property
    def exact(self) -> bool:
        """Whether it says when the event times of both sides can no longer match."""
        times = self.own.watermark and self.other is not None and self.other.watermark
        return times and not (self.rounded or self.repeated or self.condition.projected)


def separates(join: Join, condition: Condition) -> bool:
    """Whether each side of a comparison uses one side of the join."""
    left_side, right_side = condition.left_side, condition.right_side
    if left_side is None or right_side is None or not left_side.refs or not right_side.refs:
        return False
    ours, theirs = join.left_side.ids, join.right_side.ids
    return (left_side.refs <= ours and right_side.refs <= theirs) or (
        left_side.refs <= theirs and right_side.refs <= ours
    )


def event_time_equality(join: Join) -> bool:
    """Return whether a watermarked column is one of the equality keys; not by `<=>`, whose sides Spark wraps."""
    return any(any(map(_has_watermark, _sides(pair))) for pair in equalities(join) if not pair.shared)


def equal_event_times(join: Join) -> bool:
    """Whether both sides of an equality are event times: rows of both are dropped, and late, by the same time."""
    return any(all(map(_has_watermark, _sides(pair))) for pair in equalities(join))


def half_marked(join: Join) -> PlanColumn | None:
    """The column without a watermark to which an event time is equal; None: there is no such equality."""
    for pair in equalities(join):
        one, other = _sides(pair)
        if _has_watermark(one) != _has_watermark(other):
            return (other if _has_watermark(one) else one).column
    return None


def equalities(join: Join) -> list[Condition]:
    """The equalities that key the state."""
    return [c for c in join.conditions if c.sign == "=" and separates(join, c)]


def bounds_state(side: LogicalPlan, by: LogicalPlan, conditions: tuple[Condition, ...]) -> bool:
    """Return whether one side's watermark bounds a column of the other, as Spark's check has it: also by constants."""
    if not any(column.watermark for column in by.columns):
        return False
    return any(bound.other is None or bound.other.watermark for bound in bounds(side, conditions))


def releases_rows(join: Join, side: LogicalPlan) -> bool:
    """Whether a row of one side leaves the state as soon as the watermark says that none can match it any more."""
    return equal_event_times(join) or any(bound.exact for bound in bounds(side, join.conditions))


def bounds(side: LogicalPlan, conditions: tuple[Condition, ...]) -> list[Bound]:
    """The comparisons that bound a column of one side from below."""
    solved = (_bound_of(side, condition) for condition in conditions)
    return [bound for bound in solved if bound is not None]


def _bound_of(side: LogicalPlan, condition: Condition) -> Bound | None:
    smaller, greater = condition.left_side, condition.right_side
    if condition.sign in {">", ">="}:
        smaller, greater = greater, smaller
    elif condition.sign not in {"<", "<="}:
        return None
    if smaller is None or greater is None or smaller.terms is None or greater.terms is None:
        return None
    terms = [*smaller.terms, *(Term(not t.negative, t.column, t.seconds, t.rounded) for t in greater.terms)]
    ids = side.ids
    ours = {(t.negative, t.column) for t in terms if t.column is not None and t.column.id in ids}
    theirs = {t.column.id: t.column for t in terms if t.column is not None and t.column.id not in ids}
    if len(ours) != 1 or len(theirs) > 1:
        return None
    ((negative, own),) = ours
    if not negative or own is None or all(t.column == own for t in terms):
        return None
    columns = [t for t in terms if t.column is not None]
    # Spark has the summands as a set, in which those of the greater side are negated.
    repeated = len(columns) > 1 + len(theirs) or any(map(_repeats_length, (smaller, greater)))
    other = next(iter(theirs.values()), None)
    return Bound(condition, own, other, any(t.rounded for t in columns), repeated)


def _repeats_length(side: Side) -> bool:
    lengths = Counter((t.negative, t.seconds) for t in side.terms or () if t.column is None)
    return any(number > 1 for number in lengths.values())


def _sides(pair: Condition) -> tuple[Side, Side]:
    left_side, right_side = pair.left_side, pair.right_side
    if left_side is None or right_side is None:
        raise TypeError(pair)
    return left_side, right_side


def _has_watermark(side: Side) -> bool:
    return side.column is not None and side.column.watermark
