"""The steps of SELECT and of set operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope, OutputColumns, ScopeColumn
from engine.compile.columns.from_plan import with_ids
from engine.compile.columns.group_plan import GroupedItem, grouping_plan, read_order, read_windows
from engine.compile.columns.plan_conditions import conditions, keeps_null
from engine.compile.columns.plan_values import ExpressionReader, PlanValue, reader
from engine.compile.columns.subquery_places import subqueries_over_union
from engine.compile.columns.walk import Walk
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Distinct,
    Except,
    Filter,
    Generate,
    Intersect,
    Limit,
    LogicalPlan,
    Offset,
    Over,
    PlanColumn,
    Projection,
    SortPlan,
    UnionPlan,
    copy_of_column,
)
from engine.compile.streaming.query_plan.stream_facts import error

_SORTS = ("order", "sort", "cluster")


def select_plan(walk: Walk, node: exp.Select, scope: ColumnScope, output: OutputColumns) -> LogicalPlan:
    """The steps of a SELECT behind its FROM, whose names have been found."""
    plan = _filter_plan(walk, node, scope)
    if any(isinstance(e, exp.QueryTransform) for e in node.expressions):
        return with_order_and_limit(Generate(node=node, children=(plan,), open=True, uses=plan.ids), node)
    values = reader(walk, scope, scope.plan)
    read_windows(node, values)
    items = list(_grouped_items(walk, node, output, values))
    if node.args.get("group") is not None or node.args.get("having") is not None or values.step.aggregates:
        plan = grouping_plan(plan, node, items, values)
    else:
        read_order(node, values)
        plan = _projection_steps(plan, node, items, values)
    if node.args.get("qualify") is not None:
        message = "Spark 4.1 has no QUALIFY, and no function with OVER on a stream"
        hint = "Aggregate by the key and take max_by(struct(..), struct(<order columns>))."
        walk.findings.append(error("qualify-not-supported", message, hint, node.args["qualify"]))
    if node.args.get("distinct") is not None:
        plan = Distinct(node=node, columns=plan.columns, children=(plan,), open=plan.open)
    return with_order_and_limit(plan, node)


def set_operation_plan(
    walk: Walk, node: exp.SetOperation, sides: tuple[LogicalPlan, LogicalPlan], output: OutputColumns
) -> LogicalPlan:
    columns, is_open = sides[0].columns, any(side.open for side in sides)
    if not isinstance(node, exp.Union):
        step_type = Except if isinstance(node, exp.Except) else Intersect
        return step_type(node=node, columns=columns, children=sides, open=is_open)
    columns = with_ids(walk, columns, output)
    plan: LogicalPlan = UnionPlan(node=node, columns=columns, children=sides, open=is_open)
    if node.args.get("distinct"):
        plan = Distinct(node=node, columns=columns, children=(plan,), open=is_open)
    return plan


def with_order_and_limit(plan: LogicalPlan, node: exp.Expr) -> LogicalPlan:
    """ORDER BY, LIMIT, OFFSET, in the order in which Spark applies them."""
    for name in _SORTS:
        if node.args.get(name) is not None:
            plan = SortPlan(node=node.args[name], columns=plan.columns, children=(plan,), open=plan.open)
    if node.args.get("offset") is not None:
        plan = Offset(node=node.args["offset"], columns=plan.columns, children=(plan,), open=plan.open)
    limit = node.args.get("limit")
    if limit is not None and not _is_all(limit):
        plan = Limit(node=limit, columns=plan.columns, children=(plan,), open=plan.open)
    return plan


def _filter_plan(walk: Walk, node: exp.Select, scope: ColumnScope) -> LogicalPlan:
    where = node.args.get("where")
    if where is None:
        return scope.plan
    values = reader(walk, scope, scope.plan)
    terms = conditions(where.this, values)
    plan = values.widened(scope.plan)
    return Filter(node=where, columns=plan.columns, children=(plan,), conditions=terms, open=plan.open)


def _grouped_items(
    walk: Walk, node: exp.Select, output: OutputColumns, values: ExpressionReader
) -> Iterator[GroupedItem]:
    """The columns of a SELECT, `*` written out. A later one may use the name of an earlier one."""
    columns_by_item: dict[int, list[ScopeColumn | None]] = {}
    for one in output.columns:
        columns_by_item.setdefault(one.item, []).append(one)
    for number, item in enumerate(node.expressions):
        if item.is_star and not isinstance(item, exp.Alias) and isinstance(item, (exp.Star, exp.Column)):
            yield from _star_items(walk, item, filter(None, columns_by_item.get(number, [])), values)
            continue
        before = len(values.step.aggregates)
        value = values.value_of(item)
        for column in columns_by_item.get(number, [None]):
            plan_column = _item_column(walk, item, value, column)
            if value.column is None or value.column.id != plan_column.id:
                walk.column_expressions[plan_column.id] = item.unalias()
            if isinstance(item, exp.Alias):
                values.columns[plan_column.id] = plan_column
                values.aliases.add(plan_column.id)
            yield GroupedItem(item, value, plan_column, aggregates=len(values.step.aggregates) > before)


def _star_items(
    walk: Walk, item: exp.Expr, star_columns: Iterable[ScopeColumn], values: ExpressionReader
) -> Iterator[GroupedItem]:
    star = item.this if isinstance(item, exp.Column) else item
    assigned = {alias.alias.lower(): alias for alias in star.args.get("replace") or ()}
    for place in [*(star.args.get("except_") or ()), *assigned.values()]:
        ref = walk.refs.get(id(place))
        if ref is not None and len(ref.ids) > 1:
            hint = "Give one of them another name where they are selected."
            at = place.args["alias"] if isinstance(place, exp.Alias) else place
            walk.findings.append(error("ambiguous-column", f"two inputs have a column '{ref.name}'", hint, at))
    for one in star_columns:
        column, replaced = values.column(one.value.id), assigned.get(one.name.lower())
        if replaced is not None:
            value = values.value_of(replaced)
            column = _item_column(walk, replaced, value, one)
            walk.column_expressions[column.id] = replaced.unalias()
            yield GroupedItem(replaced, value, column)
            continue
        if column is None:
            # A field of a struct.
            column = PlanColumn(one.value.id, one.name.lower(), one.value.type or "")
        value = PlanValue(
            column,
            column,
            frozenset({column.id}),
            column.type,
            column.fields,
            watermark_lost_at=column.watermark_lost_at,
        )
        yield GroupedItem(item, value, column)


def _item_column(walk: Walk, item: exp.Expr, value: PlanValue, scope_column: ScopeColumn | None) -> PlanColumn:
    number = scope_column.value.id if scope_column is not None else next(walk.ids)
    if value.column is not None and not isinstance(item, exp.Alias):
        # A declared window has the name by which it is declared.
        name = scope_column.name.lower() if scope_column is not None and isinstance(item, exp.Column) else None
        return value.column if value.column.id == number else copy_of_column(value.column, number, name)
    name = item.alias.lower() if isinstance(item, exp.Alias) else _expression_name(item)
    if scope_column is not None and isinstance(item, exp.Aliases):
        name = scope_column.name.lower()
    base = value.inherits or PlanColumn(0, "", fields=value.fields, watermark_lost_at=value.watermark_lost_at)
    same = value.column.id if value.column is not None else 0
    return replace(base, id=number, name=name, type=value.type or base.type, is_certain=True, copy_of=same)


def _projection_steps(
    plan: LogicalPlan, node: exp.Select, items: list[GroupedItem], values: ExpressionReader
) -> LogicalPlan:
    plan = values.widened(plan)
    if values.step.correlated:
        values.walk.findings.extend(subqueries_over_union(plan, node, values.step.correlated))
    if values.step.generates:
        plan = Generate(node=node, columns=plan.columns, children=(plan,), open=plan.open)
    if values.step.over:
        uses = NO_IDS.union(*(values.value_of(call).refs for call in values.step.over))
        calls = tuple(values.step.over)
        plan = Over(node=calls[0], columns=plan.columns, children=(plan,), uses=uses, open=plan.open, calls=calls)
    return _project(plan, node, items)


def _project(plan: LogicalPlan, node: exp.Select, items: list[GroupedItem]) -> LogicalPlan:
    """The SELECT list over a plan."""
    own = {c.id for c in plan.columns}
    aliases: dict[int, frozenset[int]] = {}
    valued: set[int] = set()
    for item in items:
        if item.column.id not in own and (keeps_null(item.node) or not valued.isdisjoint(item.value.refs)):
            valued.add(item.column.id)
        refs = NO_IDS.union(*(aliases.get(r, frozenset({r})) for r in item.value.refs))
        aliases[item.column.id] = refs if item.column.id not in own else frozenset({item.column.id})
    columns = tuple(item.column for item in items)
    is_open = (plan.open and any(i.node.is_star for i in items)) or any(not c.name for c in columns)
    is_open = is_open or (not items and plan.open) or (plan.open and any(e.is_star for e in node.expressions))
    source_ids = tuple(aliases.items())
    return Projection(
        node=node, columns=columns, children=(plan,), sources=source_ids, keeps_null=frozenset(valued), open=is_open
    )


def _expression_name(item: exp.Expr) -> str:
    """The name of an expression without alias, if it is known."""
    if isinstance(item, exp.Dot):
        return str(item.expression.name.lower())
    return item.name.lower() if isinstance(item, exp.Column) else ""


def _is_all(limit: exp.Expr) -> bool:
    value = limit.args.get("expression")
    return isinstance(value, (exp.Column, exp.Var)) and value.name.lower() == "all"
