"""Fixes that can be pasted, in the names of the query: lines of the header, a GROUP BY, a time bound of a join."""

from __future__ import annotations

from engine.compile.streaming.query_plan.logical_plan import Aggregate, Join, LogicalPlan, PlanColumn, SourcePlan, walk

DELAY = "30 minutes"
_SHOWN_KEYS = 4


def event_time_window(step: Aggregate) -> str:
    """How to group a stream by time (watermark, window, GROUP BY), and how to keep totals of all time instead."""
    time = _event_time(step.child)
    watermark = "" if time is not None and time.watermark else f"streams: {{{_watermark(step.child)}}} and "
    # A key that is computed from the event time is what the window replaces.
    keys = [
        key.node.sql(dialect="spark", comments=False)
        for key in step.keys
        if not (key.constant or (time is not None and time.id in key.refs))
    ]
    group = ", ".join(["hour", *keys[:_SHOWN_KEYS], *[".."] * (len(keys) > _SHOWN_KEYS)])
    window = f"""windows: {{hour: "tumbling({_name(time)}, 1 hour)"}}"""
    totals = "update" if step.keys else "complete"
    return (
        f"Set {watermark}{window} in the header, and write: group by {group}. Or keep running totals: set "
        f"output_mode: {totals}."
    )


def watermark(plan: LogicalPlan) -> str:
    """How to declare the watermark of the first stream that a step reads."""
    return f"Set streams: {{{_watermark(plan)}}} in the header."


def join_bound(step: Join, *, both_directions: bool) -> str:
    """The condition on event time that lets a join release its rows, and the watermarks that it lacks."""
    left, right = _aliased(step.left, "l"), _aliased(step.right, "r")
    if step.kind == "right":
        bound = f"{left} between {right} - interval 1 hour and {right}"
    else:
        bound = f"{right} between {left} and {left} + interval 1 hour"
    needed = {"left": [step.right], "semi": [step.right], "right": [step.left]}.get(step.kind, [])
    sides = [step.left, step.right] if both_directions or not needed else needed
    lacking = [side for side in sides if not any(column.watermark for column in side.columns)]
    header = ", ".join(dict.fromkeys(_watermark(side) for side in lacking))
    return f"Add to ON: and {bound}{f'; and set streams: {{{header}}} in the header' if header else ''}."


def _watermark(plan: LogicalPlan) -> str:
    """An entry under `streams:`."""
    stream = _stream(plan)
    name = stream.name if stream is not None and stream.name else "<stream>"
    return f"{name}: {{watermark: {_name(_event_time(stream or plan))} delay {DELAY}}}"


def _stream(plan: LogicalPlan) -> SourcePlan | None:
    return next((step for step in walk(plan) if isinstance(step, SourcePlan) and step.streaming), None)


def _event_time(plan: LogicalPlan) -> PlanColumn | None:
    marked = next((column for column in plan.columns if column.watermark and not column.window), None)
    return marked or next((column for column in plan.columns if column.type == "timestamp"), None)


def _name(column: PlanColumn | None) -> str:
    return column.name if column is not None else "<timestamp column>"


def _aliased(side: LogicalPlan, otherwise: str) -> str:
    """The event time of one side of a join, with the alias of the side where it is a relation."""
    alias = side.node.alias_or_name if isinstance(side, SourcePlan) else ""
    if alias.startswith("@"):
        alias = alias.rpartition(".")[2].rpartition(" ")[2]
    return f"{alias or otherwise}.{_name(_event_time(side))}"
