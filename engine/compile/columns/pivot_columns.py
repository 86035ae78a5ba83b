"""The columns and the steps of PIVOT and UNPIVOT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from engine.compile.columns import type_mismatch
from engine.compile.columns.column_scope import (
    ColumnScope,
    ColumnValue,
    Missing,
    OutputColumns,
    ScopeColumn,
    origins,
)
from engine.compile.columns.default_names import column_name
from engine.compile.columns.plan_values import reader
from engine.compile.columns.walk import Walk, path
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.streaming.query_plan.logical_plan import NO_IDS, Aggregate, Generate, Key, LogicalPlan, PlanColumn
from engine.compile.types.widening import widest_type

# Results that Spark pivots in a second aggregate; others it computes in one.
_FIXED = {"tinyint", "smallint", "int", "integer", "bigint", "float", "double", "boolean", "byte", "short", "long"}


def pivot_output(walk: Walk, pivot: exp.Expr, scope: ColumnScope) -> OutputColumns:
    open_ = scope.open
    alias = pivot.args.get("alias")
    if alias is not None and not pivot.args.get("unpivot"):
        hint = "Use a subquery: from (select * from .. pivot (..)) p."
        walk.fault("sql-syntax", "Spark has no alias after PIVOT", hint, alias)
    columns = list(
        _unpivot_columns(walk, pivot, scope) if pivot.args.get("unpivot") else _pivot_columns(walk, pivot, scope)
    )
    rest = scope.relations[0].output.rest if open_ else None
    plan_of = _unpivot_plan if pivot.args.get("unpivot") else _pivot_plan
    ids = {column.name.lower(): column.value.id for column in columns}
    return OutputColumns(columns, open_, rest, plan=plan_of(walk, pivot, scope, ids))


def _pivot_columns(walk: Walk, pivot: exp.Expr, scope: ColumnScope) -> Iterator[ScopeColumn]:
    fields = _fields(pivot)
    by = [walk.value(field.this, scope) for field in fields]
    results = [(*column_name(walk, call, scope), walk.value(call, scope)) for call in pivot.expressions]
    walk.influence(origins(by), "group")
    for call in pivot.expressions:
        _check_aggregated(walk, call, scope)
    pivot_names = _used_names([*(field.this for field in fields), *pivot.expressions])
    yield from (column for column in scope.columns if column.name.lower() not in pivot_names)
    for field in fields:
        for item in field.expressions:
            value, sure = _value_name(item)
            for name, certain, result in results:
                several = len(results) > 1
                result_name = f"{value}_{name}" if several else value
                result_value = walk.renewed(ColumnValue(result.type, result.origins))
                yield ScopeColumn(result_name, result_value, sure and (certain or not several))


def _check_aggregated(walk: Walk, call: exp.Expr, scope: ColumnScope) -> None:
    """Report a column of a result that no aggregate takes."""
    for node in call.walk(prune=_is_computed):
        if isinstance(node, exp.Column) and (parts := path(node)[0]):
            try:
                value = scope.look_up([part.name for part in parts])
            except Missing:
                continue
            if value.origins or value.type:
                message = f"PIVOT takes aggregates, and '{node.name}' is outside of them"
                walk.fault("misplaced-expression", message, f"Write max({node.name}) or any_value({node.name}).", node)
                return


def _is_computed(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, (exp.Filter, exp.WithinGroup)) else node
    return isinstance(node, exp.Query) or is_aggregate(inner)


def _value_name(item: exp.Expr) -> tuple[str, bool]:
    """What a value of a PIVOT is called, and whether that is sure."""
    if isinstance(item, exp.Tuple):
        parts = [_value_name(part) for part in item.expressions]
        return f"{{{', '.join(name for name, _ in parts)}}}", all(sure for _, sure in parts)
    if isinstance(item, exp.Boolean):
        return str(item.this).lower(), True
    if isinstance(item, (exp.PivotAlias, exp.Alias)):
        alias = item.args["alias"]
        return alias.name, True
    return item.name, isinstance(item, exp.Literal) and (item.is_string or item.is_int)


def _used_names(nodes: list[exp.Expr]) -> set[str]:
    paths = (path(column)[0] for node in nodes for column in node.find_all(exp.Column))
    return {part.name.lower() for identifiers in paths for part in identifiers[:2]}


def _unpivot_columns(walk: Walk, pivot: exp.Expr, scope: ColumnScope) -> Iterator[ScopeColumn]:
    fields = _fields(pivot)
    items = [_bare(item) for field in fields for item in field.expressions]
    unpivoted_names = _used_names(items)
    yield from (column for column in scope.columns if column.name.lower() not in unpivoted_names)
    rows = [[(part, walk.value(part, scope)) for part in _parts(item)] for item in items]
    for field in fields:
        yield ScopeColumn(field.this.name, walk.renewed(ColumnValue("string")))
    targets = [part for expression in pivot.expressions for part in _parts(expression)]
    for place, target in enumerate(targets):
        parts = [row[place] for row in rows if place < len(row)]
        type_mismatch.check_common_type(walk, pivot, parts, "UNPIVOT")
        common_value = ColumnValue(widest_type(v.type for _, v in parts), origins([v for _, v in parts]))
        yield ScopeColumn(target.name, walk.renewed(common_value))


def _bare(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, (exp.PivotAlias, exp.Alias)) else item


def _parts(item: exp.Expr) -> list[exp.Expr]:
    return (
        list(item.expressions) if isinstance(item, exp.Tuple) else [item.this if isinstance(item, exp.Paren) else item]
    )


def _unpivot_plan(walk: Walk, pivot: exp.Expr, scope: ColumnScope, ids: Mapping[str, int]) -> LogicalPlan:
    plan, fields = scope.plan, _fields(pivot)
    unpivoted_names = {c.name.lower() for field in fields for e in field.expressions for c in e.find_all(exp.Column)}
    other_columns = tuple(c for c in plan.columns if c.name not in unpivoted_names)
    refs = frozenset(c.id for c in plan.columns if c.name in unpivoted_names)
    new = [e.name.lower() for e in (*pivot.expressions, *(field.this for field in fields)) if e.name]
    generated_columns = _new_columns(walk, new, ids)
    sources = tuple((c.id, refs) for c in generated_columns)
    return Generate(
        node=pivot,
        columns=other_columns + generated_columns,
        children=(plan,),
        uses=refs,
        renamed=sources,
        open=plan.open,
    )


def _pivot_plan(walk: Walk, pivot: exp.Expr, scope: ColumnScope, ids: Mapping[str, int]) -> LogicalPlan:
    """PIVOT is a GROUP BY of all columns that it does not name, mostly in two aggregates."""
    plan = scope.plan
    values = reader(walk, scope, plan)
    aggregates = [values.value_of(e) for e in pivot.expressions]
    by = [values.value_of(field.this) for field in _fields(pivot)]
    used_ids = NO_IDS.union(*(v.refs for v in (*aggregates, *by)))
    other_columns = tuple(c for c in plan.columns if c.id not in used_ids)
    keys = tuple(_key(c, pivot) for c in other_columns)
    pivoted = tuple(c for c in plan.columns if any(c.id in v.refs for v in by))
    refs = NO_IDS.union(*(v.refs for v in aggregates))
    names = [identifier.name.lower() for identifier in pivot.args.get("columns") or ()]
    named_all = bool(names) and all(names)
    results = _new_columns(walk, names if named_all else [""] * len(aggregates), ids)
    made_of = tuple((c.id, frozenset({c.id})) for c in other_columns + pivoted) + tuple((c.id, refs) for c in results)
    if all(v.type in _FIXED or v.type.startswith("decimal") for v in aggregates):
        plan = Aggregate(
            node=pivot,
            columns=other_columns + pivoted + results,
            children=(plan,),
            keys=keys + tuple(_key(c, pivot) for c in pivoted),
            sources=made_of,
            open=plan.open,
        )
    return Aggregate(
        node=pivot,
        columns=other_columns + results,
        children=(plan,),
        keys=keys,
        sources=made_of,
        uses=refs,
        open=plan.open or not named_all,
    )


def _new_columns(walk: Walk, names: Sequence[str], ids: Mapping[str, int]) -> tuple[PlanColumn, ...]:
    return tuple(PlanColumn(ids.get(name) or next(walk.ids), name) for name in names)


def _fields(pivot: exp.Expr) -> list[exp.In]:
    return [field for field in pivot.args.get("fields") or () if isinstance(field, exp.In)]


def _key(column: PlanColumn, node: exp.Expr) -> Key:
    return Key(node, column, frozenset({column.id}), watermark_lost_at=column.watermark_lost_at, type=column.type)
