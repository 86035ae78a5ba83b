"""Rules of GROUP BY, DISTINCT and session windows."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import distinct_parts, has_sets, is_extreme, leaves_out
from engine.compile.streaming import waiting_rows
from engine.compile.streaming.query_plan.logical_plan import (
    Aggregate,
    Distinct,
    Key,
    LogicalPlan,
    PlanColumn,
    executed_children,
    walk,
)
from engine.compile.streaming.query_plan.stream_facts import StreamQuery, error, warning
from engine.compile.streaming.step_rules import is_aggregate


def aggregates(query: StreamQuery) -> Iterator[QueryFinding]:
    steps = walk(query.plan)
    first = next((s for s in steps if is_aggregate(s)), None)
    for step in steps:
        if isinstance(step, Aggregate) and step.child.streaming:
            yield from _distinct_calls(step)
            yield from _sessions(query, step, step.keys, first=step is first)
            yield from _collations(step, step.keys)
            if query.mode == "append":
                yield from _append_key(step, first=step is first)
        elif isinstance(step, Distinct) and step.streaming:
            keys = tuple(Key(step.node, c, frozenset({c.id}), type=c.type) for c in step.columns)
            yield from _collations(step, keys)
            yield from _sessions(query, step, keys, first=step is first)
            if query.mode == "append" and not any(c.watermark for c in step.columns) and not step.open:
                message = "DISTINCT on a stream needs an event-time column: no selected column has a watermark"
                hint = "Select the watermarked column or its window as well, or set output_mode: update and unique_key."
                yield error("distinct-needs-event-time", message, hint, step.node)


def domains(query: StreamQuery) -> Iterator[QueryFinding]:
    """Subqueries that Spark computes by grouping the rows of the stream."""
    if query.mode != "append":
        return
    for domain in query.domains:
        if not any(column.watermark for column in domain.columns):
            message = "this subquery groups the stream by the columns it uses, and none of them has a watermark"
            hint = "Compare the columns with = in a scalar subquery, or join a grouped subquery."
            yield error("agg-needs-event-time", message, hint, domain.node)


def _distinct_calls(step: Aggregate) -> Iterator[QueryFinding]:
    for call in step.distinct:
        call_text = call.sql(dialect="spark", comments=False)
        message = f"{call_text} is not supported on streams"
        inner = ", ".join(part.sql(dialect="spark", comments=False) for part in distinct_parts(call)) or "x"
        hint = f"Use approx_count_distinct({inner}), or size(collect_set({inner})) for the exact number."
        if is_extreme(call):
            hint = f"Remove DISTINCT: {call.key}() is the same without it."
        yield error("agg-distinct", message, hint, call)


def _append_key(step: Aggregate, *, first: bool) -> Iterator[QueryFinding]:
    if any(key.column is not None and key.column.watermark for key in step.keys):
        return
    # Spark asks the first aggregate before it starts; in the others, as they run, a field of a struct is its column.
    # Grouping sets make columns of their keys at once.
    looks_through = not first or has_sets(step.node)
    if looks_through and any(key.inherits is not None and key.inherits.watermark for key in step.keys):
        return
    marked = sorted({c.name for c in step.child.columns if c.watermark})
    lost_key = next((key for key in step.keys if key.watermark_lost_at is not None), None)
    windows = [key for key in step.keys if key.column is not None and key.column.window]
    chained = _hint_of_chain(step)
    if lost_key is not None and lost_key.watermark_lost_at is not None:
        key_text = lost_key.watermark_lost_at.sql(dialect="spark", comments=False)
        message = f"'{key_text}' loses the watermark: only the column itself and windows over it keep it"
        hint = chained or "Group by a window over the column itself, declared in the header under windows:."
        yield error("agg-key-lost-watermark", message, hint, lost_key.watermark_lost_at)
    elif windows:
        session = windows[0].column is not None and windows[0].column.window == "session"
        code = "session-no-watermark" if session else "window-no-watermark"
        message = "a window is written when the watermark passes its end, but its column has no watermark"
        hint = f"Use '{marked[0]}' for the window: it has the watermark." if marked else waiting_rows.watermark(step)
        yield error(code, message, chained or hint, windows[0].node)
    else:
        message = "GROUP BY on a stream needs an event-time window: no grouping column has a watermark"
        hint = chained or waiting_rows.event_time_window(step)
        yield error("agg-needs-event-time", message, hint, step.node)


def _hint_of_chain(step: Aggregate) -> str:
    """How a result of windows is aggregated again; empty where no input groups by a window."""
    if not any(
        key.column is not None and key.column.window
        for below in _run(step.child)
        if isinstance(below, Aggregate)
        for key in below.keys
    ):
        return ""
    whole = next((c.name for c in step.child.columns if c.window and c.watermark), None)
    if whole is not None:
        return f"Group by window_time({whole}), or by a longer window of it: tumbling(window_time({whole}), 1 day)."
    return (
        "Select the window itself in the inner query ('hour', not only 'hour.start'), and group by a longer window "
        "of it: tumbling(window_time(hour), 1 day)."
    )


def _run(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """A plan and what it reads as it runs, with CTEs in place."""
    yield plan
    for child in executed_children(plan):
        yield from _run(child)


def _sessions(query: StreamQuery, step: LogicalPlan, keys: tuple[Key, ...], *, first: bool) -> Iterator[QueryFinding]:
    sessions = [key for key in keys if key.column is not None and key.column.window == "session"]
    if not sessions:
        return
    # Spark asks the first aggregate before it starts, and the others as they run, if they do.
    if query.mode == "update" and (first or any(s.node is step.node and is_aggregate(s) for s in walk(query.runs))):
        message = "session windows are not supported in update mode"
        yield error("session-mode", message, "Set output_mode: append.", sessions[0].node)
    if isinstance(step, Aggregate) and _without(step, sessions):
        message = "a session window must be in every set of ROLLUP, CUBE or GROUPING SETS"
        hint = "Group by the session window itself, or add it to each set."
        yield error("session-grouping-sets", message, hint, sessions[0].node)
    if not any(key not in sessions and not key.constant for key in keys):
        message = "a session window needs another grouping column"
        hint = (
            "Group by a column as well; for one session over all rows, by a constant of a subquery (select *, 0 as k)."
        )
        yield error("session-needs-key", message, hint, sessions[0].node)


def _collations(step: LogicalPlan, keys: tuple[Key, ...]) -> Iterator[QueryFinding]:
    for key in keys:
        kind = key.column.type if key.column is not None else key.type
        if is_collated(kind):
            message = "a grouping column with a collation is not supported on streams"
            hint = "Group by lower(s) of a column without collation, or by s collate utf8_binary."
            yield error("collation-key", message, hint, key.node if isinstance(step, Aggregate) else step.node)


def is_collated(kind: str) -> bool:
    """Whether equal values of a type can differ in their bytes."""
    return kind.partition(" collate ")[2] not in {"", "utf8_binary"}


def unbounded_groups(query: StreamQuery) -> Iterator[QueryFinding]:
    """Warnings of aggregates that keep state without bound."""
    for step in walk(query.plan):
        if not step.streaming or not isinstance(step, (Aggregate, Distinct)):
            continue
        columns: tuple[PlanColumn | None, ...] = step.columns
        if isinstance(step, Aggregate):
            columns = tuple(key.column for key in step.keys)
        timed = any(c is not None and c.watermark for c in columns)
        keys = step.keys if isinstance(step, Aggregate) else ()
        times = [key for key in keys if key.column is not None and key.column.watermark]
        if query.mode == "update" and not timed:
            yield _unbounded_warning(step)
        if isinstance(step, Aggregate) and step.collects and not any(c is not None and c.window for c in columns):
            message = "the collected values of a group grow without bound"
            yield warning("unbounded-collection", message, "Group by an event-time window as well.", step.collects[0])
        if isinstance(step, Aggregate) and query.mode == "append" and _without(step, times):
            message = "groups without event time are never written in append mode"
            yield warning(
                "agg-null-groups",
                message,
                "Add the event time to each grouping set, or set output_mode: update.",
                step.node,
            )


def _unbounded_warning(step: Aggregate | Distinct) -> QueryFinding:
    if isinstance(step, Distinct):
        message = "DISTINCT without event time keeps every row in state, without bound"
        return warning("unbounded-distinct", message, "Select a column that has a watermark as well.", step.node)
    message = "every group is kept in state, without bound: no grouping column has a watermark"
    return warning("unbounded-groups", message, "Group by a window over the watermarked column.", step.node)


def _without(step: Aggregate, keys: list[Key]) -> bool:
    """Whether ROLLUP, CUBE or GROUPING SETS make groups without these keys beside groups with them."""
    if not keys or any(key.always for key in keys):
        return False
    return leaves_out(step.node, [key.node for key in keys])
