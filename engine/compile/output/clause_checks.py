"""Where aggregates and functions with OVER may stand in a query: Spark refuses them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.compile.columns import ColumnFault
from engine.compile.sql.aggregates import has_aggregate, is_aggregate
from engine.compile.sql.parse import first_offset

_WHERE = "Filter the result: HAVING for groups, or an outer SELECT."
_GROUP = "Group by columns, or compute the value in a subquery and group by it."
_NESTED = "Compute the inner aggregate in a subquery, or take one of them out."
_CHANCE = "Draw the value in a subquery, and aggregate outside."
_OVER = "Compute it in a subquery, and filter or group outside."
_ROWS = "Compute the rows in a subquery, or by LATERAL VIEW explode(..) t AS x, and use x."
_MAKING = (exp.Explode, exp.Inline, exp.Stack)  # posexplode() and its like are explode(), too
_MAKING_NAMES = {"inline_outer", "json_tuple", "variant_explode", "variant_explode_outer"}
_CLAUSES = {
    "where": "WHERE", "having": "HAVING", "order": "ORDER BY", "sort": "SORT BY", "distribute": "DISTRIBUTE BY",
    "cluster": "CLUSTER BY",
}  # fmt: skip
_SORTED = {"order", "sort", "distribute", "cluster"}
_KEY = "Take the key into the SELECT, or filter in an outer SELECT."
# What Spark's parser makes an expression of at once, or may: every other call is a function that it looks up later.
_AT_ONCE = (
    exp.Connector, exp.Cast, exp.TryCast, exp.Case, exp.Struct, exp.Substring, exp.StrPosition, exp.RegexpLike,
    exp.Exists, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentUser, exp.Overlay,
)  # fmt: skip
_RANDOM = (exp.Rand, exp.Randn, exp.Randstr, exp.Shuffle, exp.Uniform, exp.Uuid)
_RANDOM_NAMES = {
    "input_file_name", "java_method", "monotonically_increasing_id", "reflect", "spark_partition_id", "try_reflect",
}  # fmt: skip


def misplaced(tree: exp.Expr) -> Iterator[ColumnFault]:
    """The first misplaced function of each clause of each SELECT."""
    for select in tree.find_all(exp.Select):
        yield from _clause(select.args.get("where"), "WHERE", _WHERE)
        for join in select.args.get("joins") or ():
            yield from _clause(join.args.get("on"), "ON", _WHERE)
        yield from _clause(select.args.get("group"), "GROUP BY", _GROUP)
        yield from _clause(select.args.get("having"), "HAVING", _WHERE, aggregates=True)
        for item in (*select.expressions, *_sorts(select)):
            yield from _nested(item)
            yield from _generating(item)
        yield from _behind(select)
        yield from _drawn_keys(select.args.get("group"))
        yield from _unselected_keys(select)


def _clause(clause: exp.Expr | None, name: str, hint: str, *, aggregates: bool = False) -> Iterator[ColumnFault]:
    for node in _own(clause):
        if isinstance(node, exp.Window):
            yield _fault(f"a function with OVER is in {name}", _OVER, node)
            return
        if not aggregates and is_aggregate(node):
            yield _fault(f"an aggregate is in {name}", hint, node)
            return


def _nested(item: exp.Expr) -> Iterator[ColumnFault]:
    for node in _own(item):
        if is_aggregate(node):
            inner = next((n for n in _own(node) if n is not node and is_aggregate(n)), None)
            if inner is not None:
                yield _fault("an aggregate is inside another one", _NESTED, inner)
                return
            over = next((n for n in _own(node) if isinstance(n, exp.Window)), None)
            if over is not None:
                yield _fault("a function with OVER is in an aggregate", _OVER, over)
                return
            around = node.parent if isinstance(node.parent, exp.Filter) else node
            chance = next((n for n in _own(around) if draws(n)), None)
            if chance is not None:
                yield _fault("an aggregate takes random values", _CHANCE, chance, node)
                return


def _generating(item: exp.Expr) -> Iterator[ColumnFault]:
    """`explode(..) + 1`: what makes rows is an item of its own."""
    top = item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item
    for node in _own(top):
        # Spark takes it inside of a function with OVER.
        if node is not top and _generates(node) and not isinstance(top, exp.Window):
            yield _fault("a function that makes rows is inside an expression", _ROWS, node)
            return


def _drawn_keys(group: exp.Expr | None) -> Iterator[ColumnFault]:
    """Grouping sets over random values, which Spark draws anew."""
    if group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None:
        chance = next((node for node in _own(group) if draws(node)), None)
        if chance is not None:
            yield _fault("a grouping set has a random value as key", _CHANCE, chance, group.parent)


def _behind(select: exp.Select) -> Iterator[ColumnFault]:
    """What HAVING, WHERE and ORDER BY may not hold."""
    for name, shown in _CLAUSES.items():
        for node in _own(select.args.get(name)):
            if _generates(node):
                yield _fault(f"a function that makes rows is in {shown}", _ROWS, node)
                return
            if name in {"order", "sort"} and is_aggregate(node) and not _groups(select):
                yield _fault(f"an aggregate is in {shown} of a query that does not group", _GROUP, node)
                return
            if name in _SORTED and isinstance(node, exp.Window):
                message = f"a function with OVER is in {shown}"
                yield _fault(message, "Give it a name in the SELECT, and sort by that.", node)
                return


def _unselected_keys(select: exp.Select) -> Iterator[ColumnFault]:
    """HAVING behind grouping sets: with a function in it, Spark knows the keys of the SELECT alone (measured)."""
    group, having = select.args.get("group"), select.args.get("having")
    if group is None or having is None or group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None:
        return
    if not any(_called(node) for node in _own(having)):
        return
    named = {item.alias_or_name.lower() for item in select.expressions}
    keys = {column.name.lower() for column in group.find_all(exp.Column)}
    for node in having.walk(prune=lambda node: isinstance(node, exp.Query) or _aggregates(node)):
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in keys - named:
            message = f"HAVING over grouping sets has a function in it, and '{node.name}' is not in the SELECT"
            yield _fault(message, _KEY, node)
            return


def _aggregates(node: exp.Expr) -> bool:
    grouping = isinstance(node, exp.Anonymous) and node.name.lower() == "grouping"
    return is_aggregate(node) and not grouping and not isinstance(node, exp.Grouping)


def _called(node: exp.Expr) -> bool:
    if isinstance(node, exp.If) and isinstance(node.parent, exp.Case):
        return False
    return isinstance(node, (exp.Func, exp.Between, exp.IntDiv)) and not isinstance(node, _AT_ONCE)


def _groups(select: exp.Select) -> bool:
    clauses = (select.args.get("group"), select.args.get("having"))
    return any(clauses) or any(has_aggregate(item) for item in select.expressions)


def _generates(node: exp.Expr) -> bool:
    return isinstance(node, _MAKING) or (isinstance(node, exp.Anonymous) and node.name.lower() in _MAKING_NAMES)


def draws(node: exp.Expr) -> bool:
    """Whether a call gives another value for each row, whatever the row holds."""
    return isinstance(node, _RANDOM) or (isinstance(node, exp.Anonymous) and node.name.lower() in _RANDOM_NAMES)


def _sorts(select: exp.Select) -> Iterator[exp.Expr]:
    clauses = (select.args.get("having"), select.args.get("order"))
    yield from (clause for clause in clauses if clause is not None)


def _fault(message: str, hint: str, node: exp.Expr, around: exp.Expr | None = None) -> ColumnFault:
    return ColumnFault("clause", message, hint, first_offset(node) or first_offset(around or node))


def _own(clause: exp.Expr | None) -> Iterator[exp.Expr]:
    """The nodes of a clause without those of queries inside it."""
    if clause is not None:
        yield from clause.walk(prune=lambda node: isinstance(node, exp.Query))
