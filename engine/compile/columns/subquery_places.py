"""Where Spark takes no subquery, by its CheckAnalysis (for UNION: measured); mostly one that uses outer columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.determinism import select_draws
from engine.compile.streaming.query_plan.logical_plan import (
    LogicalPlan,
    Projection,
    Ref,
    UnionPlan,
    With,
    executed_children,
)
from engine.compile.streaming.query_plan.stream_facts import error

GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline)
_JOIN = "Join a grouped query instead: LEFT JOIN (SELECT k, count(*) AS n FROM t GROUP BY k) x ON x.k = .."


def is_scalar(node: exp.Expr) -> bool:
    """Whether it stands for one value, not after IN or EXISTS."""
    return not isinstance(node.parent, (exp.In, exp.Exists))


def misplaced_subqueries(node: exp.Expr, *, correlated: bool) -> Iterator[QueryFinding]:
    """Inside a function with a lambda, inside one that makes rows, or in the condition of a join."""
    above, scalar = node.parent, is_scalar(node)
    while above is not None and not isinstance(above, exp.Query):
        if any(isinstance(part, exp.Lambda) for part in above.iter_expressions()):
            message = "a subquery is not supported in a function with a lambda"
            yield error("subquery-place", message, "Compute it in an inner query, or use a join.", node)
            return
        if isinstance(above, GENERATORS) and (correlated or not scalar):
            message = "a subquery is not supported in a function that returns rows"
            yield error("subquery-place", message, "Compute it in an inner query, or use a join.", node)
        if isinstance(above, exp.Join) and correlated and scalar:
            message = "a subquery in a join condition cannot use columns of the outer query"
            yield error("subquery-place", message, _JOIN, node)
        above = above.parent


def subqueries_over_union(
    plan: LogicalPlan, select: exp.Select, correlated: Iterable[exp.Query]
) -> Iterator[QueryFinding]:
    """Yield those in a SELECT right over a UNION ALL: Spark moves it below and makes them twice with the same ids."""
    while True:
        if isinstance(plan, With) or (isinstance(plan, Ref) and plan.definition is not None):
            (plan,) = executed_children(plan)
        elif isinstance(plan, Projection) and [c.id for c in plan.columns] == [c.id for c in plan.child.columns]:
            plan = plan.child
        else:
            break
    if not isinstance(plan, UnionPlan) or select_draws(select):
        return
    for node in correlated:
        message = "a subquery cannot use columns of the UNION ALL it is applied to"
        yield error("subquery-over-union", message, f"{_JOIN} Or put it into each part of the UNION.", node)


def subqueries_beside_groups(
    items: Iterable[exp.Expr], correlated: Iterable[exp.Query], keys: set[int]
) -> Iterator[QueryFinding]:
    """In the list of a SELECT with GROUP BY, neither inside an aggregate nor in a key (`keys`: ids of those items)."""
    scalar = {id(node) for node in correlated if is_scalar(node)}
    for item in items:
        for node in item.find_all(exp.Query) if id(item) not in keys else ():
            if id(node) in scalar and not _is_in_aggregate(node, item):
                message = "a subquery with columns of the outer query is neither grouped by nor inside an aggregate"
                yield error("agg-not-grouped", message, "Add it to the GROUP BY, or use any_value().", node)


def _is_in_aggregate(node: exp.Expr, item: exp.Expr) -> bool:
    above: exp.Expr | None = node
    while above is not None and above is not item.parent:
        if is_aggregate(above):
            return True
        above = above.parent
    return False
