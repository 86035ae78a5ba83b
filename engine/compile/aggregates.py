"""Which queries aggregate, and which keep state."""

from __future__ import annotations

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


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a function call is an aggregate (and not one over a window of rows)."""
    known = isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES)
    return known and not isinstance(node.parent, exp.Window)


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether an expression holds an aggregate of its own query."""
    return any(is_aggregate(node) for node in tree.find_all(exp.AggFunc, exp.Anonymous))


def is_stateful(tree: exp.Expr, streams: int, *, dedup: bool) -> bool:
    """Whether Spark keeps state for the query: aggregates, distinct, limits, dedup, joins of streams."""
    if dedup:
        return True
    clauses = ("group", "distinct", "limit")
    if any(select.args.get(clause) for select in tree.find_all(exp.Select) for clause in clauses):
        return True
    for operation in tree.find_all(exp.SetOperation):
        plain = isinstance(operation, exp.Union) and not operation.args.get("distinct")
        if not plain or operation.args.get("limit"):
            return True
    return has_aggregate(tree) or (streams > 1 and any(True for _ in tree.find_all(exp.Join)))
