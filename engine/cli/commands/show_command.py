"""`engine show`: rows of a table, or of a query run as a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.command_setup import CommandSettings, Warnings, check_project, compiled, log_file, warn
from engine.cli.console.amounts import amount
from engine.cli.console.rows_text import Rows, format_rows
from engine.cli.console.safe_output import plain, write
from engine.compile import Manifest, Model
from engine.errors import ProjectError, RunError, UsageError, near

if TYPE_CHECKING:
    from engine.lake.lake_reader import Lake
    from engine.relations import Relation

# Types, and not the names of fields.
_VARIANT = re.compile(r"\bvariant\b(?! *:)")
_ZONED = re.compile(r"\btimestamp\b(?! *:)")
_QUARANTINE = "__quarantine"
_DIRECTIONS = ("asc", "desc")


@dataclass(frozen=True, slots=True)
class RowsWanted:
    """Which rows to print, and how.

    Attributes:
        limit: of rows; None: all of them.
        sort: columns to sort by, each with True if descending.
        output: text, markdown, csv, json or parquet.
        file: to write instead of standard output.
    """

    limit: int | None = 10
    sort: tuple[tuple[str, bool], ...] = ()
    output: str = "text"
    file: Path | None = None


def read_sort(text: str | None) -> tuple[tuple[str, bool], ...]:
    """Read `amount desc, id`.

    Raises:
        UsageError: it is something else.
    """
    found = []
    for part in (text or "").split(",") if text else ():
        words = part.split()
        direction = words.pop().lower() if len(words) > 1 and words[-1].lower() in _DIRECTIONS else ""
        name = " ".join(words).removeprefix("`").removesuffix("`")
        if not name:
            raise UsageError("usage", f"--sort cannot be '{part.strip()}'", "Example: --sort 'amount desc, id'")
        found.append((name, direction == "desc"))
    return tuple(found)


def show_table(chosen: CommandSettings, name: str | None, wanted: RowsWanted) -> None:
    """Print rows of a stored table, without Java unless it has a VARIANT column."""
    from engine.lake.lake_reader import Lake

    result = compiled(chosen, warnings=Warnings.SELECTED)
    if (quarantined := _quarantine(result.manifest, name)) is not None:
        _print_quarantine(Lake(result.target.catalog), quarantined, wanted)
        return
    model = _model(result.manifest, name)
    warn(chosen, result.manifest, [model.id], daily=True)
    if model.computed_when_read:
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
            _no_parquet(wanted, "of a table with a VARIANT column")
            rows = preview(
                result.manifest, result.target, chosen.root, model, more(wanted), chosen.target_dir,
                stored=True, sort=wanted.sort,
            )  # fmt: skip
        print_rows((rows.names, rows.rows), rows.types, wanted)
        return
    _check_sort(wanted, [column.name for column in columns])
    if wanted.output == "parquet":
        _write_parquet(lake, relation, wanted)
        return
    total = lake.count(relation.schema, relation.name)
    rows_ = lake.rows(relation.schema, relation.name, wanted.limit, wanted.sort) or ([], [])
    print_rows(rows_, types, wanted, total)


def _check_sort(wanted: RowsWanted, names: Sequence[str]) -> None:
    for name, _ in wanted.sort:
        if name not in names:
            raise UsageError("usage", f"column '{name}' not found", near(name, names))


def _no_parquet(wanted: RowsWanted, what: str) -> None:
    if wanted.output == "parquet":
        raise UsageError(
            "usage", f"--output parquet cannot write rows {what}", "Use --table with a stored model, or --output json."
        )


def _write_parquet(lake: Lake, relation: Relation, wanted: RowsWanted) -> None:
    if wanted.file is None:
        raise UsageError("usage", "--output parquet needs a file", "Example: --output parquet --out rows.parquet")
    from pyarrow import parquet

    table = lake.arrow(relation.schema, relation.name, wanted.limit, wanted.sort)
    with _file(wanted.file):
        parquet.write_table(table, wanted.file)
    write(f"Wrote {amount(table.num_rows, 'row')} to {wanted.file}")


@contextmanager
def _file(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise RunError("output-unwritable", message, "Choose another file with --out.") from error


def more(wanted: RowsWanted) -> int | None:
    """One row more than is printed, to know whether there are more."""
    return None if wanted.limit is None else wanted.limit + 1


def _quarantine(manifest: Manifest, name: str | None) -> Model | None:
    """The model of whose quarantine a name is; None: it is the name of a model, or of neither."""
    models = {m.name: m for m in manifest.models}
    return models.get((name or "").removesuffix(_QUARANTINE)) if name not in models else None


def _print_quarantine(lake: Lake, model: Model, wanted: RowsWanted) -> None:
    relation = replace(model.relation, name=model.relation.name + _QUARANTINE)
    columns = lake.columns(relation.schema, relation.name)
    if columns is None:
        hint = f"It is made with the first quarantined record. The model's own rows: engine show {model.name} --table"
        raise RunError("table-missing", f"the table {relation} does not exist", hint, node=model.name)
    _no_parquet(wanted, "of a quarantine")
    _check_sort(wanted, [column.name for column in columns])
    total = lake.count(relation.schema, relation.name)
    names, rows = lake.rows(relation.schema, relation.name, wanted.limit, wanted.sort) or ([], [])
    shown = [tuple(v.decode(errors="replace") if isinstance(v, bytes) else v for v in row) for row in rows]
    print_rows((names, shown), [column.type for column in columns], wanted, total)


def show_query(chosen: CommandSettings, name: str | None, inline: str | None, wanted: RowsWanted) -> None:
    from engine.api.inline_query import compile_query
    from engine.runtime.operations.preview import preview

    if (name is None) == (inline is None):
        raise UsageError("usage", "show needs a model or --inline", "Example: engine show departures_hourly")
    _no_parquet(wanted, "of a query")
    with log_file(chosen):
        if inline is not None:
            result, model = compile_query(chosen.project, inline)
        else:
            result = compiled(chosen, warnings=Warnings.SELECTED)
            model = _model(result.manifest, name)
            warn(chosen, result.manifest, [model.id], daily=True)
        rows = preview(
            result.manifest, result.target, chosen.root, model, more(wanted), chosen.target_dir, sort=wanted.sort
        )
    print_rows((rows.names, rows.rows), rows.types, wanted)


def print_rows(rows: Rows, types: Sequence[str], wanted: RowsWanted, total: int | None = None) -> None:
    """Print rows; for people also how many there are, and that times are in UTC."""
    names, values = rows
    shown = values[: wanted.limit]
    text = format_rows((names, shown), wanted.output)
    if wanted.file is not None:
        with _file(wanted.file):
            wanted.file.write_text(plain(text) + "\n", encoding="utf-8")
        write(f"Wrote {amount(len(shown), 'row')} to {wanted.file}")
        return
    write(text)
    if wanted.output != "text":
        return
    if total is not None and total > len(shown):
        write(f"{len(shown):,} of {amount(total, 'row')}; -n or --all shows more.")
    elif len(values) > len(shown):
        write(f"The first {amount(len(shown), 'row')}; -n or --all shows more.")
    if any(_ZONED.search(type_) for type_ in types):
        write("Timestamps are in UTC.")


def show_source(chosen: CommandSettings, name: str) -> None:
    """Print the declaration of a source with its current columns; of the project's errors only its own count."""
    from engine.runtime.operations.inspect_source import inspect, unreadable_settings

    check_project(chosen)
    result = chosen.project.compile()
    plain = name.removeprefix("source.").removeprefix("source:")
    sources = {source.name: source for source in result.manifest.sources}
    if plain not in sources:
        raise UsageError("usage", f"source '{name}' not found", near(plain, sources))
    if errors := unreadable_settings(sources[plain], result.manifest):
        raise ProjectError.of(errors)
    with log_file(chosen):
        write(inspect(sources[plain], result.target, chosen.root, chosen.target_dir), end="")


def _model(manifest: Manifest, name: str | None) -> Model:
    models = {m.name: m for m in manifest.models}
    if name not in models:
        raise UsageError("usage", f"model '{name}' not found", near(name or "", models))
    return models[name]
