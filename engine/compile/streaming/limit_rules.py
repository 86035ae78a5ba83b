"""LIMIT, where Spark moves it below other steps when the query runs."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.query_plan.logical_plan import (
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Projection,
    UnionPlan,
    walk,
)
from engine.compile.streaming.query_plan.stream_facts import StreamQuery, error


def limits(query: StreamQuery) -> Iterator[QueryFinding]:
    """Yield a limit that Spark copies below a join or UNION, straight onto a join of streams.

    The full copy stops reading, the join does not store its state, and the next batch dies (measured).
    """
    if query.mode != "append":
        return
    for step in walk(query.runs):
        if (
            isinstance(step, Limit)
            and step.streaming
            and any(_cuts_stream_join(copy) for copy in _limit_copies(step.child))
        ):
            message = (
                "LIMIT over a join of streams is not supported: Spark moves it below the join and fails while running"
            )
            yield error("limit-over-state", message, "Remove LIMIT; limit the rows when querying the table.", step.node)


def _limit_copies(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """Where copies of a limit above a step go."""
    below = plan
    while isinstance(below, Projection):
        below = below.child
    if isinstance(below, UnionPlan):
        targets = below.children
    elif isinstance(below, Join) and below.kind == "left":
        targets = (below.left_side,)
    elif isinstance(below, Join) and below.kind == "right":
        targets = (below.right_side,)
    elif isinstance(below, Join) and not below.conditions:
        targets = below.children if below.kind == "inner" else (below.left_side,)
    else:
        targets = ()
    for target in targets:
        if target.streaming and not _joins_streams(below):
            yield target
            yield from _limit_copies(target)


def _cuts_stream_join(plan: LogicalPlan) -> bool:
    """Whether the rows come straight from a join of streams."""
    while isinstance(plan, (Projection, Filter)):
        plan = plan.child
    return isinstance(plan, Join) and (_joins_streams(plan) or any(_cuts_stream_join(child) for child in plan.children))


def _joins_streams(plan: LogicalPlan) -> bool:
    return isinstance(plan, Join) and all(child.streaming for child in plan.children) and not plan.lateral
