"""Rows of a join of streams that wait in state without bound: why, and a fix that can be pasted."""

from __future__ import annotations

from collections.abc import Sequence

from engine.compile.streaming.query_plan.join_bounds import Bound, bounds, equalities, half_marked, releases_rows
from engine.compile.streaming.query_plan.logical_plan import (
    Aggregate,
    Condition,
    Filter,
    Join,
    LogicalPlan,
    PlanColumn,
    SourcePlan,
    walk,
)

DELAY = "30 minutes"
_SHOWN_KEYS = 4


def event_time_window(step: Aggregate) -> str:
    """How to group a stream by time (watermark, window, GROUP BY), and how to keep totals of all time instead."""
    time = event_time(step.child)
    watermark = "" if time is not None and time.watermark else f"streams: {{{_watermark(step.child)}}} and "
    # A key that is computed from the event time is what the window replaces.
    keys = [
        key.node.sql(dialect="spark", comments=False)
        for key in step.keys
        if not (key.constant or (time is not None and time.id in key.refs))
    ]
    group = ", ".join(["hour", *keys[:_SHOWN_KEYS], *[".."] * (len(keys) > _SHOWN_KEYS)])
    window = f"""windows: {{hour: "tumbling({name_of(time)}, 1 hour)"}}"""
    totals = "update" if step.keys else "complete"
    return (
        f"Set {watermark}{window} in the header, and write: group by {group}. Or keep running totals: set "
        f"output_mode: {totals}."
    )


def watermark(plan: LogicalPlan) -> str:
    """How to declare the watermark of the first stream that a step reads."""
    return f"Set streams: {{{_watermark(plan)}}} in the header."


def watermark_entry(stream: SourcePlan | None, time: PlanColumn | None) -> str:
    """An entry under `streams:`."""
    name = stream.name if stream is not None and stream.name else "<stream>"
    return f"{name}: {{watermark: {name_of(time)} delay {DELAY}}}"


def _watermark(plan: LogicalPlan) -> str:
    stream = _stream(plan)
    return watermark_entry(stream, event_time(stream or plan))


def _stream(plan: LogicalPlan) -> SourcePlan | None:
    return next((step for step in walk(plan) if isinstance(step, SourcePlan) and step.streaming), None)


def event_time(plan: LogicalPlan) -> PlanColumn | None:
    """The column of the watermark; else the first timestamp."""
    marked = next((column for column in plan.columns if column.watermark and not column.window), None)
    return marked or next((column for column in plan.columns if column.type == "timestamp"), None)


def name_of(column: PlanColumn | None) -> str:
    """The name of a column, or what stands for one that nobody knows."""
    return column.name if column is not None else "<timestamp column>"


def waiting_sides(step: Join) -> list[LogicalPlan]:
    """The sides of which a row may never leave the state."""
    return [side for side in (step.left_side, step.right_side) if not releases_rows(step, side)]


def waiting_reason(step: Join, side: LogicalPlan) -> str:
    other = step.right_side if side is step.left_side else step.left_side
    if (column := half_marked(step)) is not None:
        return f"'{column.name}' has no watermark, and is compared with an event time"
    for one in (side, other):
        if not _has_watermark(one):
            return f"{side_name(step, one)} has no watermark"
    time_bounds = bounds(side, step.conditions)
    for bound in time_bounds:
        if (fault := _fault(step, side, bound)) is not None:
            return fault[0]
    return f"ON does not bound the event time of {side_name(step, side)} by the event time of {side_name(step, other)}"


def missing_bound_fix(step: Join, sides: Sequence[LogicalPlan]) -> str:
    """The watermarks and the condition that a join lacks so that rows of some sides leave the state."""
    for side in sides:
        for bound in bounds(side, step.conditions):
            if (
                _has_watermark(step.left_side)
                and _has_watermark(step.right_side)
                and (fault := _fault(step, side, bound)) is not None
            ):
                return fault[1]
    left_side, right_side = ((side, _time(step, side)) for side in (step.left_side, step.right_side))
    missing = "" if half_marked(step) is not None else _missing_bound(step, sides, left_side[1], right_side[1])
    lacking = [
        watermark_entry(_source(side, time), _in_source(side, time))
        for side, time in (left_side, right_side)
        if not _has_watermark(side)
    ]
    parts = [f"add to ON: and {missing}"] * bool(missing)
    parts += [f"set streams: {{{', '.join(dict.fromkeys(lacking))}}} in the header"] * bool(lacking)
    text = "; and ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def side_name(step: Join, side: LogicalPlan) -> str:
    """A side of a join by its alias, in quotes, or by its place."""
    alias = _alias(side)
    return f"'{alias}'" if alias else f"the {'left' if side is step.left_side else 'right'} side"


