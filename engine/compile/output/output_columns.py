"""The columns of a model's output, and by which of them it groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.columns.column_scope import GroupKey, NameRef, ScopeColumn
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.config.window_config import Window
from engine.compile.config.winning_values import NamedColumn
from engine.compile.nodes.column_facts import Unresolved
from engine.compile.nodes.model_settings import History, Write
from engine.compile.references.expand_windows import Report
from engine.compile.sql.aggregates import returns_rows
from engine.errors import Location, near

_PARTS = ("start", "end")
_RENAME = "Give it a name: day(ts) as ts_part."
_BUILTIN = "window"
# Keys that name columns of the table which its query need not have.
_OF_FILES = frozenset({"partition_by", "sort_by"})


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An item of a SELECT; the name is None where Spark makes one."""

    name: str | None
    value: exp.Expr
    column: ScopeColumn
    text: str


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """A grouping expression as written, and the output columns that tell its groups apart, best first."""

    text: str
    columns: tuple[str, ...]


def outermost(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        tree = tree.this
    return tree


def output_columns(bound: BoundQuery) -> tuple[str, ...] | None:
    """The names of the columns of a query, or None if not all are certain."""
    columns = bound.columns.columns
    certain = columns is not None and all(column.named for column in columns)
    return tuple(column.name for column in columns or ()) if certain else None


def is_misspelled(output: Iterable[str], unresolved: Iterable[Unresolved]) -> bool:
    """Return whether a column of the output has the name of one that no input has: only that cause is reported."""
    missing = {one.name.rpartition(".")[2].lower() for one in unresolved}
    return any(name.lower() in missing for name in output)


def of_changes(write: Write, name: NamedColumn) -> bool:
    """Whether a setting orders files by a column that a log of changes adds to those of the query."""
    changes = write.history is History.CHANGES
    return changes and name.key in _OF_FILES and name.column.lower() in write.history.columns


def check_columns(
    named_columns: Iterable[NamedColumn],
    write: Write,
    bound: BoundQuery,
    places: Mapping[str, Location],
    report: Report,
) -> None:
    """Report settings that do not fit the columns of the query, as far as they are certain."""
    output = output_columns(bound)
    if output is None:
        return
    names = {name.lower() for name in output}
    for name in () if is_misspelled(output, bound.columns.unresolved) else named_columns:
        if name.column.lower() not in names and not of_changes(write, name):
            hint = near(name.column, output) or "Select it."
            message = f"'{name.key}' names '{name.column}', which the SELECT does not have"
            report("unknown-column", message, hint, name.location)
    for column in write.history.columns:
        if column in names:
            message = f"'history' adds the column '{column}', which is already in the SELECT"
            report("setting-conflict", message, "Rename it in the SELECT.", places["history"])
    for partition in write.partition_by:
        own = partition.transform == "identity" and partition.field_name == partition.column
        if partition.field_name.lower() in names and not own:
            message = f"the partition field '{partition.field_name}' has the name of a column"
            report("partition-clash", message, _RENAME, places["partition_by"])


def _items(bound: BoundQuery, select: exp.Select) -> list[SelectItem] | None:
    """The columns of a SELECT, each of a star by its name; None if they are not all known."""
    output = bound.noted.selects.get(id(select))
    if output is None or output.open:
        return None
    items = []
    for column in output.columns:
        written = select.expressions[column.item]
        has_name = isinstance(written, (exp.Alias, exp.Column, exp.Star))
        star = written.args.get("replace") if isinstance(written, exp.Star) else None
        assigned = {alias.alias.lower(): alias for alias in star or ()}
        value = assigned.get(column.name.lower(), written).unalias()
        text = bound.noted.key_of(value)
        if value.is_star:
            value, text = exp.column(column.name), NameRef((column.value.id,), column.name.lower()).text
        items.append(SelectItem(column.name if has_name else None, value, column, text))
    return items


def _query_below(select: exp.Select) -> exp.Select | None:
    """The query in FROM of which a SELECT only filters rows and picks columns; None: it does more, or reads a table."""
    other_clauses = {key for key, value in select.args.items() if value} - {
        "expressions",
        "from_",
        "where",
        "kind",
        "with_",
    }
    relation = select.args["from_"].this if select.args.get("from_") is not None else None
    if other_clauses or not isinstance(relation, exp.Subquery) or not isinstance(relation.this, exp.Select):
        return None
    whole = not any(value for key, value in relation.args.items() if key not in {"this", "alias"})
    renames = relation.args.get("alias") is not None and relation.args["alias"].args.get("columns")
    rows = any(returns_rows(node) for item in select.expressions for node in item.walk())
    return relation.this if whole and not renames and not rows else None


def group_keys(bound: BoundQuery, select: exp.Select, windows: Iterable[Window]) -> list[GroupColumns] | None:
    """Return the grouping expressions of a SELECT; None: there are none, or the output does not tell them apart.

    Those of a query in FROM count where the SELECT only filters its rows and picks its columns.
    """
    below, items = _query_below(select), _items(bound, select)
    if items is None:
        return None
    if below is not None:
        inner = group_keys(bound, below, windows)
        return None if inner is None else [_key_of_outer_select(key, items) for key in inner]
    select_keys = bound.noted.groups.get(id(select))
    if (
        select_keys is None
        or not all(key.always for key in select_keys)
        or select.args["group"].find(exp.Tuple) is not None
    ):
        return None
    names = {window.name for window in windows}
    keys = {key.text: key for one in select_keys for key in [_key(one, bound, items, names)]}
    return list(keys.values())


def _key_of_outer_select(key: GroupColumns, items: list[SelectItem]) -> GroupColumns:
    """A key of a query by the columns that a SELECT over it picks; of a window its start is the best."""
    column_names: dict[str, None] = {}
    for name in key.columns:
        parts = {part: i.name for i in items if i.name and (part := _part_of(i.value, name)) is not None}
        column_names |= dict.fromkeys(parts[part] for part in ("start", "", "end") if part in parts)
    return GroupColumns(key.text, tuple(column_names))


def _part_of(value: exp.Expr, name: str) -> str | None:
    """Which part of a column an expression is: empty is the whole of it; None: something else."""
    if not isinstance(value, exp.Column):
        return None
    if value.name.lower() == name.lower():
        return ""
    part = value.name.lower()
    return part if value.table.lower() == name.lower() and part in _PARTS else None


def _key(key: GroupKey, bound: BoundQuery, items: list[SelectItem], windows: set[str]) -> GroupColumns:
    named_item = next((item for item in items if item.column is key.column), None)
    node, text = (key.node, bound.noted.key_of(key.node)) if named_item is None else (named_item.value, named_item.text)
    matches = [item for item in items if item.text == text]
    window = next((w for n in (node, *(m.value for m in matches)) if (w := _window_of(n, windows))), "")
    if window:
        call = node.find(exp.Anonymous) if window == _BUILTIN else None
        window_text = call.sql(dialect="spark") if call is not None else window
        return GroupColumns(window_text, tuple(_window_columns(window, items, windows)))
    column_names = [item.name for item in matches if item.name is not None]
    return GroupColumns(key.node.sql(dialect="spark"), tuple(column_names))


def _window_of(node: exp.Expr, windows: set[str]) -> str:
    """The window that an expression is or is a part of: a declared one, or the one call that a query groups by."""
    if isinstance(node, exp.Column):
        table, name = node.table.lower(), node.name.lower()
        window_names = {*windows, _BUILTIN}
        if table in window_names and name in _PARTS:
            return table
        return name if not table and name in window_names else ""
    if isinstance(node, exp.Dot) and node.name.lower() in _PARTS:
        return _window_of(node.this, windows)
    return _BUILTIN if isinstance(node, exp.Anonymous) and node.name.lower() == _BUILTIN else ""


def _window_columns(window: str, items: list[SelectItem], windows: set[str]) -> Iterator[str]:
    """The columns that have the window: its start, the whole struct, its end."""
    columns: dict[str, str] = {}
    for item in items:
        if item.name is not None and _window_of(item.value, windows) == window:
            part = item.value.name.lower() if isinstance(item.value, (exp.Column, exp.Dot)) else ""
            columns.setdefault(part if part in _PARTS else "", item.name)
    yield from (columns[part] for part in ("start", "", "end") if part in columns)
