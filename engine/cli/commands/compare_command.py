"""`engine compare`: two versions of a table, in numbers."""

from __future__ import annotations

from typing import Any

from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, named_model
from engine.cli.console.rows_text import format_rows
from engine.cli.console.safe_output import write, write_json
from engine.runtime.operations.compare_versions import ComparedColumn, VersionDifference, compare


def show_difference(chosen: CommandSettings, name: str, output: str) -> None:
    """Print how the rows of a model differ from those of before.

    Raises:
        UsageError: there is no such model, or nothing to compare it with.
        RunError: `query-failed`.
        SetupError: Spark or the catalog cannot be had.
    """
    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        model = named_model(result.manifest, name)
        found = compare(result.manifest, result.target, chosen.root, model, chosen.target_dir)
    if output == "json":
        write_json({"model": name, **difference_record(found)})
        return
    write(f"{name}: {found.what}")
    for text in difference_text(found, output):
        write(text)


def difference_text(found: VersionDifference, output: str) -> tuple[str, str]:
    return format_rows(_counts(found), output), format_rows(_columns(found), output)


def _counts(found: VersionDifference) -> tuple[list[str], list[tuple[Any, ...]]]:
    lines: list[tuple[Any, ...]] = [("rows", *found.rows)]
    if found.only is not None:
        what = f"only there, by {', '.join(found.key)}" if found.key else "rows only there"
        lines.append((what, *found.only))
    if found.key:
        lines.append(("other values of the same key", found.differing, found.differing))
    return ["", "before", "now"], lines


def _columns(found: VersionDifference) -> tuple[list[str], list[tuple[Any, ...]]]:
    names = ["column", "type", *(["differs in"] if found.key else []), "sum before", "sum now"]
    lines = []
    for column in found.columns:
        numbers = [*([column.differing] if found.key else []), *(column.sums or (None, None))]
        lines.append((column.name, _type(column), *("" if number is None else number for number in numbers)))
    return names, lines


def _type(column: ComparedColumn) -> str:
    if column.before is None:
        return f"{column.now} (new)"
    if column.now is None:
        return f"{column.before} (gone)"
    return column.now if column.before == column.now else f"{column.before}, now {column.now}"


def difference_record(found: VersionDifference) -> dict[str, Any]:
    columns = [
        {
            "name": column.name,
            "before": column.before,
            "now": column.now,
            "differing": column.differing,
            "sums": list(column.sums) if column.sums is not None else None,
        }
        for column in found.columns
    ]
    only = list(found.only) if found.only is not None else None
    return {
        "what": found.what,
        "same": found.same,
        "rows": list(found.rows),
        "key": list(found.key),
        "only": only,
        "differing": found.differing,
        "columns": columns,
    }
