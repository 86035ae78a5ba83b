"""Rules of the other steps: order, limits, samples, OVER, set operations, chains, the mode."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.query_plan.logical_plan import (
    Aggregate,
    Distinct,
    Except,
    Intersect,
    Join,
    Limit,
    LogicalPlan,
    Offset,
    Over,
    Sample,
    SortPlan,
    UnionPlan,
    walk,
)
from engine.compile.streaming.query_plan.stream_facts import StreamQuery, error, warning

_SEMI = "Use a left semi or left anti join with a table, or split it into two models."


def modes(query: StreamQuery) -> Iterator[QueryFinding]:
    if query.mode != "complete":
        return
    aggregates = [step for step in walk(query.plan) if is_aggregate(step)]
    if not aggregates:
        message = "complete mode needs an aggregate, and the query has none"
        yield error("complete-needs-aggregate", message, "Set output_mode: append.", query.plan.node)
        return
    if any(column.watermark for step in aggregates for column in step.child.columns):
        message = "complete mode keeps every group in state, without bound; the watermark has no effect"
        yield warning("unbounded-complete", message, "Set output_mode: append or update.", aggregates[0].node)
        return
    message = "complete mode keeps every group in state, without bound"
    yield warning(
        "unbounded-complete", message, "With many groups, use append mode and an event-time window.", aggregates[0].node
    )


def is_aggregate(step: LogicalPlan) -> bool:
    """Whether a step aggregates a stream."""
    return isinstance(step, (Aggregate, Distinct)) and step.streaming


def order(query: StreamQuery) -> Iterator[QueryFinding]:
    """ORDER BY, LIMIT, OFFSET, TABLESAMPLE and OVER."""
    for step in walk(query.plan):
        if isinstance(step, Offset):
            message = "OFFSET is not supported in a streaming query, not even on a static input"
            yield error("offset-on-stream", message, "Remove it; use OFFSET when querying the table.", step.node)
        elif isinstance(step, SortPlan) and step.streaming and not _complete(query, step):
            message = "ORDER BY is not supported on streams"
            hint = "Remove it and sort when querying the table. (output_mode: complete allows it after GROUP BY.)"
            yield error("sort-on-stream", message, hint, step.node)
        elif isinstance(step, Limit) and step.streaming and query.mode == "update":
            message = "LIMIT is not supported in update mode"
            yield error("limit-mode", message, "Remove it, or set output_mode: append.", step.node)
        elif isinstance(step, Limit) and step.streaming and query.mode == "append":
            message = "LIMIT counts rows over the whole life of the stream: after them no row is ever written"
            yield warning("limit-whole-stream", message, "Remove it, and use LIMIT when querying the table.", step.node)
        elif isinstance(step, Sample) and step.streaming:
            message = "TABLESAMPLE is not supported on streams"
            yield error("sample-on-stream", message, "Use where rand() < 0.5.", step.node)
        elif isinstance(step, Over) and step.child.streaming:
            for call in step.calls:
                call_text = call.this.sql(dialect="spark", comments=False)
                message = f"{call_text} OVER (..) is not supported on streams"
                hint = (
                    "For the latest row of a key, set unique_key and sequence_by, or aggregate: max_by(struct(..), ts)."
                )
                yield error("over-on-stream", message, hint, call)


def _complete(query: StreamQuery, step: LogicalPlan) -> bool:
    """Whether a sort is above an aggregate in complete mode (Spark does not count DISTINCT)."""
    return query.mode == "complete" and any(isinstance(s, Aggregate) and s.streaming for s in walk(step))


def sets(query: StreamQuery) -> Iterator[QueryFinding]:
    """UNION, EXCEPT and INTERSECT."""
    for step in walk(query.plan):
        if isinstance(step, UnionPlan) and len({child.streaming for child in step.children}) > 1:
            message = "UNION of a stream and a table is not supported"
            hint = "List both inputs under 'streams:', or split it into two models."
            yield error("union-stream-batch", message, hint, step.node)
        elif isinstance(step, Except) and step.children[1].streaming:
            message = "the right side of EXCEPT cannot be a stream"
            yield error("except-right-stream", message, _SEMI, step.node)
        elif isinstance(step, Intersect) and step.streaming:
            yield error("intersect-on-stream", "INTERSECT is not supported on streams", _SEMI, step.node)


def running_sets(query: StreamQuery) -> Iterator[QueryFinding]:
    """EXCEPT as it runs: not there where Spark leaves it out."""
    for step in walk(query.runs):
        if not isinstance(step, Except) or not step.child.streaming or query.mode != "append":
            continue
        if not any(c.watermark for c in step.child.columns) and not step.child.open:
            message = "EXCEPT on a stream needs an event-time column: no selected column has a watermark"
            yield error(
                "except-needs-event-time", message, f"Select the watermarked column as well. {_SEMI}", step.node
            )


def chains(query: StreamQuery) -> Iterator[QueryFinding]:
    """Outside append an aggregate is the last stateful step. Spark does not look into CTEs."""
    if query.mode == "append":
        return
    hint = "Set output_mode: append and group by window_time(hour) of the first window; or split it into two models."
    for step in walk(query.plan):
        if _is_stateful(step) and any(is_aggregate(below) for child in step.children for below in walk(child)):
            message = f"in {query.mode} mode an aggregate must be the last stateful step of the query"
            yield error("chain-mode", message, hint, step.node)
            return
    for step in walk(query.runs):
        if _is_stateful(step) and any(is_aggregate(below) for child in step.children for below in walk(child)):
            message = f"in {query.mode} mode an aggregate must be the last stateful step: results will be wrong"
            yield warning("chain-mode", message, hint, step.node)
            return


def _is_stateful(step: LogicalPlan) -> bool:
    if isinstance(step, Join):
        return step.left_side.streaming and step.right_side.streaming and not step.lateral
    return is_aggregate(step)
