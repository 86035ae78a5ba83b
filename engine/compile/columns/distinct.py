"""What DISTINCT and the set operations ask of columns, and of the ORDER BY behind them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.compile.columns.column_scope import OutputColumns
from engine.compile.columns.type_mismatch import CODE
from engine.compile.columns.walk import Walk, path
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.types.accepted_types import family, ordered

_SORTS = ("order", "sort", "cluster", "distribute")


def told_apart(walk: Walk, node: exp.Expr, output: OutputColumns, word: str) -> None:
    """Report columns whose equal values Spark cannot find: maps and variants, also inside others."""
    first = next(iter(node.find_all(exp.Select)), node)
    for column in output.columns:
        type_ = column.value.type
        if type_ is not None and family(type_) and not ordered(type_):
            at = first.expressions[column.item] if 0 <= column.item < len(first.expressions) else first
            message = f"{word} compares rows, and '{column.name}' is {type_}, which cannot be compared"
            walk.fault(CODE, message, "Leave the column out, or take to_json(..) of it.", at, node)


def sorted_by_output(walk: Walk, node: exp.Select, output: OutputColumns) -> None:
    """Report an ORDER BY behind DISTINCT that names more than the SELECT gives."""
    if output.open:
        return
    for item in _items(node):
        if any(is_aggregate(part) for part in item.walk(prune=lambda part: isinstance(part, exp.Query))):
            message = "ORDER BY behind DISTINCT holds an aggregate"
            walk.fault("clause", message, "Give it a name in the SELECT, and sort by that.", item)
            continue
    sorted_by_columns(walk, node, output, "DISTINCT")


def sorted_by_columns(walk: Walk, node: exp.Expr, output: OutputColumns, word: str) -> None:
    """Report columns of an ORDER BY that are not among those of the query."""
    if output.open:
        return
    names = {column.name.lower() for column in output.columns}
    certain = all(column.named for column in output.columns)
    for column in (column for item in _items(node) for column in item.find_all(exp.Column)):
        parts = [part.name for part in path(column)[0]]
        if column.find_ancestor(exp.Query) is not node or not parts:
            continue
        quoted = any(part.args.get("quoted") for part in column.parts)
        if not names & {part.lower() for part in parts[:2]} and (certain or not quoted):
            shown = ".".join(parts)
            message = f"ORDER BY behind {word} sees the columns of the SELECT alone, and '{shown}' is none"
            walk.fault("clause", message, "Take it into the SELECT, or sort by one of its columns.", column)


def _items(node: exp.Expr) -> Iterator[exp.Expr]:
    for key in _SORTS:
        clause = node.args.get(key)
        yield from clause.expressions if clause is not None else ()
