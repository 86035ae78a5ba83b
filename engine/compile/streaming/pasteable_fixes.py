"""Fixes that can be pasted, in the names of the query: lines of the header, a GROUP BY."""

from __future__ import annotations

from engine.compile.streaming.query_plan.logical_plan import Aggregate, LogicalPlan, PlanColumn, SourcePlan, walk

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
    return column.name if column is not None else "<timestamp column>"
