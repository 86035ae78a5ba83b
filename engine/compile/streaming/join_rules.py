"""Rules of joins."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.compile.streaming.aggregate_rules import collated
from engine.compile.streaming.lowering.lowered_query import LoweredQuery
from engine.compile.streaming.plan.join_bounds import bounds_state, event_time_equality, separates
from engine.compile.streaming.plan.logical_plan import Aggregate, Distinct, Join, walk
from engine.compile.streaming.plan.verdict import RuleFinding, error, warning

_BOUND = {
    "left": "r.ts <= l.ts + INTERVAL 5 MINUTES, and a watermark on the right side",
    "semi": "r.ts <= l.ts + INTERVAL 5 MINUTES, and a watermark on the right side",
    "right": "r.ts >= l.ts, and a watermark on the left side",
    "full": "r.ts BETWEEN l.ts AND l.ts + INTERVAL 5 MINUTES, and a watermark on both sides",
}
_NAMES = {
    "left": "left outer", "right": "right outer", "full": "full outer", "semi": "left semi", "anti": "left anti",
}  # fmt: skip


def joins(query: LoweredQuery) -> Iterator[RuleFinding]:
    """What Spark refuses before the start."""
    for step in walk(query.plan):
        if isinstance(step, Join) and not step.lateral:
            if step.left.streaming and step.right.streaming:
                yield from _streams(query, step)
            elif step.left.streaming or step.right.streaming:
                yield from _static(step)


def running_joins(query: LoweredQuery) -> Iterator[RuleFinding]:
    """What Spark finds only when the query runs, and what then grows for ever."""
    for step in walk(query.runs):
        if not isinstance(step, Join) or step.lateral or not (step.left.streaming and step.right.streaming):
            continue
        pairs = [c for c in step.conditions if c.sign in {"=", "<=>"} and separates(step, c)]
        if not pairs and not (step.left.open or step.right.open):
            message = "a join of two streams needs an equality between them; Spark fails while running"
            hint = "Add one to the ON clause, such as l.id = r.id."
            yield error("join-no-equality", message, hint, step.node)
        elif query.mode == "append":
            yield from _growth(step)
        for condition in pairs:
            sides = (condition.left, condition.right)
            if any(side is not None and collated(side.type) for side in sides):
                message = "a key with a collation cannot be kept in state; Spark fails while running"
                hint = "Join on lower(s) of the plain columns."
                yield error("agg-collation-key", message, hint, condition.node)


def _streams(query: LoweredQuery, step: Join) -> Iterator[RuleFinding]:
    if query.mode != "append":
        yield _mode(query, step)
    if step.kind == "anti":
        message = "two streams have no anti join: a match may always come later"
        hint = "LEFT JOIN with a time bound in ON, then WHERE r.key IS NULL; or read one side as a table."
        yield error("join-anti", message, hint, step.node)
    elif step.kind != "inner" and not _closes(step):
        name = _NAMES[step.kind]
        message = f"this {name} join of two streams never knows that no match will come"
        hint = f"Compare watermarked columns with = in ON, or bound the time there: {_BOUND[step.kind]}."
        if any(c.node.find(exp.TimestampAdd, exp.TsOrDsAdd, exp.DateAdd) is not None for c in step.conditions):
            hint = f"Spark does not look into dateadd() and its like: write + INTERVAL. {hint}"
        yield error("join-outer-condition", message, hint, step.node)


def _mode(query: LoweredQuery, step: Join) -> RuleFinding:
    above = any(isinstance(upper, (Aggregate, Distinct)) and step in walk(upper) for upper in walk(query.plan))
    if above:
        message = f"an aggregate over a join of two streams runs in append mode only, not in {query.mode}"
        hint = "Use append; or two models: the join in append, the aggregate over its table."
        return error("chain-join-mode", message, hint, step.node)
    message = f"a join of two streams runs in append mode only, not in {query.mode}"
    return error("join-mode", message, "Use append; with unique_key it is still merged.", step.node)


def _closes(step: Join) -> bool:
    """Condition J of the reference: a row of the preserved side is given up at some time."""
    if event_time_equality(step):
        return True
    left_bound = bounds_state(step.left, step.right, step.conditions)
    right_bound = bounds_state(step.right, step.left, step.conditions)
    if step.kind in {"left", "semi"}:
        return left_bound
    return right_bound if step.kind == "right" else left_bound or right_bound


def _static(step: Join) -> Iterator[RuleFinding]:
    preserved = {"left": step.left, "semi": step.left, "anti": step.left, "right": step.right}.get(step.kind)
    if step.kind == "inner" or (preserved is not None and preserved.streaming):
        return
    name = _NAMES[step.kind]
    message = f"in a {name} join of a stream and a table, the stream must be on the preserved side"
    hint = "Swap the sides, or use an inner join." if step.kind != "full" else "Use a left join from the stream."
    yield error("join-outer-static", message, hint, step.node)


def _growth(step: Join) -> Iterator[RuleFinding]:
    if event_time_equality(step) or step.left.open or step.right.open:
        return
    if step.kind != "inner" and not _closes(step):
        return  # refused
    both = bounds_state(step.left, step.right, step.conditions) and bounds_state(step.right, step.left, step.conditions)
    timed = all(any(c.watermark for c in side.columns) for side in (step.left, step.right))
    if not (both and timed):
        message = "the join keeps rows without bound: it needs watermarks on both sides and a bound in both directions"
        hint = "Add to ON: r.ts BETWEEN l.ts AND l.ts + INTERVAL 1 HOUR."
        yield warning("join-unbounded", message, hint, step.node)
