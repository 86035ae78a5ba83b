"""Rules of joins."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.columns.plan_values import TIMES
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.intervals import adds_dates
from engine.compile.sql.query_nodes import TreeNode
from engine.compile.streaming.aggregate_rules import is_collated
from engine.compile.streaming.query_plan.join_bounds import bounds_state, event_time_equality, separates
from engine.compile.streaming.query_plan.logical_plan import Aggregate, Distinct, Join, LogicalPlan, Side, walk
from engine.compile.streaming.query_plan.stream_facts import StreamQuery, error, warning
from engine.compile.streaming.waiting_rows import missing_bound_fix, side_name, waiting_reason, waiting_sides


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


_NAMES = {
    "left": "left outer", "right": "right outer", "full": "full outer", "semi": "left semi", "anti": "left anti",
}  # fmt: skip


def joins(query: StreamQuery) -> Iterator[QueryFinding]:
    """What Spark rejects before the start."""
    for step in walk(query.plan):
        if isinstance(step, Join) and not step.lateral:
            if (place := contradiction(step)) is not None:
                message = "no rows can match: the time bounds of the join exclude each other"
                yield warning("join-never-matches", message, "Turn the sign of an interval, or the comparison.", place)
            if step.left_side.streaming and step.right_side.streaming:
                yield from _streams(query, step)
            elif step.left_side.streaming or step.right_side.streaming:
                yield from _static(step)


def running_joins(query: StreamQuery) -> Iterator[QueryFinding]:
    """What Spark finds only when the query runs, and what then grows without bound."""
    rejected = {id(step.node) for step in walk(query.plan) if isinstance(step, Join) and _never_closes(step)}
    for step in walk(query.runs):
        if not isinstance(step, Join) or step.lateral or not (step.left_side.streaming and step.right_side.streaming):
            continue
        pairs = [c for c in step.conditions if c.sign in {"=", "<=>"} and separates(step, c)]
        if not pairs and not (step.left_side.open or step.right_side.open):
            message = "a join of two streams needs an equality of their columns"
            hint = "Add an equality to ON, such as l.id = r.id."
            yield error("join-no-equality", message, hint, step.node)
        elif query.mode == "append" and id(step.node) not in rejected:
            yield from _waiting_rows(step)
        for condition in pairs:
            sides = (condition.left_side, condition.right_side)
            if any(side is not None and is_collated(side.type) for side in sides):
                message = "a join column with a collation is not supported on streams"
                hint = "Join on lower(s) of columns without collation."
                yield error("collation-key", message, hint, condition.node)


def _streams(query: StreamQuery, step: Join) -> Iterator[QueryFinding]:
    if query.mode != "append":
        yield _mode(query, step)
    if step.kind == "anti":
        message = "an anti join of two streams is not supported: a match may always arrive later"
        hint = "Use LEFT JOIN with a time bound in ON and WHERE r.key IS NULL; or remove one side from 'streams:'."
        yield error("join-anti", message, hint, step.node)
    elif _never_closes(step):
        name = _NAMES[step.kind]
        message = f"a {name} join of two streams needs a time bound in ON: without it an unmatched row is never written"
        hint = missing_bound_fix(step, [step.left_side, step.right_side])
        if any(adds_dates(condition.node) for condition in step.conditions):
            hint = f"{hint} Write + interval: Spark finds no bound in dateadd()."
        yield error("join-outer-condition", message, hint, step.node)


def _mode(query: StreamQuery, step: Join) -> QueryFinding:
    above = any(isinstance(upper, (Aggregate, Distinct)) and step in walk(upper) for upper in walk(query.plan))
    if above:
        message = f"an aggregate over a join of two streams is not supported in {query.mode} mode"
        hint = "Set output_mode: append; or split it into two models: the join, and the aggregate over its table."
        return error("chain-join-mode", message, hint, step.node)
    message = f"a join of two streams is not supported in {query.mode} mode"
    return error("join-mode", message, "Set output_mode: append; with unique_key rows are still merged.", step.node)


def _never_closes(step: Join) -> bool:
    return step.kind != "inner" and not _releases_rows(step)


def _releases_rows(step: Join) -> bool:
    """Condition J of the reference: a row of the preserved side is released at some time."""
    if event_time_equality(step):
        return True
    left_bound = bounds_state(step.left_side, step.right_side, step.conditions)
    right_bound = bounds_state(step.right_side, step.left_side, step.conditions)
    if step.kind in {"left", "semi"}:
        return left_bound
    return right_bound if step.kind == "right" else left_bound or right_bound


def _static(step: Join) -> Iterator[QueryFinding]:
    preserved = {"left": step.left_side, "semi": step.left_side, "anti": step.left_side, "right": step.right_side}.get(
        step.kind
    )
    if step.kind == "inner" or (preserved is not None and preserved.streaming):
        return
    name = _NAMES[step.kind]
    message = f"in a {name} join of a stream and a table the stream must be on the preserved side"
    hint = "Swap the sides, or use an inner join." if step.kind != "full" else "Use a left join from the stream."
    yield error("join-outer-static", message, hint, step.node)


def _preserved_sides(step: Join) -> list[LogicalPlan]:
    """The sides whose unmatched rows are written."""
    return {"left": [step.left_side], "right": [step.right_side], "full": [step.left_side, step.right_side]}.get(
        step.kind, []
    )


def _waiting_rows(step: Join) -> Iterator[QueryFinding]:
    """Rows that never leave the state: an error where they would be written when they leave it."""
    waiting = waiting_sides(step)
    if not waiting or step.left_side.open or step.right_side.open:
        return  # nothing waits, or nobody knows
    unmatched_sides = [side for side in _preserved_sides(step) if any(side is one for one in waiting)]
    if unmatched_sides:
        names = " and ".join(side_name(step, side) for side in unmatched_sides)
        message = f"unmatched rows of {names} would never be written: {waiting_reason(step, unmatched_sides[0])}"
        yield error("join-unmatched-rows", message, missing_bound_fix(step, waiting), step.node)
        return
    names = " and ".join(side_name(step, side) for side in waiting)
    message = f"the join keeps all rows of {names} in state, without bound: {waiting_reason(step, waiting[0])}"
    yield warning("unbounded-join", message, missing_bound_fix(step, waiting), step.node)
