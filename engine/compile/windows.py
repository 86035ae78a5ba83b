"""Declared windows: their forms, and where a query uses them.

A window resolves like a column. In the text it is replaced by Spark's own function; grouping by a part of
it (`hour.start`, also by alias or position) groups by the whole window, since Spark keeps the watermark on
the window only (measured: reference of streaming rules, "what counts as a watermarked grouping key").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.config import WindowConfig
from engine.compile.sql import span
from engine.errors import Diagnostic
from engine.jinja import Rendered
from engine.project.section import duration_seconds, is_name, parse_duration

_CALL = re.compile(r"(tumbling|sliding|session)\s*\((.*)\)$", re.IGNORECASE | re.DOTALL)
_PARTS = {"start", "end"}
_FORMS = "Write tumbling(ts, 1 hour), sliding(ts, 10 minutes, 5 minutes) or session(ts, 5 minutes)."


@dataclass(frozen=True, slots=True)
class Window:
    """A window as Spark SQL: `sql` is the call that makes the struct."""

    name: str
    kind: str
    column: str
    sql: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text from start to end (exclusive)."""

    start: int
    end: int
    text: str


def read_windows(configs: tuple[WindowConfig, ...], node: str, found: list[Diagnostic]) -> tuple[Window, ...]:
    """Read the declared windows."""
    return tuple(w for c in configs if (w := _read(c, node, found)) is not None)


def _read(config: WindowConfig, node: str, found: list[Diagnostic]) -> Window | None:
    def fault(code: str, message: str, hint: str) -> None:
        found.append(Diagnostic(code, message, hint, node=node, location=config.location))

    match = _CALL.match(config.text.strip())
    if match is None or not is_name(config.name):
        fault("window-syntax", f"'{config.name}: {config.text}' is not a window", _FORMS)
        return None
    kind = match[1].lower()
    arguments = split_arguments(match[2])
    least, most = {"tumbling": (2, 3), "sliding": (3, 4), "session": (2, 2)}[kind]
    if not least <= len(arguments) <= most:
        fault("window-syntax", f"{kind} does not take {len(arguments)} arguments", _FORMS)
        return None
    column, lengths = arguments[0], [parse_duration(a.strip("'\"")) for a in arguments[1:]]
    for text, length in zip(arguments[1:], lengths, strict=True):
        if length is None:
            fault(
                "bad-duration",
                f"'{text}' is not a duration",
                "Write a number and a unit, such as 10 minutes.",
            )
            return None
    spans = [length for length in lengths if length is not None]
    if kind == "sliding" and duration_seconds(spans[1]) > duration_seconds(spans[0]):
        fault(
            "window-syntax", "the slide is longer than the window", "Rows between two windows would be lost."
        )
        return None
    if duration_seconds(spans[0]) == 0:
        fault("bad-duration", "a window of no length", "Write a length of at least a second.")
        return None
    return Window(config.name, kind, column, _sql(kind, column, spans))


def _sql(kind: str, column: str, lengths: list[str]) -> str:
    quoted = [f"'{length}'" for length in lengths]
    if kind == "session":
        return f"session_window({column}, {quoted[0]})"
    if kind == "tumbling" and len(quoted) > 1:
        quoted.insert(1, quoted[0])
    return f"window({column}, {', '.join(quoted)})"


