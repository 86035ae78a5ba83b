"""PIVOT and UNPIVOT."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns
from engine.compile.streaming.lowering.lower_expressions import ExpressionReader
from engine.compile.streaming.query_plan.logical_plan import NO_IDS, Aggregate, Generate, Key, LogicalPlan, PlanColumn

# Results that Spark pivots in a second aggregate; others it computes in one.
_FIXED = {"tinyint", "smallint", "int", "integer", "bigint", "float", "double", "boolean", "byte", "short", "long"}


def lower_pivot(
    plan: LogicalPlan,
    pivot: exp.Expr,
    values: ExpressionReader,
    number: Callable[[], int],
    output: OutputColumns | None,
) -> LogicalPlan:
    """PIVOT is a GROUP BY of all columns that it does not name, mostly in two aggregates."""
    if pivot.args.get("unpivot"):
        return _unpivot(plan, pivot, number, _ids(output))
    aggregates = [values.of(e) for e in pivot.expressions]
    fields = [values.of(field.this) for field in pivot.args.get("fields") or () if isinstance(field, exp.In)]
    taken = NO_IDS.union(*(v.refs for v in (*aggregates, *fields)))
    kept = tuple(c for c in plan.columns if c.id not in taken)
    keys = tuple(_key(c, pivot) for c in kept)
    pivoted = tuple(c for c in plan.columns if any(c.id in v.refs for v in fields))
    refs = NO_IDS.union(*(v.refs for v in aggregates))
    names = [identifier.name.lower() for identifier in pivot.args.get("columns") or ()]
    named = bool(names) and all(names)
    ids = _ids(output)
    results = tuple(
        PlanColumn(ids.get(name) or number(), name) for name in (names if named else [""] * len(aggregates))
    )
    made = tuple((c.id, frozenset({c.id})) for c in kept + pivoted) + tuple((c.id, refs) for c in results)
    if all(v.type in _FIXED or v.type.startswith("decimal") for v in aggregates):
        plan = Aggregate(
            node=pivot,
            columns=kept + pivoted + results,
            children=(plan,),
            keys=keys + tuple(_key(c, pivot) for c in pivoted),
            sources=made,
            open=plan.open,
        )
    return Aggregate(
        node=pivot,
        columns=kept + results,
        children=(plan,),
        keys=keys,
        sources=made,
        uses=refs,
        open=plan.open or not named,
    )


def _key(column: PlanColumn, node: exp.Expr) -> Key:
    return Key(node, column, frozenset({column.id}), lost=column.lost, type=column.type)


def _ids(output: OutputColumns | None) -> dict[str, int]:
    """The ids by which names behind a pivot refer to its columns."""
    return {column.name.lower(): column.value.id for column in output.columns} if output is not None else {}


def _unpivot(plan: LogicalPlan, pivot: exp.Expr, number: Callable[[], int], ids: Mapping[str, int]) -> LogicalPlan:
    fields = [field for field in pivot.args.get("fields") or () if isinstance(field, exp.In)]
    names = {c.name.lower() for field in fields for e in field.expressions for c in e.find_all(exp.Column)}
    kept = tuple(c for c in plan.columns if c.name not in names)
    refs = frozenset(c.id for c in plan.columns if c.name in names)
    new = [e.name for e in pivot.expressions] + [field.this.name for field in fields]
    made = tuple(PlanColumn(ids.get(name.lower()) or number(), name.lower()) for name in new if name)
    sources = tuple((c.id, refs) for c in made)
    return Generate(node=pivot, columns=kept + made, children=(plan,), uses=refs, renamed=sources, open=plan.open)
