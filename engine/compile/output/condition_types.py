"""Types of conditions (`delete_when`, the checks of `expectations`) over the columns that the query gives."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.columns.find_columns import columns_of_value
from engine.compile.nodes.column_facts import InputColumns, QueryColumns
from engine.compile.nodes.manifest import Model
from engine.errors import Diagnostic, Location, near

HINT = "Write a condition that is true for a good row, such as amount > 0 or amount is not null."
DELETES = "Write a condition that is true for a row to delete, such as op = 'd'."


def conditions(model: Model) -> Iterator[tuple[str, str, str]]:
    """The conditions of a model: how a message names each, its SQL, and where it is among the settings."""
    for one in model.expectations:
        yield f"the check of '{one.name}'", one.check, f"expectations.{one.name}"
    if model.write.delete_when is not None:
        yield "'delete_when'", model.write.delete_when, "delete_when"


def condition_faults(model: Model, output_columns: InputColumns, *, foreign: bool) -> Iterator[Diagnostic]:
    """Yield conditions that are not boolean, or name a field or a function that does not exist.

    A type that is not known is not an error. `foreign`: there may be functions that are not Spark's own.
    """
    for name, sql, key in conditions(model):
        query = columns_of_value(sql, output_columns)
        place = model.positions.settings.get(key) or Location(model.file)
        for code, message, hint in _faults(name, sql, query, output_columns, foreign=foreign):
            yield Diagnostic(code, message, hint, node=model.name, location=place)


def _faults(
    name: str, sql: str, query: QueryColumns, output_columns: InputColumns, *, foreign: bool
) -> Iterator[tuple[str, str, str]]:
    names = {column.lower() for column, _ in output_columns.columns or ()}
    # A column that is missing as a whole has been reported where the setting names it.
    fields = [missing for missing in query.unresolved if missing.name.partition(".")[0].lower() in names]
    for missing in fields:
        yield "unknown-column", f"{name} names '{missing.name}', which does not exist", near(missing.name, missing.near)
    faults = [fault for fault in query.faults if fault.code != "unknown-function" or not foreign]
    for fault in faults:
        yield fault.code, f"{name}: {fault.message}", fault.hint
    type_ = query.columns[0].type if query.columns and not query.unresolved and not faults else None
    if type_ is not None and type_ not in {"boolean", "void"}:
        yield "condition-syntax", not_boolean(name, sql, type_), DELETES if name == "'delete_when'" else HINT


def not_boolean(name: str, sql: str, type_: str) -> str:
    return f"{name} ({sql}) is {type_}, not boolean"
