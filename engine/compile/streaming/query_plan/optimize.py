"""The plan as it runs: what Spark's optimiser does to it, as far as verdicts depend on it.

CTEs are where they are read, filters have moved into joins, outer joins whose NULL rows a filter removes are inner
joins, inner joins are ordered so that each has a condition, and unneeded columns are gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from engine.compile.sql.determinism import draws
from engine.compile.sql.query_nodes import computes, is_one_row
from engine.compile.streaming.query_plan.logical_plan import (
    NO_IDS,
    Aggregate,
    Condition,
    Distinct,
    Except,
    Filter,
    Generate,
    Intersect,
    Join,
    Limit,
    LogicalPlan,
    Over,
    PlanColumn,
    Projection,
    Ref,
    Side,
    UnionPlan,
    With,
    executed_children,
    in_place,
)
from engine.compile.streaming.query_plan.redundant_aggregates import (
    grouped_once,
    only_groups,
    without_group,
)

_Conditions = tuple[Condition, ...]


def as_it_runs(plan: LogicalPlan) -> LogicalPlan:
    return optimise(grouped_once(plan))


def optimise(plan: LogicalPlan, above: _Conditions = ()) -> LogicalPlan:
    """The plan with its conditions where they are applied; `above` move down into it."""
    while isinstance(plan, (With, Filter)) or (isinstance(plan, Ref) and executed_children(plan)):
        above += plan.conditions if isinstance(plan, Filter) else ()
        plan = in_place(plan) if isinstance(plan, Ref) else executed_children(plan)[0]
    if isinstance(plan, Join):
        return _join(plan, above)
    if isinstance(plan, Projection):
        sources_of = dict(plan.sources)
        down = tuple(c for c in above if c.refs <= sources_of.keys())
        stays = tuple(c for c in above if not c.refs <= sources_of.keys())
        child = optimise(plan.child, tuple(_below_projection(condition, sources_of, plan) for condition in down))
        return _with_filter(replace(plan, children=(child,)), stays)
    if isinstance(plan, Limit) and is_one_row(plan.node):
        return _with_filter(replace(plan, children=(_without_groups(optimise(plan.child)),)), above)
    if isinstance(plan, Distinct) or (isinstance(plan, Except) and plan.node.args.get("distinct")):
        down = tuple(c for c in above if not draws(c.node))
        children = optimise(plan.child, down), *map(optimise, plan.children[1:])
        return _with_filter(replace(plan, children=children), tuple(c for c in above if c not in down))
    return _with_filter(replace(plan, children=tuple(optimise(child) for child in plan.children)), above)


def _without_groups(plan: LogicalPlan, *, limited: bool = False, computed: bool = False) -> LogicalPlan:
    """Drop a grouping of what one row is taken of.

    A limit joins one below only where nothing is computed above or below that one (measured).
    """
    if isinstance(plan, Limit) and not computed:
        return replace(plan, children=(_without_groups(plan.child, limited=True),))
    if isinstance(plan, Projection) and not (limited and computes(plan.node)):
        below = _without_groups(plan.child, limited=limited, computed=computed or computes(plan.node))
        return replace(plan, children=(below,))
    return without_group(plan) if only_groups(plan) else plan


def _with_filter(plan: LogicalPlan, conditions: _Conditions) -> LogicalPlan:
    if not conditions:
        return plan
    node = conditions[0].node
    return Filter(node=node, columns=plan.columns, children=(plan,), conditions=conditions, open=plan.open)


def _below_projection(condition: Condition, sources_of: dict[int, frozenset[int]], plan: Projection) -> Condition:
    """A condition on the columns of a projection as one on what these are made of."""
    columns = {column.id: column for column in plan.child.columns}
    strict = condition.rejects_null and plan.keeps_null.isdisjoint(condition.refs)
    left_side, right_side = (
        _rewrite_side(condition.left_side, sources_of, columns),
        _rewrite_side(condition.right_side, sources_of, columns),
    )
    refs = NO_IDS.union(*(sources_of[i] for i in condition.refs))
    return replace(condition, refs=refs, left_side=left_side, right_side=right_side, rejects_null=strict)


def _rewrite_side(
    side: Side | None, sources_of: dict[int, frozenset[int]], below: dict[int, PlanColumn]
) -> Side | None:
    if side is None:
        return None
    refs = NO_IDS.union(*(sources_of[i] for i in side.refs))
    column = _alias_of(side.column, sources_of, below)
    terms = None
    if side.terms is not None:
        moved = [(term, _alias_of(term.column, sources_of, below)) for term in side.terms]
        if all(term.column is None or other is not None for term, other in moved):
            terms = tuple(replace(term, column=other) for term, other in moved)
    return Side(refs, column, terms, side.type)


def _alias_of(
    column: PlanColumn | None, sources_of: dict[int, frozenset[int]], below: dict[int, PlanColumn]
) -> PlanColumn | None:
    """The column that this one is another name of (an expression would have lost the watermark)."""
    sources = sources_of.get(column.id, NO_IDS) if column is not None else NO_IDS
    other = below.get(next(iter(sources))) if len(sources) == 1 else None
    same = column is not None and other is not None and other.watermark == column.watermark
    return other if same else None


def _join(plan: Join, above: _Conditions) -> LogicalPlan:
    kind = _kind(plan, above)
    plan = replace(plan, kind=kind)
    if kind == "inner":
        items, conditions = _items(plan, above)
        if len(items) > 2 and not any(item.lateral for item in items):  # noqa: PLR2004
            return _join_in_order(items, conditions)
        return _inner(plan, plan.left_side, plan.right_side, plan.conditions + above)
    left_ids, right_ids = plan.left_side.ids, plan.right_side.ids
    on_left = tuple(c for c in plan.conditions if c.refs and c.refs <= left_ids and kind in {"right", "semi"})
    right_moves = kind in {"left", "semi", "anti"}
    on_right = tuple(c for c in plan.conditions if c.refs and c.refs <= right_ids and right_moves)
    down_left = tuple(c for c in above if c.refs <= left_ids and kind in {"left", "semi", "anti"})
    down_right = tuple(c for c in above if c.refs <= right_ids and kind == "right")
    children = optimise(plan.left_side, on_left + down_left), optimise(plan.right_side, on_right + down_right)
    own = tuple(c for c in plan.conditions if c not in on_left and c not in on_right)
    stays = tuple(c for c in above if c not in down_left and c not in down_right)
    return _with_filter(
        replace(plan, conditions=own, children=children, uses=plan.uses if plan.lateral else NO_IDS), stays
    )


def _inner(plan: Join, left_plan: LogicalPlan, right_plan: LogicalPlan, conditions: _Conditions) -> Join:
    children = (
        optimise(left_plan, _conditions_within(conditions, left_plan)),
        optimise(right_plan, _conditions_within(conditions, right_plan)),
    )
    own = tuple(c for c in conditions if not c.refs or not (c.refs <= left_plan.ids or c.refs <= right_plan.ids))
    return replace(plan, kind="inner", conditions=own, children=children, uses=plan.uses if plan.lateral else NO_IDS)


def _kind(plan: Join, above: _Conditions) -> str:
    """What an outer join becomes when a filter above drops its NULL rows."""
    strict = NO_IDS.union(*(c.refs for c in above if c.rejects_null))
    left_is_strict, right_is_strict = bool(strict & plan.left_side.ids), bool(strict & plan.right_side.ids)
    if plan.kind == "left" and right_is_strict:
        return "inner"
    if plan.kind == "right" and left_is_strict:
        return "inner"
    if plan.kind == "full" and (left_is_strict or right_is_strict):
        return "inner" if left_is_strict and right_is_strict else ("left" if left_is_strict else "right")
    return plan.kind


def _items(plan: LogicalPlan, above: _Conditions) -> tuple[list[Join], _Conditions]:
    """The relations that inner joins connect, from the left, and all conditions on them."""
    if isinstance(plan, Filter) and isinstance(plan.child, Join):
        return _items(plan.child, above + plan.conditions)
    if isinstance(plan, Join) and _kind(plan, above) == "inner":
        items, conditions = _items(plan.left_side, above + plan.conditions)
        return [
            *items,
            replace(plan, children=(plan.right_side, plan.right_side), streaming=plan.right_side.streaming),
        ], conditions
    first = Join(node=plan.node, children=(plan, plan))
    return [first], above


def _join_in_order(items: list[Join], conditions: _Conditions) -> LogicalPlan:
    """Spark's order: next comes the first relation that has a condition with what is joined already."""
    first, *rest = items
    joined: LogicalPlan = optimise(first.left_side, _conditions_within(conditions, first.left_side))
    while rest:
        ids = joined.ids
        next_item = next((item for item in rest if _is_connected(item, ids, conditions)), rest[0])
        rest.remove(next_item)
        joined_ids = ids | next_item.left_side.ids
        spans = tuple(
            c
            for c in conditions
            if c.refs <= joined_ids and not c.refs <= ids and not c.refs <= next_item.left_side.ids
        )
        right = optimise(next_item.left_side, _conditions_within(conditions, next_item.left_side))
        joined = Join(
            node=next_item.node,
            columns=joined.columns + right.columns,
            children=(joined, right),
            conditions=spans,
            open=joined.open or right.open,
        )
    return joined


