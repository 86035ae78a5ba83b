"""`engine compare`: two versions of a table, in numbers."""

from __future__ import annotations

from typing import Any

from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, find_model, log_file
from engine.cli.console.rows_text import format_rows
from engine.cli.console.safe_output import write, write_json
from engine.runtime.operations.compare_versions import ComparedColumn, VersionDifference, compare


def show_difference(settings: CommandSettings, name: str, output: str) -> None:
    """Print how the rows of a model differ from those of before.

    Raises:
        UsageError: there is no such model, or nothing to compare it with.
        RunError: `query-failed`.
        SetupError: Spark or the catalog cannot be had.
    """
    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        model = find_model(result.manifest, name)
        difference = compare(result.manifest, result.target, settings.root, model, settings.target_dir)
    if output == "json":
        write_json({"model": name, **difference_record(difference)})
        return
    write(f"{name}: {difference.description}")
    for text in difference_text(difference, output):
        write(text)


def difference_text(difference: VersionDifference, output: str) -> tuple[str, str]:
    return format_rows(_counts(difference), output), format_rows(_columns(difference), output)


def _counts(difference: VersionDifference) -> tuple[list[str], list[tuple[Any, ...]]]:
    lines: list[tuple[Any, ...]] = [("rows", *difference.rows)]
    if difference.only is not None:
        label = f"only there, by {', '.join(difference.key)}" if difference.key else "rows only there"
        lines.append((label, *difference.only))
    if difference.key:
        lines.append(("other values of the same key", difference.differing, difference.differing))
    return ["", "before", "now"], lines


def _columns(difference: VersionDifference) -> tuple[list[str], list[tuple[Any, ...]]]:
    names = ["column", "type", *(["differs in"] if difference.key else []), "sum before", "sum now"]
    lines = []
    for column in difference.columns:
        numbers = [*([column.differing] if difference.key else []), *(column.sums or (None, None))]
        lines.append((column.name, _type(column), *("" if number is None else number for number in numbers)))
    return names, lines


def _type(column: ComparedColumn) -> str:
    if column.earlier_type is None:
        return f"{column.later_type} (new)"
    if column.later_type is None:
        return f"{column.earlier_type} (gone)"
    return (
        column.later_type
        if column.earlier_type == column.later_type
        else f"{column.earlier_type}, now {column.later_type}"
    )


def difference_record(difference: VersionDifference) -> dict[str, Any]:
    columns = [
        {
            "name": column.name,
            "before": column.earlier_type,
            "now": column.later_type,
            "differing": column.differing,
            "sums": list(column.sums) if column.sums is not None else None,
        }
        for column in difference.columns
    ]
    only = list(difference.only) if difference.only is not None else None
    return {
        "what": difference.description,
        "same": difference.is_empty,
        "rows": list(difference.rows),
        "key": list(difference.key),
        "only": only,
        "differing": difference.differing,
        "columns": columns,
    }
