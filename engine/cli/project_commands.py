"""Commands that answer from the files of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.api import Selection
from engine.cli.arguments import Command, Group
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, select_and_report
from engine.cli.console.amounts import amount
from engine.cli.exits import run_command
from engine.cli.options import Several, defer_options, output_options, project_options, selection_options, split
from engine.errors import UsageError


@click.command(cls=Command)
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["files", "kafka", "cdc", "debezium"]),
    default="files",
    show_default=True,
    help="files: JSON Lines files with an hourly window; kafka: the same data from a topic; cdc: change events "
    "merged by key; debezium: change events from Debezium.",
)
@output_options
def init(folder: Path, template: str, **shared: Any) -> int:
    """Create a sample project with data, models, a unit test and a CI workflow."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.init_command import create_project

        files = create_project(settings.root / folder, template)
        settings.out.say(f"Created {folder} ({amount(len(files), 'file')}). Next: cd {folder} && engine build")

    return run_command(work, **shared)


@click.command(cls=Command)
@selection_options
@project_options
def parse(**options: Any) -> int:
    """Read the project and report its errors."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.compile_command import parse

        parse(settings, selection)

    selection, shared = split(options)
    return run_command(work, **shared)


@click.command("compile", cls=Command)
@click.option(
    "--inline", metavar="SQL", help="Compile this query and print its SQL. The query can use ref() and source()."
)
@defer_options
@selection_options
@project_options
def compile_(inline: str | None, **options: Any) -> int:
    """Compile the project to target/ and report all errors. With a selection, print the compiled SQL."""

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.compile_command import compile_, compile_inline

        if inline is not None:
            if selection != Selection():
                raise UsageError("usage", "--inline cannot be combined with a selection", "Remove one of them.")
            compile_inline(settings, inline, as_json=shared["log_format"] == "json")
            return True
        return compile_(settings, selection, as_json=shared["log_format"] == "json")

    selection, shared = split(options)
    return run_command(work, **shared)


@click.command(cls=Command)
@click.option("--output", type=click.Choice(["text", "name", "path", "json"]), default="text", help="Output format.")
@click.option("--output-keys", cls=Several, metavar="KEY", help="With --output json: keys to print (default: all).")
@click.option(
    "--resource-type",
    type=click.Choice(["model", "source", "test", "unit_test", "exposure", "sink", "all"]),
    default="all",
    help="List only nodes of this kind.",
)
@click.option("--orphans", is_flag=True, help="List tables without a model.")
@defer_options
@selection_options
@project_options
def ls(output: str, output_keys: tuple[str, ...], resource_type: str, *, orphans: bool, **options: Any) -> int:
    """List models, sources and tests in build order."""

    def work(settings: CommandSettings) -> None:
        if orphans:
            from engine.cli.commands.drop_command import list_orphans

            if selection != Selection():
                raise UsageError(
                    "usage",
                    "--orphans cannot be combined with a selection",
                    "Remove the selection: orphans belong to no model.",
                )
            list_orphans(settings, output)
            return
        from engine.cli.commands.ls_command import read_keys, write_lines

        keys = read_keys(output, output_keys)
        result = compile_and_report(settings, show_template_output=False, warnings=Warnings.SELECTED)
        nodes = select_and_report(settings, result.manifest, selection, report_empty=output == "text", daily=True)
        manifest = settings.project.defer(result, nodes, selection).manifest
        write_lines(manifest, nodes, output, resource_type, keys)

    selection, shared = split(options)
    return run_command(work, **shared)


@click.command(cls=Command)
@click.argument("column", required=False)
@click.option("--impact", is_flag=True, help="Also list the models that fail if the column is removed.")
@click.option("--output", type=click.Choice(["text", "json", "mermaid", "dot"]), default="text", help="Output format.")
@selection_options
@project_options
def lineage(column: str | None, impact: bool, output: str, **options: Any) -> int:
    """Trace a COLUMN (model.column) to its sources. Without COLUMN, print the lineage graph of the selection."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.docs_command import lineage

        lineage(settings, column, selection, output, impact=impact)

    selection, shared = split(options)
    return run_command(work, **shared)


@click.group(cls=Group)
def docs() -> None:
    """Generate and serve the lineage site."""


@docs.command()
@click.option(
    "--compare",
    metavar="STATE",
    type=click.Path(path_type=Path, file_okay=False),
    help="Show changes since the manifest.json in this folder.",
)
@click.option(
    "--rows",
    metavar="N",
    type=click.IntRange(0, 100),
    default=0,
    help="Show N rows and a profile of each table, without personal data.",
)
@project_options
def generate(compare: Path | None, rows: int, **shared: Any) -> int:
    """Write the lineage site to target/docs/ and the artifacts to target/."""

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.docs_command import generate

        return generate(settings, compare, rows)

    return run_command(work, **shared)


@docs.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to serve on; 0 picks a free port.",
)
@click.option("--no-reload", is_flag=True, help="Do not update the site after edits and runs.")
@project_options
def serve(port: int, no_reload: bool, **shared: Any) -> int:
    """Serve the site on 127.0.0.1 until Ctrl-C."""

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.docs_command import serve

        serve(settings, port, reload=not no_reload)

    return run_command(work, **shared)


COMMANDS = (init, parse, compile_, ls, lineage, docs)
