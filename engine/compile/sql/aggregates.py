"""Which queries aggregate, and which keep state."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.types.builtin_functions import AGGREGATES

# What is between a function and its OVER.
_BETWEEN = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
# Functions that make several rows of one (Spark: Generator).
_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest)
_GENERATING = {"inline", "stack", "json_tuple", "explode_outer", "posexplode_outer", "inline_outer", "variant_explode"}


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function call is an aggregate (and not one over a window of rows)."""
    known = isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)
    # `a like any (..)` does not call the aggregate.
    known = known or (isinstance(node, exp.Any) and not isinstance(node.parent, (exp.Binary, exp.Escape)))
    around = node.parent if known else None
    while isinstance(around, _BETWEEN):
        around = around.parent
    return known and not isinstance(around, exp.Window)


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether an expression holds an aggregate of its own query."""
    return any(is_aggregate(node) for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)))


def is_stateful(nodes: QueryNodes, streams: Iterable[str], *, dedup: bool) -> bool:
    """Whether Spark keeps state for the query: aggregates, distinct, limits, dedup, joins of streams.

    Args:
        nodes: of the query.
        streams: the names by which it reads streams; what a query does with static inputs alone keeps no state.
        dedup: an input drops duplicates.
    """
    if dedup:
        return True
    joins = nodes.every(exp.Join)
    holding = [query for query in nodes.every(exp.Query) if _holds(query)]
    calls = (node for node in nodes.every(exp.AggFunc, exp.Anonymous) if is_aggregate(node))
    holding += [select for call in calls if (select := call.find_ancestor(exp.Select)) is not None]
    if not (holding or joins):
        return False
    names = streaming_names(nodes, streams)
    return any(reads(nodes, query, names) for query in holding) or any(_joins(nodes, join, names) for join in joins)


def _holds(query: exp.Query) -> bool:
    """Whether a query would keep state if what it reads is a stream."""
    groups = any(query.args.get(clause) for clause in ("group", "limit"))
    if isinstance(query, exp.SetOperation):
        return groups or not isinstance(query, exp.Union) or bool(query.args.get("distinct"))
    return groups or (isinstance(query, exp.Select) and bool(query.args.get("distinct")))


def streaming_names(nodes: QueryNodes, streams: Iterable[str]) -> set[str]:
    """The names of streams in lower case, with those of the CTEs that read one."""
    names = {name.lower() for name in streams}
    ctes = nodes.every(exp.CTE)
    for _ in ctes:
        more = {cte.alias.lower() for cte in ctes if reads(nodes, cte.this, names)} - names
        if not more:
            break
        names = names | more
    return names


def reads(nodes: QueryNodes, node: exp.Expr, names: set[str]) -> bool:
    """Whether something of these names is read in a part of the tree."""
    return not names.isdisjoint(nodes.read_below(node))


def _joins(nodes: QueryNodes, join: exp.Join, names: set[str]) -> bool:
    """Whether both sides of a join read a stream."""
    right = [name for name in nodes.read_below(join.this) if name in names]
    around = nodes.read_below(join.parent) if join.parent is not None else []
    return bool(right) and sum(name in names for name in around) > len(right)


def returns_rows(node: exp.Expr) -> bool:
    """Whether it is a function that makes several rows of one, such as explode()."""
    return isinstance(node, _GENERATORS) or (isinstance(node, exp.Anonymous) and node.name.lower() in _GENERATING)