def _is_connected(item: Join, ids: frozenset[int], conditions: _Conditions) -> bool:
    own = item.left_side.ids
    return any(c.refs <= ids | own and not c.refs <= ids and not c.refs <= own for c in conditions)


def _conditions_within(conditions: _Conditions, plan: LogicalPlan) -> _Conditions:
    ids = plan.ids
    return tuple(c for c in conditions if c.refs and c.refs <= ids)


def needed_columns(
    plan: LogicalPlan, columns: frozenset[int]
) -> Iterator[tuple[LogicalPlan, tuple[frozenset[int], ...]]]:
    """Each step with the columns that it needs of each child, when `columns` are needed of the plan."""
    of_children = tuple(_needed_of_child(plan, child, columns) for child in plan.children)
    yield plan, of_children
    for child, ids in zip(plan.children, of_children, strict=True):
        yield from needed_columns(child, ids)


def _needed_of_child(plan: LogicalPlan, child: LogicalPlan, columns: frozenset[int]) -> frozenset[int]:
    ids = child.ids
    if isinstance(plan, (Distinct, Except, Intersect)):
        return ids
    if isinstance(plan, UnionPlan):
        names = [column.id for column in plan.columns]
        return frozenset(c.id for name, c in zip(names, child.columns, strict=False) if name in columns)
    if isinstance(plan, (Projection, Aggregate, Generate)):
        sources_of = dict(plan.renamed if isinstance(plan, Generate) else plan.sources)
        own = NO_IDS.union(*(sources_of[i] for i in columns if i in sources_of), plan.uses)
        if isinstance(plan, Aggregate):
            own = own.union(*(key.refs for key in plan.keys))
        else:
            own |= columns - sources_of.keys()
        return own & ids
    if isinstance(plan, Over):
        return (columns | plan.uses) & ids
    return (columns | plan.uses | _condition_refs(plan)) & ids


def _condition_refs(plan: LogicalPlan) -> frozenset[int]:
    conditions = plan.conditions if isinstance(plan, (Filter, Join)) else ()
    return NO_IDS.union(*(c.refs for c in conditions))
