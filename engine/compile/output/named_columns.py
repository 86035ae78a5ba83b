"""The columns that settings name, where only the inputs tell which columns a query gives: `select *`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from engine.compile.config.winning_values import NamedColumn
from engine.compile.nodes.column_facts import InputColumns
from engine.compile.nodes.model_settings import Write
from engine.compile.output.output_columns import of_changes, output_columns
from engine.errors import Diagnostic, near


def named_faults(
    named: Iterable[NamedColumn], write: Write, tree: exp.Expr, seen: InputColumns, model: str
) -> Iterator[Diagnostic]:
    """Settings that name a column which the query does not give.

    Args:
        named: the columns that settings name.
        write: how the rows are written.
        tree: the query; one whose text shows its columns was looked at before.
        seen: what the query gives; nothing is reported if that is not known as a whole.
        model: its name.
    """
    if seen.columns is None or not seen.complete or output_columns(tree) is not None:
        return
    returned = [name for name, _ in seen.columns]
    names = {name.lower() for name in returned}
    for name in named:
        if name.column.lower() not in names and not of_changes(write, name):
            message = f"'{name.key}' names '{name.column}', which the SELECT does not have"
            yield Diagnostic("unknown-column", message, near(name.column, returned), node=model, location=name.location)
