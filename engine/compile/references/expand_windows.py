"""Where a query uses a declared window, and what is written there instead.

A window resolves like a column. In the text it is replaced by Spark's own function; grouping by a part of
it (`hour.start`, also by alias, position or ALL) groups by the whole window, since Spark keeps the watermark
on the window only (measured: reference of streaming rules, "what counts as a watermarked grouping key").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlglot import exp

from engine.compile.columns.column_scope import GroupKey
from engine.compile.columns.find_columns import BoundQuery
from engine.compile.config.window_config import Edit, Window
from engine.compile.sql.aggregates import has_aggregate
from engine.compile.sql.parse import ParsedQuery, span
from engine.compile.sql.query_nodes import relations
from engine.errors import Location

_PARTS = {"start", "end"}

Report = Callable[[str, str, str, Location | int], None]
_Node = TypeVar("_Node", bound=exp.Expr)


@dataclass(frozen=True, slots=True)
class Lowered:
    """The replacements for all uses of windows, and the names of the windows used."""

    edits: list[Edit] = field(default_factory=list)
    used_windows: set[str] = field(default_factory=set)


def lower_windows(
    query: ParsedQuery,
    bound: BoundQuery,
    windows: tuple[Window, ...],
    columns: Mapping[str, frozenset[str]],
    report: Report,
) -> Lowered:
    """Find the uses of windows; `columns` has, of each model or source read, those that are known."""
    lowered = Lowered()
    for window in windows:
        for select in query.nodes.every(exp.Select):
            # The name is that of a column that a part of the query hands to the SELECT.
            if window.name in bound.noted.passed_on.get(id(select), ()):
                continue
            uses = _Uses(select, window, bound.noted.groups.get(id(select), ()))
            if any(uses.part(column) is not None for column in _own_nodes(select, exp.Column)):
                _check_inputs(select, window, query, columns, report)
                lowered.used_windows.add(window.name)
                lowered.edits.extend(uses.edits(report))
    return lowered


def _check_inputs(
    select: exp.Select, window: Window, query: ParsedQuery, columns: Mapping[str, frozenset[str]], report: Report
) -> None:
    names = {reference.start: reference.name for reference in query.references}
    tables = (t.this for t in _own_nodes(select, exp.Table) if isinstance(t.this, exp.Identifier))
    inputs = [name for table in tables if (name := names.get(span(table)[0])) is not None]
    for name in inputs:
        if window.name in columns.get(name, ()):
            message = f"the window '{window.name}' has the name of a column of '{name}'"
            report("window-name-clash", message, "Rename the window.", window.location)
    owners = [name for name in inputs if window.time.time.lower() in columns.get(name, ())]
    if len(owners) > 1:
        message = f"the window '{window.name}' matches columns of {' and '.join(repr(name) for name in owners)}"
        hint = f"Qualify the column with its alias in the query: {window.time.kind}(a.{window.time.time}, ...)."
        report("window-ambiguous", message, hint, window.location)


@dataclass(frozen=True, slots=True)
class _Uses:
    """The uses of one window in one SELECT."""

    select: exp.Select
    window: Window
    keys: Sequence[GroupKey]

    def edits(self, report: Report) -> Iterator[Edit]:
        aliases = {source.alias_or_name.lower() for source in relations(self.select)}
        for column in _own_nodes(self.select, exp.Column):
            part = self.part(column)
            if part is None:
                continue
            if part and self.window.name in aliases:
                message = f"'{self.window.name}' is both a window and an input"
                hint = "Rename the window, or give the input another alias."
                report("window-ambiguous", message, hint, span(column)[0])
            elif (text := self.written(column, part)) is not None:
                yield Edit(*span(column), text)
        yield from self.grouped()

    def part(self, column: exp.Expr) -> str | None:
        """`hour` is "", `hour.start` is "start", anything else None."""
        if not isinstance(column, exp.Column) or column.args.get("db") is not None:
            return None
        table, name = column.table.lower(), column.name.lower()
        if table == self.window.name and name in _PARTS:
            return name
        return "" if not table and name == self.window.name else None

    def written(self, column: exp.Column, part: str) -> str | None:
        """The text for a use, or None if it is the SELECT's own output of that name."""
        after = _is_inside(column, self.select, exp.Having) or _is_inside(column, self.select, exp.Order)
        if after and self.select.args.get("group") is not None:
            name = self.window.name
            output = next((p for p in self.select.expressions if p.alias_or_name.lower() == name), None)
            if output is not None and (not part or self.part(_bare(output)) == ""):
                return None
            # Spark knows the window of a GROUP BY by the name of its function, and the function no more.
            function = self.window.time.function
            return f"{function}.{part}" if part else function
        if not part or _is_inside(column, self.select, exp.Group):
            alias = f" AS `{self.window.name}`" if column.parent is self.select else ""
            return self.window.time.sql + alias
        alias = f" AS `{part}`" if column.parent is self.select else ""
        return f"{self.window.time.sql}.{part}{alias}"

    def grouped(self) -> Iterator[Edit]:
        """`group by window_start`, `group by 1` and `group by all` where that is a part of the window."""
        group = self.select.args.get("group")
        if group is not None and group.args.get("all"):
            yield from self.grouped_by_all(group)
            return
        for key in self.keys:
            item = self.select.expressions[key.column.item] if key.column is not None else None
            if item is not None and key.node.parent is group and self.part(_bare(item)):
                place = isinstance(key.node, exp.Literal)
                begin, end = (key.node.meta["start"], key.node.meta["end"] + 1) if place else span(key.node)
                yield Edit(begin, end, self.window.time.sql)

    def grouped_by_all(self, group: exp.Expr) -> Iterator[Edit]:
        """ALL means every projection that is not an aggregate: by position, and the window whole."""
        projections = self.select.expressions
        parts = {i for i, p in enumerate(projections) if self.part(_bare(p))}
        at = group.meta.get("all")
        if not parts or at is None or any(p.is_star for p in projections):
            return
        window_sql = self.window.time.sql
        keys = (window_sql if i in parts else str(i + 1) for i, p in enumerate(projections) if not has_aggregate(p))
        yield Edit(at[0], at[1], ", ".join(dict.fromkeys(keys)))


def _bare(projection: exp.Expr) -> exp.Expr:
    inner = projection.this if isinstance(projection, exp.Alias) else projection
    return inner if isinstance(inner, exp.Expr) else projection


def _is_inside(node: exp.Expr, select: exp.Select, kind: type[exp.Expr]) -> bool:
    parent = node.parent
    while parent is not None and parent is not select:
        if isinstance(parent, kind):
            return True
        parent = parent.parent
    return False


def _own_nodes(select: exp.Select, kind: type[_Node]) -> Iterator[_Node]:
    for node in select.find_all(kind):
        parent = node.parent
        while parent is not None and not isinstance(parent, (exp.Query, exp.CTE)):
            parent = parent.parent
        if parent is select:
            yield node
