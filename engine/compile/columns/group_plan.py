"""GROUP BY: keys by expression, alias, position or ALL, and the aggregate they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from engine.compile.columns.column_scope import GroupKey
from engine.compile.columns.plan_conditions import conditions
from engine.compile.columns.plan_values import WINDOWS, ExpressionReader, PlanValue, path_of
from engine.compile.columns.subquery_places import subqueries_beside_groups
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.same_expression import key_of
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Aggregate,
    Filter,
    Key,
    LogicalPlan,
    Over,
    PlanColumn,
    Projection,
)
from engine.compile.streaming.query_plan.stream_facts import error

# Spark's EliminateDistinct.isDuplicateAgnostic.
_SAME_ON_REPEATS = (
    exp.Max, exp.Min, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.LogicalAnd, exp.LogicalOr, exp.ArrayUniqueAgg,
    exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.AnyValue,
)  # fmt: skip


class GroupedItem(Struct, frozen=True):
    """A column of the SELECT: where it is, what it is, the column it makes, whether it aggregates."""

    node: exp.Expr
    value: PlanValue
    column: PlanColumn
    aggregates: bool = False


def grouping_plan(
    plan: LogicalPlan, node: exp.Select, items: list[GroupedItem], values: ExpressionReader
) -> LogicalPlan:
    clause = node.args.get("group")
    keys = list(_keys(values.walk.groups.get(id(node), ()), items, values))
    _check_aliases(plan, keys, items, values)
    having = node.args.get("having")
    having_terms = conditions(having.this, values) if having is not None else ()
    read_order(node, values)
    _check_grouped(plan, keys, items, values)
    _check_behind(plan, node, keys, items, values)
    plan = values.widened(plan)
    refs = {item.column.id: item.value.refs for item in items}
    refs |= {key.column.id: frozenset({key.column.id}) for key in keys if key.column is not None}
    uses = NO_IDS.union(*(c.refs for c in having_terms)) - refs.keys()
    columns = tuple(item.column for item in items)
    hidden = tuple(k.column for k in keys if k.column is not None and k.column.id not in {c.id for c in columns})
    is_open = any(not c.name for c in columns) or (plan.open and any(i.node.is_star for i in items))
    result: LogicalPlan = Aggregate(
        node=clause if clause is not None else node,
        columns=columns,
        children=(plan,),
        uses=uses,
        open=is_open,
        keys=tuple(keys),
        sources=tuple(refs.items()),
        distinct=tuple(values.step.distinct),
        collects=tuple(values.step.collects),
        calls=bool(values.step.aggregates),
        results=frozenset(item.column.id for item in items if item.aggregates),
        repeats=not all(isinstance(call, _SAME_ON_REPEATS) for call in values.step.aggregates),
    )
    if values.step.over:
        calls = tuple(values.step.over)
        result = Over(node=calls[0], columns=columns, children=(result,), open=is_open, calls=calls)
    if having is not None:
        result = Filter(node=having, columns=columns + hidden, children=(result,), open=is_open)
    return _only_columns(result, columns)


def _check_aliases(plan: LogicalPlan, keys: list[Key], items: list[GroupedItem], values: ExpressionReader) -> None:
    """A name of ALL or an alias may not stand for what uses an alias itself; over tables, other keys may use one."""
    own = {id(item.node.unalias()) for item in items}
    for key in keys:
        if values.value_of(key.node).alias and (plan.streaming or id(key.node) in own):
            over = " on a stream" if plan.streaming else ""
            message = f"GROUP BY{over} cannot use a computed alias of the same SELECT"
            values.walk.findings.append(error("agg-alias-key", message, "Compute it in a subquery.", key.node))


def _only_columns(plan: LogicalPlan, columns: tuple[PlanColumn, ...]) -> LogicalPlan:
    if plan.columns == columns:
        return plan
    same = tuple((column.id, frozenset({column.id})) for column in columns)
    return Projection(node=plan.node, columns=columns, children=(plan,), sources=same, open=plan.open)


def _keys(group_keys: Iterable[GroupKey], items: list[GroupedItem], values: ExpressionReader) -> Iterator[Key]:
    items_by_id = {item.column.id: item for item in items}
    for key in group_keys:
        item = items_by_id.get(key.column.value.id) if key.column is not None else None
        node, value = (key.node, values.value_of(key.node)) if item is None else (item.node.unalias(), item.value)
        if (window := values.declared(node)) is not None and (item is None or _is_rewritten(key.node)):
            value = PlanValue(window, window, frozenset({window.id}), window.type)
        plan_key = _key(node, value)
        yield plan_key if key.always else replace(plan_key, always=False)


def _is_rewritten(node: exp.Expr) -> bool:
    """Whether the whole window takes the place of a part of it, by an alias, a place or ALL (`expand_windows`)."""
    listed = isinstance(node.parent, exp.Select) and not any(item.is_star for item in node.parent.expressions)
    return listed or isinstance(node.parent, exp.Group)


def _key(node: exp.Expr, value: PlanValue) -> Key:
    column = value.column
    lost_at = value.watermark_lost_at or (column.watermark_lost_at if column is not None else None)
    return Key(node, column, value.refs, value.constant, lost_at, value.type, value.inherits)


def read_windows(node: exp.Select, values: ExpressionReader) -> None:
    clause = node.args.get("group")
    for call in clause.find_all(exp.Anonymous, exp.Column) if clause is not None else ():
        if values.declared(call) is None and isinstance(call, exp.Anonymous) and call.name.lower() in WINDOWS:
            values.value_of(call)


def read_order(node: exp.Select, values: ExpressionReader) -> None:
    """Read the expressions of ORDER BY and its like: they may hold aggregates and OVER."""
    for name in ("order", "sort", "cluster"):
        clause = node.args.get(name)
        for ordered in clause.expressions if clause is not None else ():
            key = ordered.this if isinstance(ordered, exp.Ordered) else ordered
            if not isinstance(key, exp.Literal):
                values.value_of(key)
    qualify = node.args.get("qualify")
    if qualify is not None:
        values.value_of(qualify.this)


def _check_grouped(plan: LogicalPlan, keys: list[Key], items: list[GroupedItem], values: ExpressionReader) -> None:
    """Columns that are neither grouped by nor inside an aggregate."""
    if values.step.correlated:
        same = {_comparable_text(key.node, values) for key in keys}
        by_key = {
            id(item.node)
            for item in items
            if _is_grouped_by_item(item, keys) or _comparable_text(item.node, values) in same
        }
        values.walk.findings.extend(
            subqueries_beside_groups([item.node for item in items], values.step.correlated, by_key)
        )
    if plan.open or _is_misspelled(keys, values):
        return
    ids = _grouped_ids(keys, values)
    grouped = [*(key.node for key in keys), *(item.node for item in items if _is_grouped_by_item(item, keys))]
    for item in items:
        column = next(_ungrouped_beside_items(item.node, ids, grouped, values), None)
        if column is not None:
            dotted_name = _dotted_name(column)
            message = f"'{column.name}' is neither grouped by nor inside an aggregate"
            hint = f"Add it to the GROUP BY, or write max({dotted_name}) or any_value({dotted_name})."
            if not isinstance(column, exp.Column):
                message = f"{column.name}() is neither grouped by nor inside an aggregate"
                hint = "Compute it in an outer SELECT, from the window."
            values.walk.findings.append(error("agg-not-grouped", message, hint, column))
            return


def _check_behind(
    plan: LogicalPlan,
    node: exp.Select,
    keys: list[Key],
    items: list[GroupedItem],
    values: ExpressionReader,
) -> None:
    """HAVING and ORDER BY see the groups: keys, aggregates and the columns of the SELECT."""
    ids = _grouped_ids(keys, values)
    for clause, part in _clauses_behind(node):
        # Spark has the time no more, and knows a window by the name of its function alone (measured, Spark 4.1.4).
        calls = ((column, values.declared(column)) for column in part.find_all(exp.Column))
        ungrouped_window = next(
            (column for column, window in calls if window is not None and window.id not in ids), None
        )
        if ungrouped_window is not None:
            message = f"{clause} sees groups, and '{_dotted_name(ungrouped_window)}' is not grouped by"
            hint = (
                f"Add the window to the GROUP BY, or select max({_dotted_name(ungrouped_window)}) and use that column."
            )
            values.walk.findings.append(error("agg-not-grouped", message, hint, ungrouped_window))
            return
    if plan.open or node.args.get("distinct") is not None or _is_misspelled(keys, values):
        return
    names = {item.column.name for item in items}
    grouped = [*(key.node for key in keys), *(item.node for item in items)]
    for clause, part in _clauses_behind(node):
        loose = (c for c in _ungrouped_beside_items(part, ids, grouped, values) if not _is_name(c, names))
        column = next(loose, None)
        if column is not None:
            dotted_name = _dotted_name(column)
            message = f"{clause} sees groups, and '{dotted_name}' is neither grouped by nor inside an aggregate"
            hint = f"Add it to the GROUP BY, or write max({dotted_name}) or any_value({dotted_name})."
            values.walk.findings.append(error("agg-not-grouped", message, hint, column))


def _grouped_ids(keys: list[Key], values: ExpressionReader) -> set[int]:
    """The columns that a group has one value of; of several windows, which are reported, all."""
    windows = {column.id for column in values.step.windows.values()}
    computed_ids = values.computed_ids() if len(windows) > 1 else values.computed_ids() - windows
    return computed_ids | {key.column.id for key in keys if key.column is not None}


def _is_misspelled(keys: list[Key], values: ExpressionReader) -> bool:
    """Whether a key names a column that there is not, which is reported: it may be the one that seems to be missing."""
    columns = (column for key in keys for column in key.node.find_all(exp.Column))
    return any(values.resolve(column) is None and not values.walk.refs[id(column)].is_parameter for column in columns)


def _dotted_name(column: exp.Expr) -> str:
    return ".".join(part.name for part in column.parts) if isinstance(column, exp.Column) else column.name


def _clauses_behind(node: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    having = node.args.get("having")
    if having is not None:
        yield "HAVING", having.this
    for name in ("order", "sort", "cluster", "distribute"):
        clause = node.args.get(name)
        for item in clause.expressions if clause is not None else ():
            yield f"{name.upper()} BY", item.this if isinstance(item, exp.Ordered) else item


def _is_name(node: exp.Expr, names: set[str]) -> bool:
    """Whether it is a column of the SELECT by its name."""
    return isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in names


def _is_grouped_by_item(item: GroupedItem, keys: list[Key]) -> bool:
    """Whether an item is grouped by under its alias or place, or by ALL: not one that only uses the same columns."""
    own = item.node.unalias()
    return any(key.node is own for key in keys)


def _ungrouped_beside_items(
    node: exp.Expr, ids: set[int], grouped: Iterable[exp.Expr], values: ExpressionReader
) -> Iterator[exp.Expr]:
    """Yield what is neither a key nor made of keys, nor equal to an expression of the SELECT that is."""
    if next(_ungrouped(node, ids, set(), values), None) is not None:
        yield from _ungrouped(node, ids, {_comparable_text(one, values) for one in grouped}, values)


def _ungrouped(node: exp.Expr, ids: set[int], texts: set[str], values: ExpressionReader) -> Iterator[exp.Expr]:
    """What is neither a key nor made of keys: columns, and window_time(), which Spark computes before it groups."""
    inner = node
    while isinstance(inner, (exp.Filter, exp.WithinGroup)):
        inner = inner.this
    if is_aggregate(inner) or isinstance(node, (exp.Query, exp.Star)) or node.is_star:
        return
    if isinstance(node, exp.Column):
        if _is_ungrouped(node, ids, texts, values):
            yield node
        return
    fault = values.walk.faults.get(node.meta.get("start", -1))
    if fault is not None and fault.code == "unknown-function":
        # It may be a misspelled aggregate, and is reported already.
        return
    computed_column = values.value_of(node).column
    if (computed_column is not None and computed_column.id in ids) or (
        texts and _comparable_text(node, values) in texts
    ):
        return
    if isinstance(node, exp.Anonymous) and node.name.lower() == "window_time":
        yield node
        return
    for child in node.iter_expressions():
        yield from _ungrouped(child, ids, texts, values)


def _is_ungrouped(node: exp.Column, ids: set[int], texts: set[str], values: ExpressionReader) -> bool:
    column = values.resolve(node)
    readable_ids = values.read | {window.id for window in values.step.windows.values()}
    return (
        column is not None
        and column.column.id in readable_ids - ids
        and not (texts and _comparable_text(node, values) in texts)
    )


def _comparable_text(node: exp.Expr, values: ExpressionReader) -> str:
    return key_of(node, partial(_column_text, values))


def _column_text(values: ExpressionReader, column: exp.Column | exp.Identifier) -> str:
    """What a column refers to; of what is not known, the name."""
    if isinstance(column, exp.Identifier):
        return values.walk.part_names.get(id(column), column.name.lower())
    plan_name = values.resolve(column)
    if plan_name is not None and plan_name.column.is_certain:
        return f"#{plan_name.column.id}{[*path_of(plan_name)]}"
    return ".".join(part.name.lower() for part in column.parts)
