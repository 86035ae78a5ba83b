"""`engine show`: rows of a table, or of a query run as a batch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.command_setup import (
    CommandSettings,
    Warnings,
    check_project,
    compile_and_report,
    log_file,
    print_warnings,
)
from engine.cli.console.amounts import amount
from engine.cli.console.rows_text import Rows, format_rows
from engine.cli.console.safe_output import plain, write
from engine.compile import Manifest, Model, Source, Target
from engine.errors import ProjectError, RunError, UsageError, near
from engine.times import duration_text

if TYPE_CHECKING:
    from engine.lake.lake_reader import Lake
    from engine.relations import Relation

# Types, and not the names of fields.
_VARIANT = re.compile(r"\bvariant\b(?! *:)")
_ZONED = re.compile(r"\btimestamp\b(?! *:)")
_QUARANTINE = "__quarantine"
_DIRECTIONS = ("asc", "desc")


@dataclass(frozen=True, slots=True)
class PrintOptions:
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
    """Read `amount desc, id`. Raises UsageError: it is something else."""
    columns = []
    for part in (text or "").split(",") if text else ():
        words = part.split()
        direction = words.pop().lower() if len(words) > 1 and words[-1].lower() in _DIRECTIONS else ""
        name = " ".join(words).removeprefix("`").removesuffix("`")
        if not name:
            raise UsageError("usage", f"--sort cannot be '{part.strip()}'", "Example: --sort 'amount desc, id'")
        columns.append((name, direction == "desc"))
    return tuple(columns)


def show_table(settings: CommandSettings, name: str | None, print_options: PrintOptions) -> None:
    """Print rows of a stored table, without Java unless it has a VARIANT column."""
    from engine.lake.lake_reader import Lake

    result = compile_and_report(settings, warnings=Warnings.SELECTED)
    if (quarantined_model := _quarantine(result.manifest, name)) is not None:
        _print_quarantine(Lake(result.target.catalog), quarantined_model, print_options)
        return
    model = _model(result.manifest, name)
    print_warnings(settings, result.manifest, [model.id], daily=True)
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

        with log_file(settings):
            _no_parquet(print_options, "of a table with a VARIANT column")
            rows = preview(
                result.manifest, result.target, settings.root, model, more(print_options), settings.target_dir,
                of_table=True, sort=print_options.sort,
            )  # fmt: skip
        print_rows((rows.names, rows.rows), rows.types, print_options)
        return
    _check_sort(print_options, [column.name for column in columns])
    if print_options.output == "parquet":
        _write_parquet(lake, relation, print_options)
        return
    total = lake.count(relation.schema, relation.name)
    rows_ = lake.rows(relation.schema, relation.name, print_options.limit, print_options.sort) or ([], [])
    print_rows(rows_, types, print_options, total)


def _check_sort(print_options: PrintOptions, names: Sequence[str]) -> None:
    for name, _ in print_options.sort:
        if name not in names:
            raise UsageError("usage", f"column '{name}' not found", near(name, names))


def _no_parquet(print_options: PrintOptions, kind_of_rows: str) -> None:
    if print_options.output == "parquet":
        raise UsageError(
            "usage",
            f"--output parquet cannot write rows {kind_of_rows}",
            "Use --table with a stored model, or --output json.",
        )


def _write_parquet(lake: Lake, relation: Relation, print_options: PrintOptions) -> None:
    if print_options.file is None:
        raise UsageError("usage", "--output parquet needs a file", "Example: --output parquet --out rows.parquet")
    from pyarrow import parquet

    table = lake.arrow(relation.schema, relation.name, print_options.limit, print_options.sort)
    with _file(print_options.file):
        parquet.write_table(table, print_options.file)
    write(f"Wrote {amount(table.num_rows, 'row')} to {print_options.file}")


@contextmanager
def _file(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise RunError("output-unwritable", message, "Choose another file with --out.") from error


def more(print_options: PrintOptions) -> int | None:
    """One row more than is printed, to know whether there are more."""
    return None if print_options.limit is None else print_options.limit + 1


def _quarantine(manifest: Manifest, name: str | None) -> Model | None:
    """The model of whose quarantine a name is; None: it is the name of a model, or of neither."""
    models = {m.name: m for m in manifest.models}
    return models.get((name or "").removesuffix(_QUARANTINE)) if name not in models else None


def _print_quarantine(lake: Lake, model: Model, print_options: PrintOptions) -> None:
    relation = replace(model.relation, name=model.relation.name + _QUARANTINE)
    columns = lake.columns(relation.schema, relation.name)
    if columns is None:
        hint = f"It is made with the first quarantined record. The model's own rows: engine show {model.name} --table"
        raise RunError("table-missing", f"the table {relation} does not exist", hint, node=model.name)
    _no_parquet(print_options, "of a quarantine")
    _check_sort(print_options, [column.name for column in columns])
    total = lake.count(relation.schema, relation.name)
    names, rows = lake.rows(relation.schema, relation.name, print_options.limit, print_options.sort) or ([], [])
    printed = [tuple(v.decode(errors="replace") if isinstance(v, bytes) else v for v in row) for row in rows]
    print_rows((names, printed), [column.type for column in columns], print_options, total)


def show_query(settings: CommandSettings, name: str | None, inline: str | None, print_options: PrintOptions) -> None:
    from engine.api.inline_query import compile_query
    from engine.runtime.operations.preview import preview

    if (name is None) == (inline is None):
        raise UsageError("usage", "show needs a model or --inline", "Example: engine show departures_hourly")
    _no_parquet(print_options, "of a query")
    with log_file(settings):
        if inline is not None:
            result, model = compile_query(settings.project, inline)
        else:
            result = compile_and_report(settings, warnings=Warnings.SELECTED)
            model = _model(result.manifest, name)
            print_warnings(settings, result.manifest, [model.id], daily=True)
        rows = preview(
            result.manifest,
            result.target,
            settings.root,
            model,
            more(print_options),
            settings.target_dir,
            sort=print_options.sort,
        )
    print_rows((rows.names, rows.rows), rows.types, print_options)


def print_rows(rows: Rows, types: Sequence[str], print_options: PrintOptions, total: int | None = None) -> None:
    """Print rows; for people also how many there are, and that times are in UTC."""
    names, values = rows
    printed = values[: print_options.limit]
    text = format_rows((names, printed), print_options.output)
    if print_options.file is not None:
        with _file(print_options.file):
            print_options.file.write_text(plain(text) + "\n", encoding="utf-8")
        write(f"Wrote {amount(len(printed), 'row')} to {print_options.file}")
        return
    write(text)
    if print_options.output != "text":
        return
    if total is not None and total > len(printed):
        write(f"{len(printed):,} of {amount(total, 'row')}; -n or --all shows more.")
    elif len(values) > len(printed):
        write(f"The first {amount(len(printed), 'row')}; -n or --all shows more.")
    if any(_ZONED.search(type_) for type_ in types):
        write("Timestamps are in UTC.")


def show_source(settings: CommandSettings, name: str) -> None:
    """Print the declaration of a source with its current columns; of the project's errors only its own count."""
    from engine.runtime.operations.inspect_source import inspect

    source, target = _readable_source(settings, name)
    with log_file(settings):
        write(inspect(source, target, settings.root, settings.target_dir), end="")


