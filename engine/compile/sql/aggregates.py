"""Which queries aggregate, and which keep state."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

# Spark's aggregates that sqlglot knows by name only.
_NAMES = {
    "any", "approx_percentile", "approx_top_k", "bit_and", "bit_or", "bit_xor",
    "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or", "collect_list", "collect_set",
    "count_if", "count_min_sketch", "every", "grouping", "grouping_id", "histogram_numeric",
    "hll_sketch_agg", "hll_union_agg", "kurtosis", "listagg", "max_by", "mean", "median", "min_by",
    "mode", "percentile", "percentile_approx", "regr_avgx", "regr_avgy", "regr_count",
    "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    "schema_of_variant_agg", "skewness", "some", "std", "string_agg", "theta_sketch_agg", "try_avg",
    "try_sum",
}  # fmt: skip
# What stands between a function and its OVER.
_BETWEEN = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function call is an aggregate (and not one over a window of rows)."""
    known = isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES)
    around = node.parent if known else None
    while isinstance(around, _BETWEEN):
        around = around.parent
    return known and not isinstance(around, exp.Window)


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether an expression holds an aggregate of its own query."""
    return any(is_aggregate(node) for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)))


def is_stateful(tree: exp.Expr, streams: Iterable[str], *, dedup: bool) -> bool:
    """Whether Spark keeps state for the query: aggregates, distinct, limits, dedup, joins of streams.

    Args:
        tree: of the query.
        streams: the names by which it reads streams; what a query does with static inputs alone keeps no state.
        dedup: an input drops duplicates.
    """
    if dedup:
        return True
    steps = [node for node in tree.walk() if isinstance(node, (exp.Query, exp.Join)) or is_aggregate(node)]
    holding = [step for node in steps if (step := _holding(node)) is not None]
    if not holding:
        return False
    names = _reading(tree, {name.lower() for name in streams})
    return any(_joins(step, names) if isinstance(step, exp.Join) else _reads(step, names) for step in holding)


def _holding(node: exp.Expr) -> exp.Expr | None:
    """The query or join that would keep state for a part of the tree, if what it reads is a stream."""
    if isinstance(node, exp.Join):
        return node
    if not isinstance(node, exp.Query):
        return node.find_ancestor(exp.Select)
    groups = any(node.args.get(clause) for clause in ("group", "limit"))
    if isinstance(node, exp.SetOperation):
        groups = groups or not isinstance(node, exp.Union) or bool(node.args.get("distinct"))
    elif isinstance(node, exp.Select):
        groups = groups or bool(node.args.get("distinct"))
    return node if groups else None


def _reading(tree: exp.Expr, names: set[str]) -> set[str]:
    """The names of streams, with those of the CTEs that read one."""
    ctes = list(tree.find_all(exp.CTE))
    for _ in ctes:
        more = {cte.alias.lower() for cte in ctes if _reads(cte.this, names)} - names
        if not more:
            break
        names = names | more
    return names


def _reads(node: exp.Expr, names: set[str]) -> bool:
    return any(table.name.lower() in names for table in node.find_all(exp.Table))


def _joins(join: exp.Join, names: set[str]) -> bool:
    """Whether both sides of a join read a stream."""
    right = set(map(id, join.this.find_all(exp.Table)))
    around = join.parent.find_all(exp.Table) if join.parent is not None else ()
    left = any(table.name.lower() in names for table in around if id(table) not in right)
    return left and _reads(join.this, names)
