"""The checker: a query against all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import BoundQuery, bind
from engine.compile.nodes.facts import InputFacts
from engine.compile.nodes.manifest import Input, Model
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import is_stateful
from engine.compile.sql.dialect import DIALECT, parse_text
from engine.compile.sql.query_nodes import QueryNodes, TreeNode, is_query
from engine.compile.streaming.aggregate_rules import aggregates, domains, unbounded_groups
from engine.compile.streaming.join_rules import joins, running_joins
from engine.compile.streaming.parse_statement import parse
from engine.compile.streaming.query_plan.logical_plan import (
    MAX_STEPS,
    Aggregate,
    Distinct,
    Except,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    PlanColumn,
    PlanTooLargeError,
    Projection,
    SourcePlan,
    UnionPlan,
    count_steps,
    walk,
)
from engine.compile.streaming.query_plan.optimize import as_it_runs, needed_columns
from engine.compile.streaming.query_plan.stream_facts import Mode, StreamQuery, error, warning
from engine.compile.streaming.step_rules import chains, modes, order, running_sets, sets
from engine.compile.templates.template_names import REF, SOURCE, spoken
from engine.errors import Diagnostic
from engine.jinja import Rendered

# Rules that hold for every query.
ALWAYS = {
    "agg-not-grouped",
    "agg-alias-key",
    "agg-two-windows",
    "ambiguous-column",
    "subquery-place",
    "subquery-over-union",
    "window-many",
    "window-week",
}
# Reported by earlier stages, at a better place.
_SAID = {"unknown-column", "not-streaming", "not-a-query", "sql-syntax", "duplicate-name"}


def broken_rules(
    model: Model, inputs: Mapping[str, InputColumns], text: tuple[BoundQuery, Rendered] | None = None
) -> Iterator[Diagnostic]:
    """The rules that a model breaks: all of them for a stream, those of any query for a table or a view.

    Args:
        model: with its compiled SQL.
        inputs: the columns of what it reads, by node.
        text: the user's query, bound, and its text, where no other query was put in: then it need not be parsed again.
    """
    if not model.in_catalog or not model.sql:
        return
    mode: Mode = model.write.output_mode.value if model.write.output_mode else "append"
    if text is None:
        relations = {item.view: _input_as_read(item, inputs.get(item.node)) for item in model.inputs}
        findings = check_text(model.sql, relations, mode)
    else:
        findings = check(text[0], mode)
    for finding in findings:
        if finding.code in ALWAYS or (model.streaming and finding.code not in _SAID):
            at = finding.offset
            place = model.positions.locate(model.file, at) if text is None else text[1].location(at)
            message, hint = (_with_input_names(line, model) for line in (finding.message, finding.hint))
            yield Diagnostic(finding.code, message, hint, finding.level, model.name, place)


def reads_state(spelled: str, streams: Iterable[InputFacts]) -> bool:
    """Whether a query keeps state, from the facts of a model: its text in one spelling, and its streams."""
    listed = list(streams)
    tree = parse(spelled).tree
    names = [f"{kind}{item.name}" for item in listed for kind in (REF, SOURCE)]
    return tree is None or is_stateful(QueryNodes.of_tree(tree), names, dedup=any(item.dedup for item in listed))


def placeholder(item: Input) -> str:
    """The name that stands for an input in the user's query."""
    return f"{REF if item.node.startswith('model.') else SOURCE}{item.name}"


def _with_input_names(text: str, model: Model) -> str:
    """The text with the names of temporary views, and what stands for names, turned into those the user wrote."""
    text = spoken(text)
    for name, window in model.windows.items() if "WINDOW(" in text else ():
        text = text.replace(parse_text(window.sql).sql(dialect=DIALECT), name)
    for item in model.inputs:
        for name in (item.view, item.view.strip("`"), placeholder(item)):
            text = text.replace(name, item.name)
    return text


