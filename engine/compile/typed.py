"""Columns, types and lineage of all models, from the sources downwards in the order of the references."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.compile.columns import ColumnFacts, InputColumns, QueryColumns, columns_of
from engine.compile.manifest import Column, Input, Materialized, Model, Node, Source
from engine.compile.sql import Query
from engine.compile.streaming import broken_rules
from engine.compile.windows import Window
from engine.errors import Diagnostic, Location, near
from engine.jinja import Rendered


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the text of a model gave: the query and the text it was read from, and the declared windows."""

    query: Query
    rendered: Rendered
    windows: tuple[Window, ...]


def typed(
    nodes: Mapping[str, Node], order: Iterable[str], parsed: Mapping[str, Parsed], found: list[Diagnostic]
) -> dict[str, Model]:
    """The models with their columns.

    Args:
        nodes: sources and models.
        order: ids, each after what it reads.
        parsed: by model id; a model that is missing has unknown columns.
        found: columns that no input has, and names given twice, are added here.

    Returns:
        The models by id; one with new errors is broken.
    """
    known = {n.id: _of_source(n) for n in nodes.values() if isinstance(n, Source)}
    models: dict[str, Model] = {}
    for node_id in order:
        model, text = nodes[node_id], parsed.get(node_id)
        if not isinstance(model, Model):
            continue
        if text is None:
            known[node_id], models[node_id] = InputColumns(node_id, None), model
            continue
        facts = _facts(model, text, known)
        known[node_id] = facts.as_input(node_id, stored=model.materialized is not Materialized.VIEW)
        faults = [] if model.broken else [*_faults(model, text, facts), *broken_rules(model, known)]
        found += faults
        columns = _merged(model.columns, facts.columns)
        models[node_id] = replace(
            model, columns=columns, indirect=facts.indirect, broken=model.broken or any(f.is_error for f in faults)
        )
    return models


def _of_source(source: Source) -> InputColumns:
    columns = tuple((column.name, column.type) for column in source.columns)
    return InputColumns(source.id, columns or None, hidden=(("_metadata", None),))


def _facts(model: Model, text: Parsed, known: Mapping[str, InputColumns]) -> QueryColumns:
    inputs = {}
    for item in model.inputs:
        kind = "ref" if item.node.startswith("model.") else "source"
        columns = known.get(item.node, InputColumns(item.node, None))
        inputs[f"@{kind} {item.name}"] = replace(columns, added=_added(item))
    windows = {window.name: (window.kind, window.column) for window in text.windows}
    return columns_of(text.query.tree, inputs, windows, text.rendered.text)


def _added(item: Input) -> tuple[tuple[str, str], ...]:
    mark = item.watermark
    return ((mark.column, mark.expression),) if mark is not None and mark.expression is not None else ()


def _faults(model: Model, text: Parsed, facts: QueryColumns) -> Iterable[Diagnostic]:
    for missing in facts.unresolved:
        place = text.rendered.location(missing.offset)
        message = f"no input has a column '{missing.name}'"
        hint = near(missing.name, missing.near)
        yield Diagnostic("unknown-column", message, hint, node=model.name, location=place)
    for name in facts.duplicates:
        message = f"two columns are called '{name}'"
        hint = "Give one of them an alias; letter case makes no difference to Spark."
        yield Diagnostic("duplicate-name", message, hint, node=model.name, location=Location(model.file))
    if facts.columns is None or not all(column.named for column in facts.columns):
        return
    names = {column.name.lower() for column in facts.columns}
    place = model.positions.settings.get("columns", Location(model.file))
    for column in model.columns:
        if column.name.lower() not in names:
            message = f"'columns' describes '{column.name}', which the query does not give"
            hint = near(column.name, (c.name for c in facts.columns))
            yield Diagnostic("unknown-column", message, hint, node=model.name, location=place)


def _merged(described: tuple[Column, ...], facts: tuple[ColumnFacts, ...] | None) -> tuple[Column, ...]:
    """The query's columns in their order, with what the user says of them."""
    if facts is None:
        return described
    said = {column.name.lower(): column for column in described}
    columns = []
    for fact in facts:
        own = said.pop(fact.name.lower(), Column(fact.name))
        columns.append(replace(own, type=fact.type or own.type, origins=fact.origins, sql=fact.sql))
    return (*columns, *said.values())
