"""Rules of watermarks."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.query_plan.logical_plan import (
    Aggregate,
    Distinct,
    Except,
    Join,
    Limit,
    LogicalPlan,
    PlanColumn,
    SourcePlan,
    walk,
)
from engine.compile.streaming.query_plan.optimize import needed_columns
from engine.compile.streaming.query_plan.stream_facts import StreamQuery, error, warning


def watermarks(query: StreamQuery) -> Iterator[QueryFinding]:
    """Two event-time columns at one step."""
    for step, of_children in needed_columns(query.runs, query.runs.ids):
        for columns in _event_times_reaching(query, step, of_children):
            names = list(dict.fromkeys(c.name for c in columns))
            if len({c.id for c in columns}) > 1:
                names_text = " and ".join(f"'{name}'" for name in names)
                message = f"two event-time columns reach one stateful step: {names_text}"
                hint = "Keep one of them; select the other as cast(ts as timestamp) as ts2, which drops its watermark."
                yield error("watermark-two-columns", message, hint, step.node)
                break


def _event_times_reaching(
    query: StreamQuery, step: LogicalPlan, needed: tuple[frozenset[int], ...]
) -> Iterator[list[PlanColumn]]:
    """The event-time columns that a stateful step has on each side after pruning."""
    if not step.streaming:
        return
    if isinstance(step, Join) and all(child.streaming for child in step.children) and not step.lateral:
        for child, ids in zip(step.children, needed, strict=True):
            yield [c for c in child.columns if c.watermark and c.id in ids]
    elif isinstance(step, Aggregate):
        yield from _grouped_event_times(query, step)
    elif isinstance(step, (Distinct, Except)):
        sessions = any(c.window == "session" for c in step.child.columns)
        if query.mode != "complete" or sessions:
            yield [c for c in step.child.columns if c.watermark]


def _grouped_event_times(query: StreamQuery, step: Aggregate) -> Iterator[list[PlanColumn]]:
    key_columns = [key.column for key in step.keys if key.column is not None]
    if query.mode == "complete" and not any(column.window == "session" for column in key_columns):
        return
    event_times = [column for column in key_columns if column.watermark]
    windows = {column.id for column in event_times if column.window}
    # Two windows are rejected by a rule of their own.
    yield event_times if len(windows) < 2 else []  # noqa: PLR2004


def unused_watermarks(query: StreamQuery) -> Iterator[QueryFinding]:
    """A watermark that no stateful step uses."""
    steps = walk(query.runs)
    if query.domains or any(_keeps_state(step) for step in steps):
        return
    for step in steps:
        if (
            isinstance(step, SourcePlan)
            and step.streaming
            and not step.dedup
            and any(c.watermark for c in step.columns)
        ):
            message = f"the watermark of '{step.name}' has no effect: the query has no window, dedup or join of streams"
            hint = "Remove it, or add the window, dedup or join that it is for."
            yield warning("watermark-unused", message, hint, step.node)


def _keeps_state(step: LogicalPlan) -> bool:
    if isinstance(step, Join):
        return all(child.streaming for child in step.children)
    return step.streaming and isinstance(step, (Aggregate, Distinct, Except, Limit))
