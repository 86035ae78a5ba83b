"""What `columns:` declares against what the query gives; compile asks first, and a build again before it writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from engine.compile.nodes.manifest import Column, Model
from engine.compile.types.spark_types import field_type, normal, type_in_table
from engine.errors import Diagnostic, Location, near

# There is no such column; one whose type is not known has None.
_NONE = ""


def declared_faults(
    model: Model, returned: Sequence[tuple[str, str | None]], *, certain: bool = True
) -> Iterator[Diagnostic]:
    """Yield where a model's columns are not as declared; a type that is not known is not an error.

    `returned` is in the query's order. Not `certain`: some names are not known, and only types are looked at.
    """
    types = {name.lower(): type_ for name, type_ in returned}
    described = [column for column in model.columns if f"columns.{column.name}" in model.positions.settings]
    for column in described:
        name = column.name.lower()
        type_ = types[name] if name in types else _of_field(name, types)
        if type_ != _NONE:
            yield from _other_type(model, column, type_)
        elif certain and name not in model.write.history.columns:
            message = f"'columns' describes '{column.name}', which the query does not return"
            hint = near(column.name, (name for name, _ in returned))
            yield _fault("unknown-column", message, hint, model, f"columns.{column.name}")
    if model.contract and certain:
        yield from _undeclared_columns(model, described, returned)
    yield from _renamed_wrongly(model, described, types)


def _of_field(path: str, types: Mapping[str, str | None]) -> str | None:
    """The type of a field (`place.lat`, `phones.number`), by its path in lower case."""
    first, *rest = path.split(".")
    type_ = types.get(first, _NONE) if rest else _NONE
    return type_ and (field_type(normal(type_), rest) or _NONE)


def _other_type(model: Model, column: Column, returned: str | None) -> Iterator[Diagnostic]:
    key = f"columns.{column.name}.type"
    if column.type is None or returned is None or key not in model.positions.settings:
        return
    declared = normal(column.type) or column.type
    if declared.lower() in {returned.lower(), (type_in_table(returned) or returned).lower()}:
        return
    message = f"the column '{column.name}' is declared {declared}, but the query returns {returned}"
    hint = f"Write cast(... as {declared}) as {column.name} in the query, or correct the type."
    yield _fault("column-type", message, hint, model, key)


def _renamed_wrongly(model: Model, described: Iterable[Column], types: Collection[str]) -> Iterator[Diagnostic]:
    """Where the earlier name of a column can be none."""
    first: dict[str, str] = {}
    for column in described:
        earlier, message, hint = column.renamed_from, "", "Remove 'renamed_from'."
        if not earlier:
            continue
        if not model.keeps_rows:
            message = "'renamed_from' renames a column of a table, and this model has none"
        elif "." in column.name or "." in earlier:
            message, hint = "'renamed_from' renames a column, and no field of one", "Give the column another name."
        elif earlier.lower() in types:
            message = f"'{column.name}' is renamed from '{earlier}', which the query returns"
            hint = f"Remove 'renamed_from', or '{earlier}' from the query."
        elif (other := first.setdefault(earlier.lower(), column.name)) != column.name:
            message = f"'{other}' and '{column.name}' are both renamed from '{earlier}'"
            hint = "One of them has its rows: remove 'renamed_from' from the other."
        if message:
            yield _fault("renamed-from", message, hint, model, f"columns.{column.name}.renamed_from")


def _undeclared_columns(
    model: Model, described: Iterable[Column], returned: Sequence[tuple[str, str | None]]
) -> Iterator[Diagnostic]:
    declared = {name.lower() for name in (*(column.name for column in described), *model.write.exclude)}
    for name, type_ in returned:
        if name.lower() not in declared:
            message = f"the query returns '{name}', which 'columns' does not list, as 'contract' requires"
            type_text = f'"{type_}"' if type_ and "," in type_ else type_ or "..."
            hint = f"Add {name}: {{type: {type_text}}}, or remove it from the query."
            yield _fault("column-undeclared", message, hint, model, "columns")


def _fault(code: str, message: str, hint: str, model: Model, key: str) -> Diagnostic:
    places = model.positions.settings
    place = places.get(key) or places.get("columns") or Location(model.file)
    return Diagnostic(code, message, hint, node=model.name, location=place)
