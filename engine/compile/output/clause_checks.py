"""Where aggregates, functions with OVER and those that make rows may be in a query: Spark rejects them elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from sqlglot import exp

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.parse import first_offset
from engine.compile.sql.query_nodes import QueryNodes, relations

_WHERE = "Filter the result: HAVING for groups, or an outer SELECT."
_GROUP = "Group by columns, or compute the value in a subquery and group by it."
_NESTED = "Compute the inner aggregate in a subquery, or take one of them out."
_CHANCE = "Draw the value in a subquery, and aggregate outside."
_OVER = "Compute it in a subquery, and filter or group outside."
_ROWS = "Compute the rows in a subquery, or by LATERAL VIEW explode(..) t AS x, and use x."
_BEFORE = "Compute it in a subquery, and read that."
_SORTED = {"order": "ORDER BY", "sort": "SORT BY", "distribute": "DISTRIBUTE BY", "cluster": "CLUSTER BY"}
_TESTED = {"where": "WHERE", "on": "ON", "group": "GROUP BY"}
_CLAUSES = {"laterals": "LATERAL VIEW", "from_": "FROM"}
# What a clause may hold that is one itself.
_INSIDE = (exp.Values, exp.Pivot, exp.Join)
_INSIDE_CLAUSES = {
    (exp.Values, ""): "VALUES", (exp.Pivot, ""): "PIVOT", (exp.Join, ""): "FROM", (exp.Join, "on"): "on",
}  # fmt: skip
_NESTING = {"expressions", "having", "order", "PIVOT"}
_ROWLESS = {"expressions", "LATERAL VIEW", "FROM"}
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_AGGREGATE, _WINDOW, _MAKES_ROWS, _RANDOMLY = "aggregate", "window", "rows", "chance"
_SHOWN = {
    _AGGREGATE: "an aggregate", _WINDOW: "a function with OVER", _MAKES_ROWS: "a function that makes rows",
    _RANDOMLY: "a random value",
}  # fmt: skip


_KINDS = (
    (exp.Window, _WINDOW),
    # posexplode() and its like are explode(), too.
    ((exp.Explode, exp.Inline, exp.Stack), _MAKES_ROWS),
    ((exp.Rand, exp.Randn, exp.Randstr, exp.Shuffle, exp.Uniform, exp.Uuid), _RANDOMLY),
)
_KINDS_BY_NAME = {
    **dict.fromkeys(("inline_outer", "json_tuple", "variant_explode", "variant_explode_outer"), _MAKES_ROWS),
    **dict.fromkeys(
        (
            "input_file_name", "java_method", "monotonically_increasing_id", "reflect", "spark_partition_id",
            "try_reflect",
        ),
        _RANDOMLY,
    ),
}  # fmt: skip


_SOUGHT: tuple[type[exp.Expr], ...] = (
    exp.AggFunc, exp.Anonymous, exp.Window, exp.Explode, exp.Inline, exp.Stack, exp.Rand, exp.Randn, exp.Randstr,
    exp.Shuffle, exp.Uniform, exp.Uuid,
)  # fmt: skip


class _Call(Struct, frozen=True):
    """A function that is not allowed everywhere: what it is, the clause it is in, the item of that, and how deep."""

    node: exp.Expr
    kind: str
    clause: str
    item: exp.Expr
    depth: int


def misplaced_calls(nodes: QueryNodes, key_of: Callable[[exp.Expr], str]) -> Iterator[QueryFinding]:
    """The first misplaced function of each clause of each SELECT; `key_of` is that of the bound query."""
    selects: dict[int, tuple[exp.Select, list[_Call]]] = {}
    for node in nodes.every(*_SOUGHT):
        kind = _kind(node)
        if kind and (place := _place(node)) is not None:
            select, clause, item, depth = place
            selects.setdefault(id(select), (select, []))[1].append(_Call(node, kind, clause, item, depth))
    for select, all_calls in selects.values():
        calls = [call for call in all_calls if not _of_groups_around(select, call)]
        yield from _misplaced_in_select(select, sorted(calls, key=_order) if len(calls) > 1 else calls, key_of)


def _of_groups_around(select: exp.Select, call: _Call) -> bool:
    """Return whether an aggregate in WHERE is of the groups around: Spark computes it there (UpdateOuterReferences)."""
    above = select.parent if call.kind == _AGGREGATE and call.clause == "where" else None
    while above is not None and not isinstance(above, (exp.Having, exp.Select)):
        above = above.parent
    if not isinstance(above, exp.Having):
        return False
    read = list(relations(select))
    names = {item.alias_or_name.lower() for item in read}
    columns = list(call.node.find_all(exp.Column))
    return bool(columns) and all(c.table.lower() not in names if c.table else not read for c in columns)


def _order(call: _Call) -> tuple[int, int]:
    return call.depth, first_offset(call.node)


def _kind(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        kind = _KINDS_BY_NAME.get(node.name.lower(), "")
    else:
        kind = next((kind for types, kind in _KINDS if isinstance(node, types)), "")
    return kind or (_AGGREGATE if is_aggregate(node) else "")


def _place(node: exp.Expr) -> tuple[exp.Select, str, exp.Expr, int] | None:
    """The SELECT that a call belongs to, its clause, the item of that, and how deep in it; None behind a UNION."""
    nearest: tuple[str, exp.Expr] | None = None
    child, above, depth = node, node.parent, 0
    while above is not None and (child.arg_key == "pivots" or not isinstance(above, exp.Query)):
        if nearest is None and isinstance(above, _INSIDE):
            nearest = _INSIDE_CLAUSES.get((type(above), child.arg_key or ""), _INSIDE_CLAUSES[type(above), ""]), child
        child, above, depth = above, above.parent, depth + 1
    if not isinstance(above, exp.Select):
        return None
    key = child.arg_key or ""
    clause, item = nearest or (_CLAUSES.get(key, key), child)
    return above, clause, item, depth


def _misplaced_in_select(
    select: exp.Select, calls: list[_Call], key_of: Callable[[exp.Expr], str]
) -> Iterator[QueryFinding]:
    for clause, clause_name in _TESTED.items():
        hint = _GROUP if clause == "group" else _WHERE
        yield from _first_of_clause(calls, clause, clause_name, {_WINDOW: _OVER, _AGGREGATE: hint})
    yield from _first_of_clause(calls, "having", "HAVING", {_WINDOW: _OVER})
    for clause in ("LATERAL VIEW", "FROM"):
        yield from _first_of_clause(calls, clause, clause, {_WINDOW: _BEFORE, _AGGREGATE: _BEFORE})
    yield from _first_of_clause(calls, "VALUES", "VALUES", dict.fromkeys(_SHOWN, _BEFORE))
    yield from _first_of_clause(calls, "PIVOT", "PIVOT", {_MAKES_ROWS: _BEFORE})
    for item in {id(call.item): call.item for call in calls if call.clause in _NESTING}.values():
        yield from _nested_calls([call for call in calls if call.item is item])
    yield from _generators_in_expressions(calls)
    yield from _calls_behind_from(select, calls)
    yield from _sorted_behind_having(calls, key_of)
    yield from _drawn_keys(select, calls)


def _first_of_clause(
    calls: Iterable[_Call], clause: str, clause_name: str, hints: dict[str, str]
) -> Iterator[QueryFinding]:
    """The first call of each item of a clause (each join has its own ON) that is of one of these kinds."""
    items: dict[int, _Call] = {}
    for call in calls:
        if call.clause == clause and call.kind in hints:
            items.setdefault(id(call.item), call)
    for call in items.values():
        yield _fault(f"{_SHOWN[call.kind]} is in {clause_name}", hints[call.kind], call.node, call.item)


def _nested_calls(calls: list[_Call]) -> Iterator[QueryFinding]:
    """An aggregate that holds another one, a function with OVER or a random value."""
    for outer in (call for call in calls if call.kind == _AGGREGATE and len(calls) > 1):
        around = outer.node.parent if isinstance(outer.node.parent, exp.Filter) else outer.node
        inner_calls = [call for call in calls if call is not outer and _is_within(call.node, around or outer.node)]
        inside = {call.kind: call.node for call in reversed(inner_calls) if _is_within(call.node, outer.node)}
        if _AGGREGATE in inside:
            yield _fault("an aggregate is inside another one", _NESTED, inside[_AGGREGATE])
            return
        if _WINDOW in inside:
            yield _fault("a function with OVER is in an aggregate", _OVER, inside[_WINDOW])
            return
        chance = next((call.node for call in inner_calls if call.kind == _RANDOMLY), None)
        if chance is not None:
            yield _fault("an aggregate takes random values", _CHANCE, chance, outer.node)
            return


def _is_within(node: exp.Expr, outer: exp.Expr) -> bool:
    above: exp.Expr | None = node
    while above is not None and above is not outer:
        above = above.parent
    return above is outer


def _generators_in_expressions(calls: list[_Call]) -> Iterator[QueryFinding]:
    """`explode(..) + 1`: what makes rows is an item of its own."""
    reported: set[int] = set()
    for call in calls:
        if call.kind != _MAKES_ROWS or call.clause not in _ROWLESS:
            continue
        top = call.item.this if isinstance(call.item, (exp.Alias, exp.Aliases)) else call.item
        # Spark takes it inside of a function with OVER.
        if call.node is top or isinstance(top, exp.Window) or id(top) in reported or _is_read_by_from(call.node):
            continue
        reported.add(id(top))
        yield _fault("a function that makes rows is inside an expression", _ROWS, call.node)


def _is_read_by_from(node: exp.Expr) -> bool:
    """Whether a function that makes rows is what FROM reads."""
    return isinstance(node.parent, (exp.Table, exp.Lateral))


def _drawn_keys(select: exp.Select, calls: list[_Call]) -> Iterator[QueryFinding]:
    """Grouping sets over random values, which Spark draws again."""
    chance = next((call for call in calls if call.clause == "group" and call.kind == _RANDOMLY), None)
    if chance is not None and chance.item.find(*_SETS) is not None:
        yield _fault("a grouping set has a random value as key", _CHANCE, chance.node, select)


def _calls_behind_from(select: exp.Select, calls: list[_Call]) -> Iterator[QueryFinding]:
    """What WHERE, HAVING, ORDER BY and its like may not hold: the first of it."""
    for clause, clause_name in {"where": "WHERE", "having": "HAVING", **_SORTED}.items():
        for call in (call for call in calls if call.clause == clause):
            if call.kind == _MAKES_ROWS:
                yield _fault(f"a function that makes rows is in {clause_name}", _ROWS, call.node)
                return
            if clause in {"order", "sort"} and call.kind == _AGGREGATE and not _has_groups(select, calls):
                message = f"an aggregate is in {clause_name} of a query that does not group"
                yield _fault(message, _GROUP, call.node)
                return
            if clause in _SORTED and call.kind == _WINDOW:
                message = f"a function with OVER is in {clause_name}"
                yield _fault(message, "Give it an alias in the SELECT, and sort by the alias.", call.node)
                return


def _sorted_behind_having(calls: list[_Call], key_of: Callable[[exp.Expr], str]) -> Iterator[QueryFinding]:
    """Yield ORDER BY by an aggregate that is not selected, behind a HAVING with one that is not either.

    For HAVING Spark computes its aggregate beside the SELECT and takes it out again (ResolveAggregateFunctions).
    """
    aggregates = [call for call in calls if call.kind == _AGGREGATE]
    if not any(call.clause == "having" for call in aggregates):
        return
    selected = {key_of(call.node) for call in aggregates if call.clause == "expressions"}
    unselected = [call for call in aggregates if key_of(call.node) not in selected]
    having = next((call for call in unselected if call.clause == "having"), None)
    order = next((call for call in unselected if call.clause in {"order", "sort"}), None)
    if having is not None and order is not None:
        message = "ORDER BY and HAVING have aggregates that the SELECT has not"
        yield _fault(message, "Select the one that sorts, under an alias, and sort by that.", order.node, order.item)


def _has_groups(select: exp.Select, calls: list[_Call]) -> bool:
    clauses = (select.args.get("group"), select.args.get("having"))
    return any(clauses) or any(call.clause == "expressions" and call.kind == _AGGREGATE for call in calls)


def _fault(message: str, hint: str, node: exp.Expr, around: exp.Expr | None = None) -> QueryFinding:
    return QueryFinding("misplaced-expression", message, hint, first_offset(node) or first_offset(around or node))
