"""Rules of GROUP BY, DISTINCT and session windows."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.compile.streaming.lowering.lowered_query import LoweredQuery
from engine.compile.streaming.plan.logical_plan import Aggregate, Distinct, Key, LogicalPlan, PlanColumn, executed, walk
from engine.compile.streaming.plan.verdict import RuleFinding, error, warning
from engine.compile.streaming.step_rules import is_aggregate

_KEY = "Group by window(<watermarked column>, '10 minutes') or by that column itself; or use update with unique_key."
_TWO_STEPS = (
    "Use approx_count_distinct(x) or size(collect_set(x)); exactly and in append: SELECT DISTINCT window(ts, ..) AS w, "
    "x first, then count(*) GROUP BY w."
)


def aggregates(query: LoweredQuery) -> Iterator[RuleFinding]:
    """The rules of each aggregate over a stream."""
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
                message = "in append mode DISTINCT writes a row when the watermark passes it, and no column carries one"
                hint = "Take the watermarked column or its window into the list, or use update with unique_key."
                yield error("distinct-needs-event-time", message, hint, step.node)


def domains(query: LoweredQuery) -> Iterator[RuleFinding]:
    """Subqueries that Spark computes by grouping the rows of the stream."""
    if query.mode != "append":
        return
    for domain in query.domains:
        if not any(column.watermark for column in domain.columns):
            message = (
                "Spark computes this subquery by grouping the stream by the columns it uses, none of them watermarked"
            )
            hint = "Compare the columns with = in a plain scalar subquery, or write a join with a grouped subquery."
            yield error("agg-needs-event-time-key", message, hint, domain.node)


def _distinct_calls(step: Aggregate) -> Iterator[RuleFinding]:
    for call in step.distinct:
        message = "a streaming aggregate cannot count distinct values"
        hint = _TWO_STEPS
        if isinstance(call, (exp.Max, exp.Min)):
            hint = f"Take DISTINCT out: {call.key}() is the same without it."
        yield error("agg-distinct", message, hint, call)


def _append_key(step: Aggregate, *, first: bool) -> Iterator[RuleFinding]:
    if any(key.column is not None and key.column.watermark for key in step.keys):
        return
    # Spark asks the first aggregate before it starts; in the others, as they run, a field of a struct is its column.
    # Grouping sets make columns of their keys at once.
    looks_through = not first or step.node.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    if looks_through and any(key.inherits is not None and key.inherits.watermark for key in step.keys):
        return
    marked = sorted({c.name for c in step.child.columns if c.watermark})
    lost = next((key for key in step.keys if key.lost is not None), None)
    windows = [key for key in step.keys if key.column is not None and key.column.window]
    chained = _chained(step)
    if lost is not None and lost.lost is not None:
        shown = lost.lost.sql(dialect="spark", comments=False)
        message = f"the watermark is lost in '{shown}': only the column itself and its window keep it"
        hint = chained or "Group by window(ts, ..) of the plain column."
        yield error("agg-key-lost-watermark", message, hint, lost.lost)
    elif windows:
        session = windows[0].column is not None and windows[0].column.window == "session"
        code = "session-no-watermark" if session else "window-no-watermark"
        message = "in append mode a window is written when a watermark closes it, and its column has none"
        hint = f"Make the window over '{marked[0]}', which has the watermark." if marked else "Declare a watermark."
        yield error(code, message, chained or hint, windows[0].node)
    else:
        message = "in append mode a group is written when the watermark closes it, and no group key carries one"
        hint = _KEY if marked else f"Declare a watermark on the stream. {_KEY}"
        yield error("agg-needs-event-time-key", message, chained or hint, step.node)


def _chained(step: Aggregate) -> str:
    """How a result of windows is aggregated again; empty where nothing below groups by a window."""
    whole = next((c.name for c in step.child.columns if c.window and c.watermark), None)
    if whole is not None:
        return f"Group by window_time({whole}), or by a longer window of it: tumbling(window_time({whole}), 1 day)."
    if not any(
        key.column is not None and key.column.window
        for below in _run(step.child)
        if isinstance(below, Aggregate)
        for key in below.keys
    ):
        return ""
    return (
        "Select the window itself in the inner query ('hour', not only 'hour.start'), and group by a longer window "
        "of it: tumbling(window_time(hour), 1 day)."
    )


def _run(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """A plan and what it reads as it runs, with CTEs in place."""
    yield plan
    for child in executed(plan):
        yield from _run(child)


def _sessions(query: LoweredQuery, step: LogicalPlan, keys: tuple[Key, ...], *, first: bool) -> Iterator[RuleFinding]:
    sessions = [key for key in keys if key.column is not None and key.column.window == "session"]
    if not sessions:
        return
    # Spark asks the first aggregate before it starts, and the others as they run, if they do.
    if query.mode == "update" and (first or any(s.node is step.node and is_aggregate(s) for s in walk(query.runs))):
        message = "a session window grows and merges, so Spark does not run it in update mode"
        yield error("session-update", message, "Use append.", sessions[0].node)
    if isinstance(step, Aggregate) and _without(step, sessions):
        message = "a session window that ROLLUP, CUBE or GROUPING SETS leaves out is NULL; Spark fails while running"
        hint = "Group by the session window itself, or name it in each set."
        yield error("session-grouping-sets", message, hint, sessions[0].node)
    if not any(key not in sessions and not key.constant for key in keys):
        message = "a session window needs a group key beside it; Spark fails while running"
        hint = "Group by a column too; a constant works as a column of a subquery (SELECT *, 0 AS k)."
        yield error("session-needs-key", message, hint, sessions[0].node)


def _collations(step: LogicalPlan, keys: tuple[Key, ...]) -> Iterator[RuleFinding]:
    for key in keys:
        kind = key.column.type if key.column is not None else key.type
        if collated(kind):
            message = "a key with a collation cannot be kept in state; Spark fails while running"
            hint = "Group by lower(s) of the plain column; with COLLATE UTF8_BINARY where the column is collated."
            yield error("agg-collation-key", message, hint, key.node if isinstance(step, Aggregate) else step.node)


def collated(kind: str) -> bool:
    """Whether equal values of a type can differ in their bytes."""
    return kind.partition(" collate ")[2] not in {"", "utf8_binary"}


def growth(query: LoweredQuery) -> Iterator[RuleFinding]:
    """Warnings of aggregates that keep state for ever."""
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
            yield _unbounded(step)
        if isinstance(step, Aggregate) and step.collects and not any(c is not None and c.window for c in columns):
            message = "the collection of a key without a window grows without bound"
            yield warning("state-collect", message, "Add a time window to the keys.", step.collects[0])
        if isinstance(step, Aggregate) and query.mode == "append" and _without(step, times):
            message = "groups without event time are never closed, so append never writes them"
            yield warning("agg-null-groups", message, "Use update, or name the event time in each set.", step.node)


def _unbounded(step: Aggregate | Distinct) -> RuleFinding:
    if isinstance(step, Distinct):
        message = "DISTINCT without event time remembers every row without bound"
        return warning("state-distinct-update", message, "Take a watermarked column into the list.", step.node)
    message = "no group key carries a watermark, so every group is kept without bound"
    return warning("state-agg-no-event-time", message, "Group by a window over the watermarked column.", step.node)


def _without(step: Aggregate, keys: list[Key]) -> bool:
    """Whether ROLLUP, CUBE or GROUPING SETS make groups without these keys beside groups with them."""
    if not keys or any(key.always for key in keys):
        return False
    times = [key.node for key in keys]
    if step.node.find(exp.Rollup, exp.Cube) is not None:
        return True
    sets = [one for clause in step.node.find_all(exp.GroupingSets) for one in clause.expressions]
    return any(not any(node in times for node in one.walk()) for one in sets)
