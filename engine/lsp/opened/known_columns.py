"""Columns of models and sources as they were compiled last, with the fields of structs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.compile import Model, Source
from engine.compile.nodes.manifest import Column
from engine.compile.types import spark_types
from engine.lsp.opened.open_project import OpenProject


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column, or a field of one: its node (empty: the model itself), name as written, type and description."""

    node: str
    name: str
    type: str | None
    description: str = ""


def columns_of(opened: OpenProject, node: str) -> tuple[Column, ...]:
    found = opened.manifest.nodes.get(node)
    if isinstance(found, Model) and found.file in opened.edited:
        found = opened.edited[found.file].model
    return found.columns if isinstance(found, Model | Source) else ()


def input_columns(opened: OpenProject, model: Model, node: str) -> Iterator[KnownColumn]:
    """Return the columns that a model sees of an input, with the one that a watermark makes."""
    columns = columns_of(opened, node)
    for column in columns:
        yield KnownColumn(node, column.name, column.type, column.description)
    for item in model.inputs:
        made = item.watermark
        if item.node == node and made and made.expression and made.column not in {c.name for c in columns}:
            found = at_path(columns_known(node, columns), made.expression.split("."))
            yield KnownColumn(node, made.column, found.type if found else "timestamp")


def columns_known(node: str, columns: Iterable[Column]) -> list[KnownColumn]:
    return [KnownColumn(node, one.name, one.type, one.description) for one in columns]


def at_path(columns: Iterable[KnownColumn], path: list[str]) -> KnownColumn | None:
    """Return the column, or the field in it, that a dotted name leads to; Spark does not tell upper from lower case."""
    first = next((one for one in columns if one.name.lower() == path[0].lower()), None)
    if first is None or len(path) == 1:
        return first
    inner = at_path(fields_of(first), path[1:])
    return KnownColumn(first.node, f"{first.name}.{inner.name}", inner.type) if inner else None


def fields_of(column: KnownColumn) -> list[KnownColumn]:
    fields = spark_types.fields(column.type) or ()
    return [KnownColumn(column.node, name.strip(), type_.strip()) for name, type_ in fields]
