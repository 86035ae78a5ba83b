"""`engine export duckdb`: copies of stored tables in a DuckDB file."""

from __future__ import annotations

from pathlib import Path

from engine.api import Selection
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, require_extra, select_and_report
from engine.cli.console.amounts import amount
from engine.compile import Model
from engine.errors import UsageError
from engine.lake.lake_reader import Lake


def export_copies(settings: CommandSettings, selection: Selection, file: Path, *, replace: bool) -> None:
    """Write a file with a copy of each selected table that is built.

    Raises:
        UsageError: the extra `sql` is not installed; the file exists, or cannot be written.
        SetupError: a table cannot be read.
    """
    require_extra("duckdb", "sql")
    from engine.lake.queries.duckdb_file import write_copies

    result = compile_and_report(settings, warnings=Warnings.SELECTED)
    nodes = [result.manifest.nodes[node] for node in select_and_report(settings, result.manifest, selection)]
    path = settings.root / file
    _check(path, settings.root, replace=replace)
    models = [node for node in nodes if isinstance(node, Model)]
    tables_of_rows = [m for m in models if m.keeps_rows]
    tables = [(model.name, (model.relation.schema, model.relation.name)) for model in tables_of_rows]
    copied, unreadable = write_copies(Lake(result.target.catalog), tables, path)
    without_rows = [model.name for model in models if model not in tables_of_rows]
    for listed, why in ((unreadable, "not built yet, or with a VARIANT column"), (without_rows, "views store no rows")):
        if listed:
            settings.out.say(f"Not copied: {', '.join(listed)} ({why})")
    settings.out.say(f"Wrote {file} with {amount(len(copied), 'table')}")


def _check(path: Path, root: Path, *, replace: bool) -> None:
    if not replace and (path.exists() or path.is_symlink()):
        raise UsageError("usage", f"'{path}' exists", "Replace it with --replace, or choose another name.")
    inside = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
    if any(folder.is_symlink() for folder in inside):
        raise UsageError("usage", f"a folder of '{path}' is a symlink in the project", "Name a file in another folder.")