def show_lateness(settings: CommandSettings, name: str, event_time: str) -> None:
    """Print how late the rows of a source arrive, and the delay of a watermark that covers 99.9 percent of them."""
    from engine.runtime.operations.measure_lateness import measure_lateness

    source, target = _readable_source(settings, name)
    with log_file(settings):
        lateness = measure_lateness(source, event_time, target, settings.root, settings.target_dir)
    write(f"{amount(lateness.rows, 'row')} of {source.name}, {lateness.late_rows:,} of them behind an earlier arrival")
    if lateness.without_time or lateness.bad_records:
        ignored = amount(lateness.bad_records, "bad record")
        write(f"Ignored: {amount(lateness.without_time, 'row')} without '{event_time}', {ignored}")
    for label, seconds in zip(("50 %", "95 %", "99 %", "99.9 %", "all"), lateness.percentiles, strict=True):
        write(f"  {label:>6}  {f'at most {_rounded_up(seconds)} late' if seconds else 'on time'}")
    write(f"Suggestion: watermark: {event_time} delay {duration_text(lateness.delay_seconds)}")


def _rounded_up(seconds: float) -> str:
    """Return a duration in whole seconds, from two minutes on in minutes, from two hours on in hours."""
    unit = next((size for size in (3600, 60) if seconds >= 2 * size), 1)
    return duration_text(math.ceil(seconds / unit) * unit)


def _readable_source(settings: CommandSettings, name: str) -> tuple[Source, Target]:
    from engine.runtime.operations.inspect_source import unreadable_settings

    check_project(settings)
    result = settings.project.compile()
    source_name = name.removeprefix("source.").removeprefix("source:")
    sources = {source.name: source for source in result.manifest.sources}
    if source_name not in sources:
        raise UsageError("usage", f"source '{name}' not found", near(source_name, sources))
    if errors := unreadable_settings(sources[source_name], result.manifest):
        raise ProjectError.from_diagnostics(errors)
    return sources[source_name], result.target


def _model(manifest: Manifest, name: str | None) -> Model:
    models = {m.name: m for m in manifest.models}
    if name not in models:
        raise UsageError("usage", f"model '{name}' not found", near(name or "", models))
    return models[name]
