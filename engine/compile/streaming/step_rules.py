"""Rules of the other steps: order, limits, samples, OVER, set operations, chains, the mode."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.streaming.lowering.lowered_query import LoweredQuery
from engine.compile.streaming.plan.logical_plan import (
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
from engine.compile.streaming.plan.verdict import RuleFinding, error, warning

_SEMI = "Use a left semi or left anti join with a table, or two models."


def modes(query: LoweredQuery) -> Iterator[RuleFinding]:
    """Complete mode."""
    if query.mode != "complete":
        return
    found = [step for step in walk(query.plan) if is_aggregate(step)]
    if not found:
        message = "complete mode rewrites the result of an aggregate, and the query has none"
        yield error("mode-complete-needs-aggregate", message, "Use append.", query.plan.node)
        return
    if any(column.watermark for step in found for column in step.child.columns):
        message = "complete mode keeps every group indefinitely; the watermark has no effect on it"
        yield warning("mode-complete-keeps-state", message, "Use append or update.", found[0].node)
        return
    message = "complete mode keeps every group indefinitely"
    yield warning("state-complete", message, "Use append with a window where the groups are many.", found[0].node)


def is_aggregate(step: LogicalPlan) -> bool:
    """Whether a step aggregates a stream."""
    return isinstance(step, (Aggregate, Distinct)) and step.streaming


def order(query: LoweredQuery) -> Iterator[RuleFinding]:
    """ORDER BY, LIMIT, OFFSET, TABLESAMPLE and OVER."""
    for step in walk(query.plan):
        if isinstance(step, Offset):
            message = "OFFSET does not run in a streaming query, not even on a table in it"
            yield error("offset", message, "Take it out; page through the table instead.", step.node)
        elif isinstance(step, SortPlan) and step.streaming and not _complete(query, step):
            message = "a stream has no end at which it could be sorted"
            hint = "Take it out: order belongs to the reader of the table. (In complete mode it may follow a GROUP BY.)"
            yield error("sort-not-streaming", message, hint, step.node)
        elif isinstance(step, Limit) and step.streaming and query.mode == "update":
            message = "LIMIT does not run in update mode"
            yield error("limit-update", message, "Take it out, or use append.", step.node)
        elif isinstance(step, Limit) and step.streaming and query.mode == "append":
            message = "the limit counts over the whole life of the query: after these rows it gives no more rows"
            yield warning("limit-forever", message, "Limit what reads the table instead.", step.node)
        elif isinstance(step, Sample) and step.streaming:
            message = "TABLESAMPLE does not run on a stream"
            yield error("sample", message, "Write WHERE rand() < 0.5.", step.node)
        elif isinstance(step, Over) and step.child.streaming:
            for call in step.calls:
                shown = call.this.sql(dialect="spark", comments=False)
                message = f"{shown} OVER (..) does not run on a stream: Spark has time windows only"
                hint = "For the best row of a key aggregate: max_by(struct(..), struct(<order columns>)) GROUP BY key."
                yield error("over-not-streaming", message, hint, call)


def _complete(query: LoweredQuery, step: LogicalPlan) -> bool:
    """Whether a sort stands above an aggregate in complete mode (Spark does not count DISTINCT)."""
    return query.mode == "complete" and any(isinstance(s, Aggregate) and s.streaming for s in walk(step))


def sets(query: LoweredQuery) -> Iterator[RuleFinding]:
    """UNION, EXCEPT and INTERSECT."""
    for step in walk(query.plan):
        if isinstance(step, UnionPlan) and len({child.streaming for child in step.children}) > 1:
            message = "UNION of a stream and a table"
            hint = "Stream both sides, or write two models."
            yield error("union-stream-batch", message, hint, step.node)
        elif isinstance(step, Except) and step.children[1].streaming:
            message = "the right side of EXCEPT is a stream"
            yield error("except-stream", message, _SEMI, step.node)
        elif isinstance(step, Intersect) and step.streaming:
            yield error("intersect", "INTERSECT does not run on a stream", _SEMI, step.node)


def running_sets(query: LoweredQuery) -> Iterator[RuleFinding]:
    """EXCEPT as it runs: not there where Spark leaves it out."""
    for step in walk(query.runs):
        if not isinstance(step, Except) or not step.child.streaming or query.mode != "append":
            continue
        if not any(c.watermark for c in step.child.columns) and not step.child.open:
            message = "EXCEPT is an aggregate; in append mode Spark fails while running, as no column is watermarked"
            yield error("except-batch", message, f"{_SEMI} Or take the watermarked column in.", step.node)


def chains(query: LoweredQuery) -> Iterator[RuleFinding]:
    """Outside append an aggregate is the last stateful step. Spark does not look into CTEs."""
    if query.mode == "append":
        return
    hint = "Use append with an event-time key in each, such as window_time(hour) of a window below; or two models."
    for step in walk(query.plan):
        if _stateful(step) and any(is_aggregate(below) for child in step.children for below in walk(child)):
            message = (
                f"in {query.mode} mode an aggregate changes rows it has given, and another step keeps state on them"
            )
            yield error("chain-update", message, hint, step.node)
            return
    for step in walk(query.runs):
        if _stateful(step) and any(is_aggregate(below) for child in step.children for below in walk(child)):
            message = "a step keeps state on the rows of an aggregate that changes them; results will be wrong"
            yield warning(
                "chain-update", message, f"{hint} (Spark misses it, as it does not look into CTEs.)", step.node
            )
            return


def _stateful(step: LogicalPlan) -> bool:
    if isinstance(step, Join):
        return step.left.streaming and step.right.streaming and not step.lateral
    return is_aggregate(step)
