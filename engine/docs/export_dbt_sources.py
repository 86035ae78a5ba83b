"""Tables of a project as sources of dbt: a properties file with their columns, descriptions and tests.

The keys are those of dbt 1.10 and newer (`config:` of a source table, `data_tests:`), see dbt's reference of source
properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.compile import DataTest, Manifest, Model
from engine.compile.nodes.manifest import Column
from engine.errors import UsageError
from engine.project.yaml_text import yaml_text

FIRST_LINE = "# Written by engine export dbt-sources: run it again after changes, edits here are lost.\n"
# Generic tests without arguments that both have.
_SHARED_TESTS = ("not_null", "unique")


def dbt_sources(manifest: Manifest, models: Iterable[Model], database: str | None = None) -> str:
    """Return a properties file of dbt with some models as sources, one source for each schema.

    Args:
        manifest: the compiled project.
        models: of it; ephemeral ones are omitted.
        database: what dbt calls the catalog; None: as the target does; empty: the adapter has none.
    """
    schemas: dict[tuple[str, str], list[Model]] = {}
    for model in models:
        if model.in_catalog:
            schemas.setdefault((model.relation.catalog, model.relation.schema), []).append(model)
    sources = []
    for (catalog, schema), tables in sorted(schemas.items()):
        name = manifest.project if len(schemas) == 1 else _source_name(manifest.project, schema)
        about: dict[str, Any] = {
            "name": name,
            "description": f"Tables that the Headrace project {manifest.project} builds.",
        }
        if database != "":
            about["database"] = database or catalog
        sources.append({**about, "schema": schema, "tables": [_table(manifest, model) for model in tables]})
    return FIRST_LINE + yaml_text({"version": 2, "sources": sources})


def _source_name(project: str, schema: str) -> str:
    """A name that no other project's schema has."""
    flat = schema.replace(".", "_")
    return flat if f"{flat}_".startswith(f"{project}_") else f"{project}_{flat}"


def write_sources(text: str, path: Path) -> None:
    """Write the file, in the place of an earlier one only.

    Raises UsageError: another file is there, or it cannot be written.
    """
    try:
        with path.open(encoding="utf-8") as existing_file:
            ours = existing_file.readline() == FIRST_LINE
    except FileNotFoundError:
        ours = True
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise UsageError("usage", f"'{path}' was not written by this command", "Remove it, or give --out another name.")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        hint = "Name a file in a folder that exists and is writable: --out FILE."
        raise UsageError("usage", f"'{path}' cannot be written: {error.strerror}", hint) from None


def _table(manifest: Manifest, model: Model) -> dict[str, Any]:
    table_record: dict[str, Any] = {"name": model.name}
    if model.relation.name != model.name:
        table_record["identifier"] = model.relation.name
    if model.description:
        table_record["description"] = _text(model.description)
    meta = {
        **_json_meta(model.meta),
        "headrace": {
            "materialized": model.materialized.value,
            "file": model.file,
            "reads": [name.partition(".")[2] for name in model.depends_on],
        },
    }
    table_record["config"] = {"meta": meta, **({"tags": list(model.tags)} if model.tags else {})}
    tests: dict[str | None, list[str]] = {}
    for test in manifest.nodes.values():
        if isinstance(test, DataTest) and test.model == model.id and test.kind in _SHARED_TESTS:
            tests.setdefault(test.column, []).append(test.kind)
    columns = [_column(column, tests.get(column.name, [])) for column in model.columns if column.named]
    return {**table_record, "columns": columns} if columns else table_record


def _column(column: Column, tests: list[str]) -> dict[str, Any]:
    parts: Iterator[tuple[str, Any]] = (
        (key, value)
        for key, value in (
            ("name", column.name),
            ("data_type", column.type),
            ("description", _text(column.description)),
            ("data_tests", sorted(set(tests))),
        )
        if value
    )
    return dict(parts)


def _text(description: str) -> str:
    """A description, in which dbt finds no Jinja."""
    for mark in ("{{", "{%", "{#"):
        description = description.replace(mark, f"{mark[0]} {mark[1]}")
    return description.strip()


def _json_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    def json_value(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {_text(str(key)): json_value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [json_value(inner) for inner in value]
        return _text(value) if isinstance(value, str) else value

    return {_text(str(key)): json_value(value) for key, value in meta.items()}