def _fault(step: Join, side: LogicalPlan, bound: Bound) -> tuple[str, str] | None:
    """Why a comparison that looks like a bound is none, and what to write instead; None: it is one, or no such."""
    if bound.exact or bound.other is None or not bound.other.watermark:
        return None
    if not bound.own.watermark:
        marked = next(column.name for column in side.columns if column.watermark)
        name = side_name(step, side)
        return (
            f"ON bounds '{bound.own.name}' of {name}, and its watermark is on '{marked}'",
            f"Bound '{marked}' in ON, too; or set the watermark of {name} on '{bound.own.name}'.",
        )
    if bound.repeated:
        return "ON adds one interval twice, and Spark counts it once", "Write one interval that is as long as both."
    if bound.rounded:
        return (
            "ON compares event times without parts of their seconds",
            "Compare the timestamps, and add an interval in place of a number.",
        )
    return (
        "Spark finds no bound in BETWEEN of a computed value",
        f"Write two comparisons in place of BETWEEN: {_two_comparisons(bound.condition)}.",
    )


def _two_comparisons(condition: Condition) -> str:
    value, low, high = (
        part.sql(dialect="spark", comments=False)
        for part in (condition.node.this, condition.node.args["low"], condition.node.args["high"])
    )
    return f"{value} >= {low} and {value} <= {high}"


def _missing_bound(
    step: Join, sides: Sequence[LogicalPlan], left_time: PlanColumn | None, right_time: PlanColumn | None
) -> str:
    """The comparison that ON lacks; empty if the columns are compared, and only watermarks are missing."""
    one, other = _event_time_text(step.left_side, "l", left_time), _event_time_text(step.right_side, "r", right_time)
    left_waits = step.left_side in sides and not _compares(step, step.left_side, left_time, right_time)
    right_waits = step.right_side in sides and not _compares(step, step.right_side, right_time, left_time)
    if left_waits and right_waits:
        return f"{other} between {one} and {one} + interval 1 hour"
    if left_waits:
        return f"{other} <= {one} + interval 1 hour"
    return f"{one} <= {other} + interval 1 hour" if right_waits else ""


def _compares(step: Join, side: LogicalPlan, own: PlanColumn | None, other: PlanColumn | None) -> bool:
    if any(
        {pair.left_side and pair.left_side.column, pair.right_side and pair.right_side.column} == {own, other}
        for pair in equalities(step)
    ):
        return True
    return any(bound.own == own and bound.other == other for bound in bounds(side, step.conditions))


def _time(step: Join, side: LogicalPlan) -> PlanColumn | None:
    """The event time of a side: its watermark's, or the timestamp that ON compares, or the first."""
    if _has_watermark(side):
        return next(column for column in side.columns if column.watermark)
    compared = [column for condition in step.conditions for column in _columns(condition)]
    times = [column for column in compared if column.id in side.ids and column.type == "timestamp"]
    return times[0] if times else event_time(side)


def _columns(condition: Condition) -> list[PlanColumn]:
    sides = (condition.left_side, condition.right_side)
    return [term.column for side in sides if side is not None for term in side.terms or () if term.column is not None]


def _has_watermark(side: LogicalPlan) -> bool:
    return any(column.watermark for column in side.columns)


def _source(side: LogicalPlan, time: PlanColumn | None) -> SourcePlan | None:
    """The stream that a column of a side comes from; else the first."""
    streams = [step for step in walk(side) if isinstance(step, SourcePlan) and step.streaming]
    ids = {time.id, time.copy_of} if time is not None else set()
    own = (stream for stream in streams if any(column.id in ids for column in stream.columns))
    return next(own, streams[0] if streams else None)


def _in_source(side: LogicalPlan, time: PlanColumn | None) -> PlanColumn | None:
    source = _source(side, time)
    if time is None or source is None:
        return time
    return next((column for column in source.columns if column.id in {time.id, time.copy_of}), time)


def _event_time_text(side: LogicalPlan, otherwise: str, time: PlanColumn | None) -> str:
    """The event time of one side of a join, with the alias of the side where it is a relation."""
    return f"{_alias(side) or otherwise}.{name_of(time)}"


def _alias(side: LogicalPlan) -> str:
    while isinstance(side, Filter):
        side = side.child
    alias = side.node.alias_or_name if isinstance(side, SourcePlan) else ""
    return alias.rpartition(".")[2].rpartition(" ")[2] if alias.startswith("@") else alias
