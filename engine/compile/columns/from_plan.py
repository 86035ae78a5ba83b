"""The steps of FROM: relations, joins, and what follows a relation."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope, OutputColumns, ScopeColumn
from engine.compile.columns.plan_conditions import conditions, equality
from engine.compile.columns.plan_values import reader
from engine.compile.columns.subquery_places import GENERATORS
from engine.compile.columns.walk import Walk
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Domain,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    PlanColumn,
    Projection,
    Sample,
    SourcePlan,
    copy_of_column,
    groups_by_outer,
)
from engine.compile.streaming.query_plan.stream_facts import error

# What USING and NATURAL compare: where that is said, the ids of both sides, and of the column that is seen.
Pair = tuple[exp.Expr, int, int, int]


def source_plan(walk: Walk, node: exp.Expr, name: str, relation: InputColumns, output: OutputColumns) -> LogicalPlan:
    """An input; its columns have their types as they are declared."""
    # The names of fields keep their letter case: those of a JSON record have one.
    declared_columns = (*(relation.columns or ()), *relation.hidden)
    types = {name.lower(): t if t and "<" in t else (t or "").lower() for name, t in declared_columns}
    types |= dict.fromkeys((name.lower() for name, _ in relation.added), "timestamp")
    marked = relation.event_time.lower() if relation.streaming else ""
    if marked:
        types.setdefault(marked, "timestamp")
    values = {c.name.lower(): c.value for c in reversed(output.columns)} | {**output.hidden}
    ids = {name: values[name].id if name in values else next(walk.ids) for name in types}
    columns = tuple(PlanColumn(ids[name], name, type_, watermark=name == marked) for name, type_ in types.items())
    return SourcePlan(
        node=node,
        name=name,
        columns=columns,
        open=relation.columns is None,
        streaming=relation.streaming,
        dedup=relation.dedup,
    )


def plan_columns(columns: Sequence[ScopeColumn]) -> tuple[PlanColumn, ...]:
    return tuple(PlanColumn(column.value.id, column.name.lower()) for column in columns)


def with_ids(walk: Walk, columns: Sequence[PlanColumn], output: OutputColumns) -> tuple[PlanColumn, ...]:
    """The columns as new ones, with the ids that names refer to."""
    if len(output.columns) == len(columns):
        return tuple(copy_of_column(c, t.value.id) for c, t in zip(columns, output.columns, strict=True))
    ids = {column.name.lower(): column.value.id for column in output.columns}
    return tuple(copy_of_column(c, ids.pop(c.name, 0) or next(walk.ids)) for c in columns)


def under_names(
    plan: LogicalPlan, node: exp.Expr, before: Sequence[ScopeColumn], after: Sequence[ScopeColumn]
) -> LogicalPlan:
    """What an alias gives its columns other names."""
    if plan.open:
        return plan
    by_id = {column.id: column for column in plan.columns}
    pairs = [(by_id.get(b.value.id), a) for b, a in zip(before, after, strict=True)]
    renamed_pairs = [(old, copy_of_column(old, a.value.id, a.name.lower())) for old, a in pairs if old is not None]
    sources = tuple((new.id, frozenset({old.id})) for old, new in renamed_pairs)
    return Projection(node=node, columns=tuple(new for _, new in renamed_pairs), children=(plan,), sources=sources)


def sample_plan(plan: LogicalPlan, sample: exp.Expr | None) -> LogicalPlan:
    if sample is None:
        return plan
    rows = sample.args.get("size") is not None and not sample.args.get("bucket_numerator")
    step_type = Limit if rows else Sample
    return step_type(node=sample, columns=plan.columns, children=(plan,), open=plan.open)


def lateral_view(walk: Walk, scope: ColumnScope, view: exp.Expr, item: ColumnScope) -> LogicalPlan:
    plan = scope.plan
    if view.this is None or view.find(exp.Func) is None:
        # sqlglot reads `u lateral .n` as a LATERAL of nothing.
        message = "LATERAL needs a function that makes rows"
        walk.findings.append(error("sql-syntax", message, "Write LATERAL VIEW explode(..) name AS column.", view))
        return plan
    values = reader(walk, scope, plan)
    refs = values.value_of(view.this).refs
    plan = values.widened(plan)
    generated_columns = plan_columns(item.columns)
    return Generate(
        node=view,
        columns=plan.columns + generated_columns,
        children=(plan,),
        uses=refs,
        renamed=tuple((c.id, refs) for c in generated_columns),
        open=plan.open or item.open,
    )


def join_plan(
    walk: Walk, scope: ColumnScope, join: exp.Expr, sides: tuple[ColumnScope, ColumnScope], pairs: Sequence[Pair]
) -> LogicalPlan:
    """A join; `scope` is that of the SELECT, `pairs` are the columns of USING and NATURAL."""
    (left_plan, right_plan), kind = (side.plan for side in sides), join_kind(join)
    lateral = isinstance(join.this, exp.Lateral)
    if lateral:
        right_plan = _lateral_plan(walk, join.this, *sides)
    values = reader(walk, scope, left_plan, right_plan)
    terms = conditions(join.args["on"], values, on=True) if join.args.get("on") is not None else ()
    ours, theirs = ({column.id: column for column in side.columns} for side in (left_plan, right_plan))
    compared = [(node, ours[a], theirs[b], merged_id) for node, a, b, merged_id in pairs if a in ours and b in theirs]
    terms += tuple(equality(one, other, node) for node, one, other, _ in compared)
    plan: LogicalPlan = Join(
        node=join,
        columns=left_plan.columns if kind in {"semi", "anti"} else left_plan.columns + right_plan.columns,
        children=(left_plan, right_plan),
        uses=NO_IDS.union(*(c.refs for c in terms), right_plan.uses if lateral else NO_IDS),
        open=left_plan.open or right_plan.open,
        kind=kind,
        conditions=terms,
        lateral=lateral,
    )
    return _merge_pairs(plan, compared) if kind == "full" and compared else plan


def join_kind(join: exp.Expr) -> str:
    side, kind = (str(join.args.get(name) or "").lower() for name in ("side", "kind"))
    if kind in {"semi", "anti"}:
        return kind
    return side if side in {"left", "right", "full"} else "inner"


def _merge_pairs(plan: LogicalPlan, pairs: Sequence[tuple[exp.Expr, PlanColumn, PlanColumn, int]]) -> LogicalPlan:
    """A full join makes a new column of each pair."""
    merged_columns, sources = [], []
    for node, left_column, right_column, merged_id in pairs:
        lost_at = node if left_column.watermark or right_column.watermark else None
        merged_columns.append(PlanColumn(merged_id, left_column.name, left_column.type, watermark_lost_at=lost_at))
        sources.append((merged_id, frozenset({left_column.id, right_column.id})))
    sources += [(c.id, frozenset({c.id})) for c in plan.columns]
    columns = (*merged_columns, *plan.columns)
    return Projection(node=plan.node, columns=columns, children=(plan,), sources=tuple(sources), open=plan.open)


def _lateral_plan(walk: Walk, node: exp.Expr, left_scope: ColumnScope, right_scope: ColumnScope) -> LogicalPlan:
    """What is lateral sees the relations on its left; Spark treats a subquery there as one of an expression."""
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(inner, exp.Query):
        refs = reader(walk, left_scope, left_scope.plan).value_of(node.this).refs
        return SourcePlan(node=node, columns=plan_columns(right_scope.columns), open=right_scope.open, uses=refs)
    refs = frozenset(left_scope.used_in_subqueries)
    plan = replace(right_scope.plan, uses=refs)
    if plan.streaming:
        message = "a lateral subquery cannot read a stream"
        hint = "Use a join, or remove the input of the subquery from 'streams:'."
        walk.findings.append(error("subquery-on-stream", message, hint, inner))
    if refs and left_scope.plan.streaming and (groups_by_outer(plan, refs, scalar=False) or _is_one_row(node, inner)):
        walk.domains.append(Domain(node, tuple(c for c in left_scope.plan.columns if c.id in refs)))
    return plan


def _is_one_row(node: exp.Expr, inner: exp.Expr) -> bool:
    """Whether it is one row under a condition, in WHERE or ON: Spark takes no step less for it then (measured)."""
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is not None or inner.find(*GENERATORS) is not None:
        return False
    on = node.parent.args.get("on") if isinstance(node.parent, exp.Join) else None
    return inner.args.get("where") is not None or (on is not None and not isinstance(on, exp.Boolean))
