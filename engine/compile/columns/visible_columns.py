"""What DISTINCT and set operations ask of columns, and which ORDER BY and HAVING see behind them and grouping sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope, OutputColumns
from engine.compile.columns.type_mismatch import CODE
from engine.compile.columns.walk import Walk, path
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.types.comparable_types import family, is_ordered

_SORTS = ("order", "sort", "cluster", "distribute")
SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_HINT = "Take the key into the SELECT, or filter and sort in an outer SELECT."
_TIMES = ("date", "timestamp", "timestamp_ntz")


def check_distinguishable(walk: Walk, node: exp.Expr, output: OutputColumns, word: str) -> None:
    """Report columns whose equal values Spark cannot find: maps and variants, also inside others."""
    first = next(iter(node.find_all(exp.Select)), node)
    for column in output.columns:
        type_ = column.value.type
        if type_ is not None and family(type_) and not is_ordered(type_):
            at = first.expressions[column.item] if 0 <= column.item < len(first.expressions) else first
            message = f"{word} compares rows, but '{column.name}' is {type_}, which cannot be compared"
            walk.fault(CODE, message, "Remove the column, or use to_json(..) of it.", at, node)


def check_order_by_output(walk: Walk, node: exp.Select, output: OutputColumns) -> None:
    """Report an ORDER BY behind DISTINCT that names more than the SELECT gives."""
    if output.open:
        return
    for item in _sort_items(node):
        if any(is_aggregate(part) for part in item.walk(prune=lambda part: isinstance(part, exp.Query))):
            message = "ORDER BY after DISTINCT contains an aggregate"
            walk.fault("misplaced-expression", message, "Give it an alias in the SELECT, and sort by the alias.", item)
            continue
    check_order_by_columns(walk, node, output, "DISTINCT")


def check_order_by_columns(walk: Walk, node: exp.Expr, output: OutputColumns, word: str) -> None:
    """Report columns of an ORDER BY that are not among those of the query."""
    if output.open:
        return
    names = {column.name.lower() for column in output.columns}
    certain = all(column.named for column in output.columns)
    for column in (column for item in _sort_items(node) for column in item.find_all(exp.Column)):
        parts = [part.name for part in path(column)[0]]
        if column.find_ancestor(exp.Query) is not node or not parts:
            continue
        quoted = any(part.args.get("quoted") for part in column.parts)
        if not names & {part.lower() for part in parts[:2]} and (certain or not quoted):
            dotted_name = ".".join(parts)
            message = f"ORDER BY after {word} can use columns of the SELECT only, and '{dotted_name}' is not one"
            walk.fault(
                "misplaced-expression", message, "Add it to the SELECT, or sort by a column of the SELECT.", column
            )


def check_unselected_keys(walk: Walk, select: exp.Select, output: OutputColumns, scope: ColumnScope) -> None:
    """Report keys that HAVING or ORDER BY uses and the SELECT does not give.

    Measured: ORDER BY never sees them, but those that HAVING brought. HAVING sees them unless a function is in it; a
    cast, CASE or an operator is none.
    """
    group, having = select.args["group"], select.args.get("having")
    sorts = [select.args[key] for key in _SORTS if select.args.get(key) is not None]
    if output.open or not (having or sorts) or group.find(*SETS) is None:
        return
    selected = {column.name.lower() for column in output.columns}
    keys, key_columns = _group_key_columns(walk, select)
    if having is not None:
        column = next(_unselected_columns(walk, [having], keys - selected), None)
        if column is not None and any(_is_looked_up_again(walk, node, scope) for node in _own_nodes(having)):
            message = f"HAVING over grouping sets has a function in it, and '{column.name}' is not in the SELECT"
            walk.fault("misplaced-expression", message, _HINT, column)
            return
        aggregate = next((node for clause in sorts for node in _own_nodes(clause) if is_aggregate(node)), None)
        if column is not None and aggregate is not None:
            message = f"ORDER BY has an aggregate, and HAVING over grouping sets uses '{column.name}' of no SELECT"
            walk.fault("misplaced-expression", message, _HINT, aggregate, column)
            return
        selected |= {name for column in having.find_all(exp.Column) for name in _column_names(walk, column)}
    column = next(_unselected_columns(walk, sorts, keys - selected), None)
    column = column or next(_unselected_columns(walk, sorts, key_columns - selected, inside=True), None)
    if column is not None:
        message = f"ORDER BY over grouping sets uses '{column.name}', which is not in the SELECT"
        walk.fault("misplaced-expression", message, _HINT, column)


def _group_key_columns(walk: Walk, select: exp.Select) -> tuple[set[str], set[str]]:
    """The columns that keys use, those of the items that a place or an alias means too, and those that are keys."""
    keys = walk.groups[id(select)]
    key_columns = [key.node for key in keys if isinstance(key.node, exp.Column)]
    referenced_items = [select.expressions[key.column.item] for key in keys if key.column is not None]
    columns = [
        column for node in (*(key.node for key in keys), *referenced_items) for column in node.find_all(exp.Column)
    ]
    return {n for c in columns for n in _column_names(walk, c)}, {
        n for c in key_columns for n in _column_names(walk, c)
    }


def _unselected_columns(
    walk: Walk, clauses: Iterable[exp.Expr], keys: set[str], *, inside: bool = False
) -> Iterator[exp.Column]:
    """The columns of clauses that are among the keys; `inside`: those in aggregates, too."""
    for clause in clauses if keys else ():
        for node in clause.walk(prune=lambda n: isinstance(n, exp.Query) or (not inside and _aggregates(n))):
            if isinstance(node, exp.Column) and keys & set(_column_names(walk, node)):
                yield node


def _column_names(walk: Walk, column: exp.Column) -> list[str]:
    """The name of a column without that of its table: of `o.item.name` it is `item`."""
    ref = walk.refs.get(id(column))
    return [ref.name] if ref is not None else []


def _aggregates(node: exp.Expr) -> bool:
    grouping = isinstance(node, exp.Anonymous) and node.name.lower() == "grouping"
    return is_aggregate(node) and not grouping and not isinstance(node, exp.Grouping)


# What Spark's parser may make an expression of at once; it does not where it is written as a call.
_AT_ONCE = (
    exp.Connector, exp.Cast, exp.TryCast, exp.Case, exp.Substring, exp.RegexpLike, exp.Exists, exp.CurrentTimestamp,
    exp.CurrentUser, exp.Overlay,
)  # fmt: skip


def _is_looked_up_again(walk: Walk, node: exp.Expr, scope: ColumnScope) -> bool:
    """Whether Spark looks an expression up, or writes it again, after it has read the keys."""
    match node:
        case exp.Column():
            called = node.name.lower() == "localtimestamp" and not node.table
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            called = _is_rewritten_time(walk, node, scope)
        case exp.Struct():
            called = walk.name_of(node) == "named_struct"
        case exp.StrPosition():
            called = "position" in node.args
        case exp.Trim():
            called = node.args.get("position") is None
        case exp.If():
            called = not isinstance(node.parent, exp.Case)
        case exp.Between() | exp.IntDiv() | exp.CurrentDate():
            called = True
        case _:
            called = isinstance(node, exp.Func) and ("start" in node.meta or not isinstance(node, _AT_ONCE))
    return called


def _is_rewritten_time(walk: Walk, node: exp.Expr, scope: ColumnScope) -> bool:
    """Arithmetic of times: Spark makes functions of it once it knows the types."""
    kinds = [walk.value(part, scope).type or "" for part in (node.this, node.expression)]
    intervals = [kind.startswith("interval") for kind in kinds]
    if isinstance(node, (exp.Mul, exp.Div)):
        return any(intervals)
    return any(kind in _TIMES for kind in kinds) and not all(intervals)


def _own_nodes(clause: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a clause without those of queries inside it."""
    return clause.walk(prune=lambda node: isinstance(node, exp.Query))


def _sort_items(node: exp.Expr) -> Iterator[exp.Expr]:
    for key in _SORTS:
        clause = node.args.get(key)
        yield from clause.expressions if clause is not None else ()
