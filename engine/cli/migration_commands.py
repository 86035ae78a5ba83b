"""Commands that bring a project from another tool, and tables to one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli.arguments import Command, Group
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, select_and_report
from engine.cli.console.safe_output import write
from engine.cli.exits import run_command
from engine.cli.options import output_options, project_options, selection_options, split

if TYPE_CHECKING:
    from engine_import.output.import_report import ImportReport

_OUT = click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder for the new project. It must be empty or must not exist.",
)

_ALL = click.option(
    "--must-compile", is_flag=True, help="Exit with code 1 unless all models are imported and compile (for scripts)."
)


@click.group("import", cls=Group)
def import_() -> None:
    """Import a dbt or Flare project."""


@import_.command()
@click.argument("folder", metavar="TARGET_DIR", type=click.Path(path_type=Path))
@_OUT
@click.option(
    "--incremental",
    type=click.Choice(["draft", "table"]),
    default="draft",
    show_default=True,
    help="draft: import incremental models as drafts that you complete; table: import them as batch tables.",
)
@_ALL
@output_options
def dbt(folder: Path, out: Path, incremental: Any, *, must_compile: bool, **shared: Any) -> int:
    """Import a dbt project from its manifest.json in TARGET_DIR (usually target/). Does not run its code."""

    def work(settings: CommandSettings) -> bool:
        from engine_import.dbt.import_dbt import import_dbt

        report = import_dbt(settings.root / folder, settings.root / out, incremental=incremental)
        _show(settings, report, out, as_json=shared["log_format"] == "json")
        return report.whole or not must_compile

    return run_command(work, **shared)


@import_.command()
@click.argument("file", metavar="JOB.yml", type=click.Path(path_type=Path))
@_OUT
@_ALL
@output_options
def flare(file: Path, out: Path, *, must_compile: bool, **shared: Any) -> int:
    """Import a Flare job: inputs become sources, steps become models, outputs become tables."""

    def work(settings: CommandSettings) -> bool:
        from engine_import.flare.import_flare import import_flare

        report = import_flare(settings.root / file, settings.root / out)
        _show(settings, report, out, as_json=shared["log_format"] == "json")
        return report.whole or not must_compile

    return run_command(work, **shared)


def _show(settings: CommandSettings, report: ImportReport, out: Path, *, as_json: bool) -> None:
    if as_json:
        write(report.to_json(), end="")
        return
    for line in report.lines():
        settings.out.say(line)
    settings.out.say(f"Written to {out}; details: {out / 'import-report.md'}. Next: cd {out} && engine compile")


@click.group(cls=Group)
def export() -> None:
    """Export metadata or tables for other tools."""


@export.command("dbt-sources", cls=Command)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Output file (default: standard output).")
@click.option(
    "--database",
    metavar="NAME",
    help="Database name in dbt (default: the catalog name); '' if the adapter has no databases.",
)
@selection_options
@project_options
def dbt_sources_(out: Path | None, database: str | None, **options: Any) -> int:
    """Write tables and views as dbt sources, with columns, descriptions and tests."""

    def work(settings: CommandSettings) -> None:
        from engine.compile import Model
        from engine.docs.export_dbt_sources import dbt_sources, write_sources

        manifest = compile_and_report(
            settings, show_template_output=out is not None, warnings=Warnings.SELECTED
        ).manifest
        nodes = [
            manifest.nodes[name]
            for name in select_and_report(settings, manifest, selection, report_empty=out is not None)
        ]
        text = dbt_sources(manifest, [node for node in nodes if isinstance(node, Model)], database)
        if out is None:
            write(text, end="")
            return
        write_sources(text, settings.root / out)
        settings.out.say(f"Wrote {out}")

    selection, shared = split(options)
    return run_command(work, **shared)


@export.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--replace", is_flag=True, help="Replace FILE if it exists.")
@selection_options
@project_options
def duckdb(file: Path, *, replace: bool, **options: Any) -> int:
    """Copy stored tables into a DuckDB file, for tools that cannot read Iceberg. Needs the Python extra 'sql'."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.export_command import export_copies

        export_copies(settings, selection, file, replace=replace)

    selection, shared = split(options)
    return run_command(work, **shared)


COMMANDS = (import_, export)
