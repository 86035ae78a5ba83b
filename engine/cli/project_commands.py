"""Commands that answer from the files of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.api import Selection
from engine.cli.arguments import Command, Group
from engine.cli.command_setup import CommandSettings, Warnings, compiled, selected
from engine.cli.console.amounts import amount
from engine.cli.exits import carry_out
from engine.cli.options import Several, defer_options, output_options, project_options, selection_options, split
from engine.errors import UsageError


@click.command(cls=Command)
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["files", "kafka", "cdc"]),
    default="files",
    show_default=True,
    help="files: JSON lines and an hourly window; kafka: the same from a topic; cdc: change events merged by key.",
)
@output_options
def init(folder: Path, template: str, **shared: Any) -> int:
    """Create a sample project: sources with data, models, a unit test, a CI workflow."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.init_command import create_project

        files = create_project(chosen.root / folder, template)
        chosen.out.say(f"Created {folder} ({amount(len(files), 'file')}). Next: cd {folder} && engine build")

    return carry_out(work, **shared)


@click.command(cls=Command)
@selection_options
@project_options
def parse(**options: Any) -> int:
    """Read the project and report all errors."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.compile_command import parse

        parse(chosen, wanted)

    wanted, shared = split(options)
    return carry_out(work, **shared)


@click.command("compile", cls=Command)
@click.option(
    "--inline", metavar="SQL", help="Print the compiled SQL of this query instead; it may use ref() and source()."
)
@defer_options
@selection_options
@project_options
def compile_(inline: str | None, **options: Any) -> int:
    """Report all errors and write target/compiled/ and target/manifest.json; with a selection, print its SQL."""

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.compile_command import compile_, compile_inline

        if inline is not None:
            if wanted != Selection():
                raise UsageError("usage", "--inline cannot be combined with a selection", "Remove one of them.")
            compile_inline(chosen, inline, as_json=shared["log_format"] == "json")
            return True
        return compile_(chosen, wanted, as_json=shared["log_format"] == "json")

    wanted, shared = split(options)
    return carry_out(work, **shared)


@click.command(cls=Command)
@click.option("--output", type=click.Choice(["text", "name", "path", "json"]), default="text", help="What to print.")
@click.option("--output-keys", cls=Several, metavar="KEY", help="With --output json: the keys to print (default: all).")
@click.option(
    "--resource-type", type=click.Choice(["model", "source", "test", "unit_test", "exposure", "all"]), default="all"
)
@click.option("--orphans", is_flag=True, help="List tables whose model no longer exists.")
@defer_options
@selection_options
@project_options
def ls(output: str, output_keys: tuple[str, ...], resource_type: str, *, orphans: bool, **options: Any) -> int:
    """List nodes in build order."""

    def work(chosen: CommandSettings) -> None:
        if orphans:
            from engine.cli.commands.drop_command import list_orphans

            if wanted != Selection():
                raise UsageError(
                    "usage",
                    "--orphans cannot be combined with a selection",
                    "Remove the selection: orphans belong to no model.",
                )
            list_orphans(chosen, output)
            return
        from engine.cli.commands.ls_command import read_keys, write_lines

        keys = read_keys(output, output_keys)
        result = compiled(chosen, heard=False, warnings=Warnings.SELECTED)
        nodes = selected(chosen, result.manifest, wanted, tell=output == "text", daily=True)
        manifest = chosen.project.defer(result, nodes, wanted).manifest
        write_lines(manifest, nodes, output, resource_type, keys)

    wanted, shared = split(options)
    return carry_out(work, **shared)


@click.command(cls=Command)
@click.argument("column", required=False)
@click.option("--impact", is_flag=True, help="Also show what removing the column would break.")
@click.option("--output", type=click.Choice(["text", "json", "mermaid", "dot"]), default="text", help="What to print.")
@selection_options
@project_options
def lineage(column: str | None, impact: bool, output: str, **options: Any) -> int:
    """Trace a COLUMN (model.column) to its sources; without COLUMN, print the graph of the selection."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.docs_command import lineage

        lineage(chosen, column, wanted, output, impact=impact)

    wanted, shared = split(options)
    return carry_out(work, **shared)


@click.group(cls=Group)
def docs() -> None:
    """Generate and serve the lineage site."""


@docs.command()
@project_options
def generate(**shared: Any) -> int:
    """Write the lineage site to target/docs/ and the artifacts to target/."""

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.docs_command import generate

        return generate(chosen)

    return carry_out(work, **shared)


@docs.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to serve on; 0 picks a free one.",
)
@click.option("--no-reload", is_flag=True, help="Do not regenerate the site after edits and runs.")
@project_options
def serve(port: int, no_reload: bool, **shared: Any) -> int:
    """Serve the site on 127.0.0.1 until Ctrl-C."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.docs_command import serve

        serve(chosen, port, reload=not no_reload)

    return carry_out(work, **shared)


COMMANDS = (init, parse, compile_, ls, lineage, docs)
