"""`engine show`: rows of a table, or of a query run as a batch."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from engine.cli.project import Settings, compiled, log_file
from engine.compile import Manifest, Materialized, Model
from engine.errors import RunError, UsageError, near

Rows = tuple[list[str], list[tuple[Any, ...]]]


def show_table(chosen: Settings, name: str | None, limit: int, output: str) -> None:
    """Print rows of a stored table, without Java."""
    from engine.lake.read import Lake

    result = compiled(chosen)
    model = _model(result.manifest, name)
    if model.materialized is Materialized.VIEW:
        raise UsageError("usage", f"'{model.name}' is a view and stores nothing", f"Use 'engine show {model.name}'.")
    rows = Lake(result.target.catalog).rows(model.relation.schema, model.relation.name, limit)
    if rows is None:
        hint = f"Build it first: engine build -s +{model.name}"
        raise RunError("table-missing", f"the table {model.relation} does not exist yet", hint, node=model.name)
    click.echo(format_rows(rows, output))


def show_query(chosen: Settings, name: str | None, inline: str | None, limit: int, output: str) -> None:
    """Run a query as a batch and print rows."""
    from engine.runtime.preview import inline_model, preview

    if (name is None) == (inline is None):
        raise UsageError("usage", "show takes a model or --inline", "Example: engine show departures_hourly")
    with log_file(chosen):
        if inline is not None:
            manifest, target, model = inline_model(chosen.root, chosen.target, chosen.variables, inline)
        else:
            result = compiled(chosen)
            manifest, target, model = result.manifest, result.target, _model(result.manifest, name)
        rows = preview(manifest, target, chosen.root, model, limit, chosen.target_dir)
    click.echo(format_rows(rows, output))


def show_source(chosen: Settings, name: str) -> None:
    """Print the declaration of a source with the columns it has now; faults of the project are for other commands."""
    from engine.compile import compile_project
    from engine.project import load_project
    from engine.runtime.inspect import inspect

    result = compile_project(load_project(chosen.root), target=chosen.target, variables=chosen.variables)
    plain = name.removeprefix("source.").removeprefix("source:")
    known = {source.name: source for source in result.manifest.sources}
    if plain not in known:
        raise UsageError("usage", f"there is no source '{name}'", near(plain, known))
    with log_file(chosen):
        click.echo(inspect(known[plain], result.target, chosen.root, chosen.target_dir), nl=False)


def _model(manifest: Manifest, name: str | None) -> Model:
    known = {m.name: m for m in manifest.models}
    if name not in known:
        raise UsageError("usage", f"there is no model '{name}'", near(name or "", known))
    return known[name]


def format_rows(rows: Rows, output: str) -> str:
    """Rows as a table, JSON lines or CSV."""
    names, values = rows
    if output == "json":
        return "\n".join(json.dumps(dict(zip(names, row, strict=True)), default=_text) for row in values)
    if output == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([["" if v is None else _text(v) for v in row] for row in values])
        return stream.getvalue().rstrip("\n")
    return _table(names, [[_text(v) for v in row] for row in values], [_right(values, i) for i in range(len(names))])


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
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S") + (f".{value.microsecond:06}" if value.microsecond else "")
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)
