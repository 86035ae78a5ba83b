"""Strings in double quotes that are columns elsewhere: in Spark `"product"` is a constant, in most databases a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from engine.compile.nodes.column_facts import InputColumns
from engine.compile.sql.parse import ParsedQuery, with_printed
from engine.errors import Diagnostic, Level
from engine.jinja import Rendered


def quoted_columns(
    query: ParsedQuery, rendered: Rendered, inputs: Iterable[InputColumns], model: str
) -> Iterator[Diagnostic]:
    """Yield a warning for each string in double quotes that equals a column which the query reads."""
    if not query.double_quoted:
        return
    names = {name.lower(): name for each in inputs for name, _ in each.columns or ()}
    for alias in query.tree.find_all(exp.Alias):
        # One of a CTE or a subquery; the outermost SELECT's are read by nobody.
        if alias.parent is not None and alias.parent.parent is not None:
            names.setdefault(alias.alias.lower(), alias.alias)
    for offset, text in query.double_quoted:
        if (name := names.get(text.lower())) is not None:
            message = f'"{text}" is a constant string in Spark, and not the column of that name'
            hint = f"Write `{name}` for the column, or '{text}' for the string."
            place = rendered.location(offset)
            hint = with_printed(hint, rendered, offset)
            yield Diagnostic("string-for-column", message, hint, Level.WARNING, model, place)