def split_arguments(text: str) -> list[str]:
    """Split at the commas that stand outside brackets."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    parts.append(current.strip())
    return [part for part in parts if part]


def lower_windows(
    tree: exp.Expression, windows: tuple[Window, ...], rendered: Rendered, node: str, found: list[Diagnostic]
) -> tuple[list[Edit], set[str]]:
    """The replacements for every use of a window, and the names of those used."""
    edits: list[Edit] = []
    used: set[str] = set()
    for window in windows:
        for select in tree.find_all(exp.Select):
            if _is_column_of_inputs(select, window.name):
                continue
            for edit in _uses(select, window, rendered, node, found):
                edits.append(edit)
                used.add(window.name)
    return edits, used


def _uses(
    select: exp.Select, window: Window, rendered: Rendered, node: str, found: list[Diagnostic]
) -> Iterator[Edit]:
    aliases = {t.alias_or_name.lower() for t in _own(select, exp.Table)}
    for column in _own(select, exp.Column):
        table, name = column.table.lower(), column.name.lower()
        if table == window.name and name in _PARTS:
            if window.name in aliases:
                message = f"'{window.name}' is both a window and an input"
                place = rendered.location(span(column)[0])
                hint = "Rename the window or give the input another alias."
                found.append(Diagnostic("window-ambiguous", message, hint, node=node, location=place))
                continue
            start, end = span(column)
            if _in_group(column, select):
                yield Edit(start, end, window.sql)
            else:
                named = f" AS `{name}`" if column.parent is select else ""
                yield Edit(start, end, f"{window.sql}.{name}{named}")
        elif not table and name == window.name:
            start, end = span(column)
            named = f" AS `{window.name}`" if column.parent is select else ""
            yield Edit(start, end, window.sql + named)
    yield from _grouped_parts(select, window)


def _grouped_parts(select: exp.Select, window: Window) -> Iterator[Edit]:
    """`group by window_start` and `group by 1` where that is a part of the window."""
    group = select.args.get("group")
    for item in group.expressions if group else ():
        target: exp.Expression | None = None
        if isinstance(item, exp.Column) and not item.table and item.name.lower() != window.name:
            target = next((p for p in select.expressions if p.alias.lower() == item.name.lower()), None)
            at = span(item)
        elif isinstance(item, exp.Literal) and item.is_int and "start" in item.meta:
            index = int(item.this) - 1
            target = select.expressions[index] if 0 <= index < len(select.expressions) else None
            at = (item.meta["start"], item.meta["end"] + 1)
        inner = target.this if isinstance(target, exp.Alias) else target
        if (
            isinstance(inner, exp.Column)
            and inner.table.lower() == window.name
            and inner.name.lower() in _PARTS
        ):
            yield Edit(*at, window.sql)


def _in_group(column: exp.Column, select: exp.Select) -> bool:
    parent = column.parent
    while parent is not None and parent is not select:
        if isinstance(parent, exp.Group):
            return True
        parent = parent.parent
    return False


def _own(select: exp.Select, kind: type[exp.Expression]) -> Iterator[exp.Expression]:
    """The nodes of a kind that belong to this SELECT and not to one inside it."""
    for found in select.find_all(kind):
        parent = found.parent
        while parent is not None and not isinstance(parent, (exp.Query, exp.CTE)):
            parent = parent.parent
        if parent is select:
            yield found


def _is_column_of_inputs(select: exp.Select, name: str) -> bool:
    """Whether a CTE or subquery that the SELECT reads already gives a column of this name."""
    ctes = _visible_ctes(select)
    for source in _sources(select):
        query = source.this if isinstance(source, exp.Subquery) else ctes.get(source.name.lower())
        if query is not None and _exposes(query, name, ctes, 0):
            return True
    return False


def _sources(select: exp.Select) -> Iterator[exp.Expression]:
    start = select.args.get("from_") or select.args.get("from")
    if start is not None:
        yield start.this
    for join in select.args.get("joins") or ():
        yield join.this


def _visible_ctes(select: exp.Select) -> dict[str, exp.Expression]:
    ctes: dict[str, exp.Expression] = {}
    node: exp.Expression | None = select
    while node is not None:
        clause = node.args.get("with_") or node.args.get("with")
        for cte in clause.expressions if clause is not None else ():
            ctes.setdefault(cte.alias.lower(), cte.this)
        node = node.parent
    return ctes


def _exposes(query: exp.Expression, name: str, ctes: dict[str, exp.Expression], depth: int) -> bool:
    if isinstance(query, exp.SetOperation):
        return _exposes(query.left, name, ctes, depth)
    if isinstance(query, exp.Subquery):
        return _exposes(query.this, name, ctes, depth)
    if not isinstance(query, exp.Select) or depth > 50:  # noqa: PLR2004 - a cycle of CTEs is no SQL
        return False
    if any(projection.alias_or_name.lower() == name for projection in query.expressions):
        return True
    if any(
        isinstance(p, exp.Star) or (isinstance(p, exp.Column) and p.name == "*") for p in query.expressions
    ):
        for source in _sources(query):
            inner = source.this if isinstance(source, exp.Subquery) else ctes.get(source.name.lower())
            if inner is not None and inner is not query and _exposes(inner, name, ctes, depth + 1):
                return True
    return False
