"""dbt's sources: tables that others fill, declared as Iceberg tables until somebody says where the data is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from engine.project.yaml_section import is_name
from engine.project.yaml_text import yaml_text
from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item
from engine_import.dbt.manifest.read_manifest import DbtNode, mapping_of, text_of, texts_of
from engine_import.dbt.model_text import columns_of
from engine_import.output.import_report import ImportOutcome, plain

_BOUNDS = ("warn_after", "error_after")
_HEAD = """\
# The tables that dbt reads as the source {0}. Here they are Iceberg tables of the target's catalog, with the schema and
# name that dbt has. If the data is somewhere else, set format (kafka, json, parquet, ..), topic or path, and schema.
"""


def import_sources(context: ImportContext) -> None:
    groups: dict[str, list[DbtNode]] = defaultdict(list)
    for node in context.manifest.sources.values():
        if _is_used(context, node):
            groups[context.names.sources[node.text("source_name"), node.name][0]].append(node)
    for name, nodes in sorted(groups.items()):
        source: dict[str, Any] = {"name": name}
        if description := nodes[0].text("source_description").strip():
            source["description"] = description
        source["tables"] = [_table(context, node) for node in nodes]
        file = context.files.add(f"sources/{name}.yml", _HEAD.format(name) + yaml_text({"sources": [source]}))
        for node in nodes:
            notes = tuple(context.items[node.id].notes) if node.id in context.items else ()
            add_item(context, node, ImportOutcome.IMPORTED, kind="source", file=file, notes=notes)


def _is_used(context: ImportContext, node: DbtNode) -> bool:
    """Return whether it is a source of the project, or a package's that a model of the project reads."""
    project = context.manifest.project
    own = (other for other in context.manifest.nodes.values() if other.package == project)
    return node.package == project or any(node.id in other.parents for other in own)


def _table(context: ImportContext, node: DbtNode) -> dict[str, Any]:
    notes: list[str] = []
    table: dict[str, Any] = {"name": context.names.sources[node.text("source_name"), node.name][1]}
    if description := node.text("description").strip():
        table["description"] = description
    table["format"] = "iceberg"
    table["table"] = f"{_part(node.text('schema'), notes)}.{_part(node.text('identifier') or node.name, notes)}"
    if tags := texts_of(node.data, "tags"):
        table["tags"] = tags
    if meta := {**mapping_of(node.data, "meta"), **mapping_of(node.config, "meta")}:
        table["meta"] = meta
    _freshness(node, table, notes)
    columns = columns_of(context, node, notes)
    if columns:
        table["columns"] = columns
    if tests := context.column_tests.get((node.id, "")):
        table["data_tests"] = tests
    if mapping_of(node.data, "external"):
        notes.append("'external' is not carried over: give format, path and schema")
    add_item(context, node, ImportOutcome.IMPORTED, kind="source", notes=tuple(notes))
    return table


def _part(name: str, notes: list[str]) -> str:
    plain_name = re.sub(r"[^a-z0-9_]+", "_", name.casefold()).strip("_") or "unknown"
    if not is_name(plain_name):
        plain_name = f"t_{plain_name}"
    if plain_name != name:
        notes.append(f"the name {plain(name)!r} is written {plain_name}: check where the table is")
    return plain_name


def _freshness(node: DbtNode, table: dict[str, Any], notes: list[str]) -> None:
    field = text_of(node.config, "loaded_at_field") or node.text("loaded_at_field")
    if field:
        table["loaded_at_field"] = field
    if text_of(node.config, "loaded_at_query") or node.text("loaded_at_query"):
        notes.append("loaded_at_query is not carried over: name a column as loaded_at_field")
    asked = mapping_of(node.data, "freshness") or mapping_of(node.config, "freshness")
    bounds: dict[str, Any] = {key: age for key in _BOUNDS if (age := _age(mapping_of(asked, key)))}
    if bounds:
        if where := text_of(asked, "filter"):
            bounds["filter"] = where
        table["freshness"] = bounds


def _age(bound: Mapping[str, Any]) -> str:
    count, period = bound.get("count"), text_of(bound, "period")
    if not isinstance(count, int) or isinstance(count, bool) or period not in ("minute", "hour", "day"):
        return ""
    return f"{count} {period}{'' if count == 1 else 's'}"
