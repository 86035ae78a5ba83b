"""The order of aggregates in a SELECT list, which is their order in Spark's state.

A state is continued with the order it began with: the items that run name the aggregates first as they are stored.
Tables are written by name, so nobody sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from sqlglot import exp

from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.select_items import first_places
from engine.compile.stateful.blocks import Block, Meaning, Selected, blocks

_Edit = tuple[int, int, str]
# Combinations of orders that are tried.
_MANY = 16


def reorderings(sql: str, began: Meaning, now: Meaning) -> list[str]:
    """Return the query with its SELECT lists in the order of the state, as far as that is known without Spark.

    Spark may compute the items of a SELECT above a group in the group itself (CollapseProject): which of these texts
    gives the order of the state is for Spark to say. `sql` is the text of `now`, which has the blocks of `began`.
    Empty: no order of the items gives it.
    """
    groups, came = _groups(now), _groups(began)
    if len(groups) != len(came) or any(group.select is None for group in groups):
        return []
    orders: dict[str, None] = {}
    for stored_orders in islice(product(*(_stored_orders(group, began) for group in came)), _MANY):
        for edits in _choices(sql, groups, now.outer, stored_orders):
            orders[_apply_edits(sql, edits)] = None
    return list(orders)


def aggregate_orders(query: Meaning) -> list[tuple[str, ...]]:
    """The aggregates of each group in the order of its SELECT, and in that of the outermost SELECT."""
    return [*(tuple(one.key for one in group.aggregates) for group in _groups(query)), _outermost(query)]


def _stored_orders(group: Block, began: Meaning) -> list[tuple[str, ...]]:
    """The orders in which the state of a group may hold its aggregates."""
    own = tuple(one.key for one in group.aggregates)
    outermost = _outermost(began)
    return [own, outermost] if outermost != own and sorted(outermost) == sorted(own) else [own]


def _choices(
    sql: str, groups: list[Block], outer: tuple[Selected, ...], stored_orders: tuple[tuple[str, ...], ...]
) -> Iterator[list[_Edit]]:
    """The edits that give an order: of the SELECTs that group, of those above them, of both."""
    inner, above = list[_Edit](), list[_Edit]()
    for group, order in zip(groups, stored_orders, strict=True):
        aggregate_keys = [one.key for one in group.aggregates]
        if sorted(order) != sorted(aggregate_keys) or group.select is None:
            return
        own = [*_edits(sql, group.select, order)]
        outer_edits = [e for one in outer if _names(one, order) for e in _edits(sql, one, order)]
        if not own and not outer_edits and aggregate_keys != list(order):
            return
        inner += own
        above += outer_edits
    yield from (edits for edits in (inner, inner + above, above) if edits)


def _names(select: Selected, keys: tuple[str, ...]) -> bool:
    """Whether a SELECT above a group names aggregates of this one."""
    return any(key in keys for item in select.items for key in item)


def _groups(query: Meaning) -> list[Block]:
    return [block for block in blocks(query.block) if block.aggregates]


def _outermost(query: Meaning) -> tuple[str, ...]:
    """The aggregates in the order of the outermost SELECT."""
    return tuple(dict.fromkeys(call for _, column in query.columns for call in column.calls))


def _edits(sql: str, select: Selected, stored_order: tuple[str, ...]) -> Iterator[_Edit]:
    order = _order(list(stored_order), select)
    spans = _spans(sql, select.node) if order is not None else None
    if order is not None and spans is not None:
        yield from ((*span, sql[slice(*spans[index])]) for span, index in zip(spans, order, strict=True))
        yield from _ordinals(select, order)


def _apply_edits(sql: str, edits: list[_Edit]) -> str:
    for start, end, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _ordinals(select: Selected, order: list[int]) -> list[_Edit]:
    """The positions in a GROUP BY, after the items have moved."""
    group = select.node.args.get("group")
    literals = [item for item in (group.expressions if group is not None else ()) if isinstance(item, exp.Literal)]
    places = [(item.meta["start"], item.meta["end"] + 1, int(item.this) - 1) for item in literals if item.is_int]
    return [(start, end, str(order.index(place) + 1)) for start, end, place in places]


def _order(stored_order: list[str], select: Selected) -> list[int] | None:
    """The items in an order that names the aggregates first as they are stored."""
    if not _may_move(select):
        return None
    remaining, order, placed = list(range(len(select.items))), list[int](), 0
    while remaining:
        ready = (i for i in remaining if select.needs[i] <= {*order})
        fits = next((i for i in ready if _continues(select.items[i], stored_order, placed)), None)
        if fits is None:
            return None
        remaining.remove(fits)
        order.append(fits)
        placed = (
            max(placed, *(stored_order.index(key) + 1 for key in select.items[fits])) if select.items[fits] else placed
        )
    rest = [key for key in select.rest if key not in stored_order[:placed]]
    return order if not select.rest or rest == stored_order[placed:] else None


def _continues(item: tuple[str, ...], stored_order: list[str], placed: int) -> bool:
    fresh = [key for key in item if key not in stored_order[:placed]]
    return fresh == stored_order[placed : placed + len(fresh)]


def _may_move(selected: Selected) -> bool:
    """Whether nothing refers to the items of a SELECT by their place."""
    select = selected.node
    if select.args.get("distinct") is not None or any(item.is_star for item in select.expressions):
        return False
    if any(isinstance(part, exp.Query) for item in select.expressions for part in item.walk()):
        return False
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None and group.args.get("all"):
        return False
    if order is not None and any(isinstance(item.this, exp.Literal) for item in order.expressions):
        return False
    above = select.parent
    while above is not None:
        if isinstance(above, exp.SetOperation) or (isinstance(above, (exp.CTE, exp.Subquery))
                                                   and above.alias_column_names):  # fmt: skip
            return False
        above = above.parent
    return True


def _spans(sql: str, select: exp.Select) -> list[tuple[int, int]] | None:
    """Where the items of a SELECT are in the text."""
    starts = [n.meta["start"] for item in select.expressions for n in item.walk() if "start" in n.meta]
    if not starts:
        return None
    tokens = tokenize(sql)
    words = [i for i, token in enumerate(tokens) if token.token_type is TokenType.SELECT and token.start < min(starts)]
    if not words:
        return None
    places = first_places(tokens[words[-1] :])
    return [(place.start, place.end) for place in places] if len(places) == len(select.expressions) else None
