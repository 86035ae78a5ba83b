"""The checker: a query against all rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import BoundQuery, bind
from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.query_nodes import TreeNode, is_query
from engine.compile.streaming.aggregate_rules import aggregates, domains, unbounded_groups
from engine.compile.streaming.join_rules import joins, running_joins
from engine.compile.streaming.limit_rules import limits
from engine.compile.streaming.parse_statement import parse
from engine.compile.streaming.query_plan.logical_plan import MAX_STEPS, LogicalPlan, PlanTooLargeError, count_steps
from engine.compile.streaming.query_plan.optimize import as_it_runs
from engine.compile.streaming.query_plan.stream_facts import Mode, StreamQuery, error
from engine.compile.streaming.step_rules import chains, modes, order, running_sets, sets
from engine.compile.streaming.watermark_rules import unused_watermarks, watermarks

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