def _input_as_read(item: Input, columns: InputColumns | None) -> InputColumns:
    """What the SQL that runs sees of an input: a view that computes the event time."""
    mark = item.watermark if item.stream else None
    pairs = columns.columns if columns is not None else None
    if columns is not None and pairs is not None:
        types = {name.lower(): (name, kind) for name, kind in (*pairs, *(columns.hidden if item.metadata else ()))}
        if mark is not None and mark.expression is not None:
            types[mark.column.lower()] = (mark.column, "timestamp")
        pairs = tuple(types.values())
    time = mark.column if mark is not None else ""
    return InputColumns(
        item.node, pairs, event_time=time, streaming=item.stream, dedup=item.stream and bool(item.dedup)
    )


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


def limits(query: StreamQuery) -> Iterator[QueryFinding]:
    """A limit that Spark copies below a join or UNION, straight onto a join of streams.

    The copy stops reading once it is full; the join below then does not store its state, and the next batch dies
    (measured). A limit on the join itself reads to the end.
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


_RULES: tuple[Callable[[StreamQuery], Iterator[QueryFinding]], ...] = (
    modes, aggregates, domains, order, sets, running_sets, joins, chains, running_joins, limits, watermarks,
    unbounded_groups,
)  # fmt: skip


def check(bound: BoundQuery, mode: Mode) -> tuple[QueryFinding, ...]:
    """Check a query against Spark's rules: findings by place. It runs on Spark if none of them is an error."""
    tree = bound.tree
    if not is_query(tree):
        message = "a streaming query is a SELECT"
        return (error("not-a-query", message, "Write the SELECT alone.", tree),)
    if bound.plan is None:
        return bound.columns.faults or _too_deep(tree)
    try:
        findings = _findings(bound, bound.plan, mode)
    except RecursionError:
        return _too_deep(tree)
    except PlanTooLargeError as large:
        return (error("sql-too-large", str(large), "Make a part of it a separate model.", tree),)
    unique = {(f.code, f.offset, f.level, f.message): f for f in findings}
    return tuple(sorted(unique.values(), key=lambda f: (f.offset, not f.is_error, f.code)))


def _too_deep(tree: TreeNode) -> tuple[QueryFinding, ...]:
    return (error("sql-too-deep", "the SQL is nested too deeply", "Use CTEs.", tree),)


def _findings(bound: BoundQuery, plan: LogicalPlan, mode: Mode) -> list[QueryFinding]:
    findings = [*bound.noted.findings]
    if not plan.streaming:
        message = "the query reads no stream"
        hint = "List a source under 'streams:', or set materialized: table."
        findings.append(error("not-streaming", message, hint, bound.tree))
        return findings
    if (number := count_steps(plan)) > MAX_STEPS:
        raise PlanTooLargeError(f"the query has {number:,} steps with its CTEs in place, more than {MAX_STEPS:,}")
    query = StreamQuery(plan, as_it_runs(plan), mode, tuple(bound.noted.domains))
    for rule in _RULES:
        findings.extend(rule(query))
    if any(finding.code == "agg-needs-event-time" for finding in findings):
        # Its hint has the GROUP BY to write, with the windows that are selected.
        findings = [finding for finding in findings if finding.code != "agg-not-grouped"]
    if not any(finding.is_error for finding in findings):
        findings.extend(unused_watermarks(query))
    return findings


def check_text(text: str, relations: Mapping[str, InputColumns], mode: Mode) -> tuple[QueryFinding, ...]:
    """Check a text in Spark's SQL; its `STREAM` and `WATERMARK` clauses are findings, as in a model.

    `relations` are by the name in the SQL, parts joined by dots; any other is a table of unknown columns.
    """
    parsed = parse(text)
    if parsed.tree is None:
        return parsed.findings
    return check(bound(parsed.tree, relations, text), mode)


def bound(tree: TreeNode, relations: Mapping[str, InputColumns], text: str) -> BoundQuery:
    """The tree of a text, bound to what it reads."""
    inputs = {name.replace("`", "").lower(): columns for name, columns in relations.items()}
    return bind(tree, inputs, {}, text)
