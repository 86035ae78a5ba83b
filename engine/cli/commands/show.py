"""`engine show`: rows of a table, or of a query run as a batch."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, check_project, compiled, log_file, warn
from engine.cli.console.terminal import json_text, write
from engine.compile import Manifest, Materialized, Model
from engine.errors import RunError, UsageError, near

if TYPE_CHECKING:
    from engine.lake.lake_reader import Lake

# Types, and not the names of fields.
_VARIANT = re.compile(r"\bvariant\b(?! *:)")
_ZONED = re.compile(r"\btimestamp\b(?! *:)")
_QUARANTINE = "__quarantine"
Rows = tuple[list[str], list[tuple[Any, ...]]]


def show_table(chosen: CommandSettings, name: str | None, limit: int, output: str) -> None:
    """Print rows of a stored table, without Java unless it has a VARIANT column."""
    from engine.lake.lake_reader import Lake

    result = compiled(chosen, warnings=Warnings.SELECTED)
    if (quarantined := _quarantine(result.manifest, name)) is not None:
        _print_quarantine(Lake(result.target.catalog), quarantined, limit, output)
        return
    model = _model(result.manifest, name)
    warn(chosen, result.manifest, [model.id], daily=True)
    if model.materialized is Materialized.VIEW:
        raise UsageError("usage", f"'{model.name}' is a view, which stores no rows", f"Use 'engine show {model.name}'.")
    lake, relation = Lake(result.target.catalog), model.relation
    columns = lake.columns(relation.schema, relation.name)
    if columns is None:
        hint = f"Build it first: engine build -s +{model.name}"
        raise RunError("table-missing", f"the table {relation} does not exist yet", hint, node=model.name)
    types = [column.type for column in columns]
    if any(_VARIANT.search(type_) for type_ in types):
        # Only Spark reads their rows.
        from engine.runtime.operations.preview import preview

        with log_file(chosen):
            rows = preview(result.manifest, result.target, chosen.root, model, limit, chosen.target_dir, stored=True)
        _print((rows.names, rows.rows), rows.types, output)
        return
    _print(lake.rows(relation.schema, relation.name, limit) or ([], []), types, output)


def _quarantine(manifest: Manifest, name: str | None) -> Model | None:
    """The model of whose quarantine a name is; None: it is the name of a model, or of neither."""
    models = {m.name: m for m in manifest.models}
    return models.get((name or "").removesuffix(_QUARANTINE)) if name not in models else None


def _print_quarantine(lake: Lake, model: Model, limit: int, output: str) -> None:
    """Print rows of the quarantine of a model; its records as text."""
    relation = replace(model.relation, name=model.relation.name + _QUARANTINE)
    columns = lake.columns(relation.schema, relation.name)
    if columns is None:
        hint = f"It is made with the first quarantined record. The model's own rows: engine show {model.name} --table"
        raise RunError("table-missing", f"the table {relation} does not exist", hint, node=model.name)
    names, rows = lake.rows(relation.schema, relation.name, limit) or ([], [])
    shown = [tuple(v.decode(errors="replace") if isinstance(v, bytes) else v for v in row) for row in rows]
    _print((names, shown), [column.type for column in columns], output)


def show_query(chosen: CommandSettings, name: str | None, inline: str | None, limit: int, output: str) -> None:
    """Run a query as a batch and print rows."""
    from engine.api.inline_query import compile_query
    from engine.runtime.operations.preview import preview

    if (name is None) == (inline is None):
        raise UsageError("usage", "show needs a model or --inline", "Example: engine show departures_hourly")
    with log_file(chosen):
        if inline is not None:
            result, model = compile_query(chosen.project, inline)
        else:
            result = compiled(chosen, warnings=Warnings.SELECTED)
            model = _model(result.manifest, name)
            warn(chosen, result.manifest, [model.id], daily=True)
        rows = preview(result.manifest, result.target, chosen.root, model, limit, chosen.target_dir)
    _print((rows.names, rows.rows), rows.types, output)


def _print(rows: Rows, types: Sequence[str], output: str) -> None:
    """Print rows, and for people that times are in UTC; the formats for programs have rows alone."""
    write(format_rows(rows, output))
    if output == "text" and any(_ZONED.search(type_) for type_ in types):
        write("Timestamps are in UTC.")


def show_source(chosen: CommandSettings, name: str) -> None:
    """Print the declaration of a source with the columns it has now; faults of the project are for other commands."""
    from engine.runtime.operations.inspect_source import inspect

    check_project(chosen)
    result = chosen.project.compile()
    plain = name.removeprefix("source.").removeprefix("source:")
    sources = {source.name: source for source in result.manifest.sources}
    if plain not in sources:
        raise UsageError("usage", f"there is no source '{name}'", near(plain, sources))
    with log_file(chosen):
        write(inspect(sources[plain], result.target, chosen.root, chosen.target_dir), end="")


def _model(manifest: Manifest, name: str | None) -> Model:
    models = {m.name: m for m in manifest.models}
    if name not in models:
        raise UsageError("usage", f"there is no model '{name}'", near(name or "", models))
    return models[name]


def format_rows(rows: Rows, output: str) -> str:
    """Rows as a table, JSON lines or CSV."""
    names, values = rows
    if output == "json":
        return "\n".join(json_text(dict(zip(names, row, strict=True)), default=_text) for row in values)
    if output == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([["" if v is None else _text(v) for v in row] for row in values])
        return stream.getvalue().rstrip("\n")
    cells = [[one_line(_text(v)) for v in row] for row in values]
    return _table([one_line(name) for name in names], cells, [_right(values, i) for i in range(len(names))])


def _right(values: Sequence[Sequence[Any]], index: int) -> bool:
    kinds = {type(row[index]) for row in values if row[index] is not None}
    return bool(kinds) and kinds <= {int, float}


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    widths = [max(len(name), *(len(row[i]) for row in rows), 0) for i, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(names), rule, *(line(row) for row in rows)])


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, datetime):
        fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
        return f"{value.year:04}-{value:%m-%d %H:%M:%S}{fraction}"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(_plain(value))


def _plain(value: Any) -> Any:
    """A nested value with texts for times."""
    match value:
        case dict():
            return {_plain(key): _plain(part) for key, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case tuple() if type(value) is tuple:
            return tuple(_plain(part) for part in value)
        case date():
            return _text(value)
    return value
