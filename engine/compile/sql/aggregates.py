"""Which queries aggregate, and which keep state."""

from __future__ import annotations

from collections.abc import Container, Iterable

from sqlglot import exp

from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.types.builtin_functions import AGGREGATES

# What is between a function and its OVER.
_BETWEEN = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
# Most nodes are none of these, and isinstance() takes long with sqlglot's classes.
_AGGREGATING = frozenset[type]({exp.AggFunc, exp.Anonymous, exp.Any})
# Functions that make several rows of one (Spark: Generator).
_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest)
_GENERATING = {"inline", "stack", "json_tuple", "explode_outer", "posexplode_outer", "inline_outer", "variant_explode"}
# What is in no query that gives a row for each row; and the clauses that a SELECT of one has.
_NOT_ONE_FOR_ONE = (exp.SetOperation, exp.Join, exp.Lateral, exp.Pivot, exp.TableSample, exp.Window, exp.Values)
_ONE_FOR_ONE = {"expressions", "from_", "kind", "with_"}


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function call is an aggregate (and not one over a window of rows)."""
    if _AGGREGATING.isdisjoint(type(node).__mro__):
        return False
    is_aggregate_call = isinstance(node, exp.AggFunc) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES
    )
    # `a like any (..)` does not call the aggregate.
    is_aggregate_call = is_aggregate_call or (
        isinstance(node, exp.Any) and not isinstance(node.parent, (exp.Binary, exp.Escape))
    )
    around = node.parent if is_aggregate_call else None
    while isinstance(around, _BETWEEN):
        around = around.parent
    return is_aggregate_call and not isinstance(around, exp.Window)


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether an expression holds an aggregate of its own query."""
    return any(is_aggregate(node) for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)))


def in_having(node: exp.Expr) -> bool:
    """Whether it is a HAVING that holds an aggregate."""
    return isinstance(node, exp.Having) and any(map(is_aggregate, node.walk()))


def has_sets(node: exp.Expr) -> bool:
    return node.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def leaves_out(group: exp.Expr, keys: Container[exp.Expr]) -> bool:
    """Whether ROLLUP, CUBE or GROUPING SETS make groups without these keys beside groups with them."""
    if group.find(exp.Rollup, exp.Cube) is not None:
        return True
    sets = [one for clause in group.find_all(exp.GroupingSets) for one in clause.expressions]
    return any(not any(node in keys for node in one.walk()) for one in sets)


def distinct_parts(call: exp.Expr) -> list[exp.Expr]:
    """What is behind DISTINCT in a call, which may be of a function that sqlglot does not know."""
    distinct = call.find(exp.Distinct)
    return list(distinct.expressions) if distinct is not None else []


def is_extreme(call: exp.Expr) -> bool:
    """Whether it is max() or min(), which are the same without DISTINCT."""
    return isinstance(call, (exp.Max, exp.Min))


def is_stateful(nodes: QueryNodes, streams: Iterable[str], *, dedup: bool) -> bool:
    """Return whether Spark keeps state for the query: aggregates, distinct, limits, dedup, joins of streams.

    What a query does with static inputs alone keeps none: `streams` are the names by which it reads streams.
    """
    if dedup:
        return True
    joins = nodes.every(exp.Join)
    holding = [query for query in nodes.every(exp.Query) if _holds_state(query)]
    calls = (node for node in nodes.every(exp.AggFunc, exp.Anonymous) if is_aggregate(node))
    holding += [select for call in calls if (select := call.find_ancestor(exp.Select)) is not None]
    if not (holding or joins):
        return False
    names = streaming_names(nodes, streams)
    return any(reads_names(nodes, query, names) for query in holding) or any(
        _joins_streams(nodes, join, names) for join in joins
    )


def _holds_state(query: exp.Query) -> bool:
    groups = any(query.args.get(clause) for clause in ("group", "limit"))
    if isinstance(query, exp.SetOperation):
        return groups or not isinstance(query, exp.Union) or bool(query.args.get("distinct"))
    return groups or (isinstance(query, exp.Select) and bool(query.args.get("distinct")))


def streaming_names(nodes: QueryNodes, streams: Iterable[str]) -> set[str]:
    """The names of streams in lower case, with those of the CTEs that read one."""
    names = {name.lower() for name in streams}
    ctes = nodes.every(exp.CTE)
    for _ in ctes:
        more = {cte.alias.lower() for cte in ctes if reads_names(nodes, cte.this, names)} - names
        if not more:
            break
        names = names | more
    return names


def reads_names(nodes: QueryNodes, node: exp.Expr, names: set[str]) -> bool:
    """Whether something of these names is read in a part of the tree."""
    return not names.isdisjoint(nodes.read_below(node))


def _joins_streams(nodes: QueryNodes, join: exp.Join, names: set[str]) -> bool:
    """Whether both sides of a join read a stream."""
    right = [name for name in nodes.read_below(join.this) if name in names]
    around = nodes.read_below(join.parent) if join.parent is not None else []
    return bool(right) and sum(name in names for name in around) > len(right)


def returns_rows(node: exp.Expr) -> bool:
    """Whether it is a function that makes several rows of one, such as explode()."""
    return isinstance(node, _GENERATORS) or (isinstance(node, exp.Anonymous) and node.name.lower() in _GENERATING)


def is_one_for_one(tree: exp.Expr) -> bool:
    """Whether a query gives one row for each row that it reads."""
    if tree.find(*_NOT_ONE_FOR_ONE) is not None:
        return False
    for select in tree.find_all(exp.Select):
        if any(value for key, value in select.args.items() if key not in _ONE_FOR_ONE):
            return False
        if any(has_aggregate(column) for column in select.expressions):
            return False
    tables = list(tree.find_all(exp.From))
    return len(tables) >= 1 and not any(returns_rows(node) for node in tree.walk())
