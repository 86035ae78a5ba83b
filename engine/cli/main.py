"""The command `engine`: arguments in, lines and exit codes out.

Each command imports what it needs when it runs, so that --help and ls stay quick.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any, cast

import click

from engine import __version__
from engine.api import Command, RebuildOptions, RunOptions, Selection
from engine.cli.arguments import Group
from engine.cli.command_setup import CommandSettings, Warnings, check_project, compiled, log_file, selected
from engine.cli.console.terminal import open_streams, write, writing
from engine.cli.exits import INTERRUPTED, TERMINATED, carry_out, interruption, output_lost
from engine.cli.options import plan_options, project_options, run_options, selection_options, test_options
from engine.errors import UsageError

# Terminals get colours unless NO_COLOR is set (no-color.org).
_CONTEXT = {"help_option_names": ["-h", "--help"], "color": False if os.environ.get("NO_COLOR") else None}


@click.group(cls=Group, context_settings=_CONTEXT)
@click.version_option(__version__, "--version", "-V", prog_name="headrace")
def cli() -> None:
    """SQL models over streams, run by Spark into Iceberg tables, exactly once."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    open_streams()
    code = invoke(arguments)
    if code in {INTERRUPTED, TERMINATED}:
        # What is left to do takes a moment, in which impatience has nothing to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return output_lost(_invoked(arguments))


def _invoked(arguments: Sequence[str] | None) -> int:
    result: object = None
    try:
        # Its help is what click prints by itself.
        with writing(sys.stdout):
            result = cli.main(args=arguments, prog_name="engine", standalone_mode=False)
    except click.exceptions.Abort:
        return interruption(INTERRUPTED)
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        write(shown.getvalue(), error=True, end="")
        return 2
    except SystemExit:
        # click ends the process itself when the reader of its help has left.
        return 0
    return result if isinstance(result, int) else 0


@cli.command()
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(["files", "kafka", "cdc"]),
    default="files",
    show_default=True,
    help="files: JSON lines, an hourly window; kafka: the same over a topic; cdc: changes merged by key.",
)
@project_options
def init(folder: Path, template: str, **shared: Any) -> int:
    """Create a project that builds at once: sources with sample data, models, a unit test, a CI workflow."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.init_command import create_project

        files = create_project(chosen.root / folder, template)
        chosen.out.say(f"Created {folder} ({len(files)} files). Next: cd {folder} && engine build")

    return carry_out(work, **shared)


@cli.command()
@selection_options
@project_options
def parse(**options: Any) -> int:
    """Read the project and report every error."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.compile_command import parse

        parse(chosen, wanted)

    wanted, shared = _split(options)
    return carry_out(work, **shared)


@cli.command("compile")
@selection_options
@project_options
def compile_(**options: Any) -> int:
    """Report every error, and write target/compiled/ and target/manifest.json; print the SQL of what is selected."""

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.compile_command import compile_

        return compile_(chosen, wanted, as_json=shared["log_format"] == "json")

    wanted, shared = _split(options)
    return carry_out(work, **shared)


@cli.command()
@click.option("--output", type=click.Choice(["text", "name", "path", "json"]), default="text", help="What to print.")
@click.option("--resource-type", type=click.Choice(["model", "source", "test", "unit_test", "all"]), default="all")
@click.option("--orphans", is_flag=True, help="List tables that no model builds any more.")
@selection_options
@project_options
def ls(output: str, resource_type: str, *, orphans: bool, **options: Any) -> int:
    """List nodes in build order."""

    def work(chosen: CommandSettings) -> None:
        if orphans:
            from engine.cli.commands.drop import list_orphans

            if wanted != Selection():
                raise UsageError(
                    "usage",
                    "--orphans cannot be combined with a selection",
                    "Remove the selection: orphans belong to no model.",
                )
            list_orphans(chosen, output)
            return
        from engine.cli.commands.ls import write_lines

        manifest = compiled(chosen, heard=False, warnings=Warnings.SELECTED).manifest
        nodes = selected(chosen, manifest, wanted, tell=output == "text", daily=True)
        write_lines(manifest, nodes, output, resource_type)

    wanted, shared = _split(options)
    return carry_out(work, **shared)


# dbt has both names.
cli.add_command(ls, "list")


@cli.command()
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="What to print.")
@plan_options
@selection_options
@project_options
def plan(output: str, **options: Any) -> int:
    """Show what a build would do to each model, and why; nothing is started or written."""
    wanted, shared = _split(options)
    how = cast("RebuildOptions", {key: shared.pop(key) for key in RebuildOptions.__annotations__})

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.plan_command import show_plan

        return show_plan(chosen, wanted, how, output)

    return carry_out(work, **shared)


@cli.command()
@run_options
@test_options
@selection_options
@project_options
def build(**options: Any) -> int:
    """Run models and their tests, each after what it reads."""
    return _run("build", **options)


@cli.command()
@run_options
@selection_options
@project_options
def run(**options: Any) -> int:
    """Run models without their tests."""
    return _run("run", **options)


@cli.command()
@run_options
@test_options
@selection_options
@project_options
@click.option("--junit-xml", type=click.Path(path_type=Path, dir_okay=False), help="Write a report for CI.")
@click.option("--watch", is_flag=True, help="Watch files and rerun what an edit affects, until Ctrl-C.")
def test(junit_xml: Path | None, watch: bool, **options: Any) -> int:
    """Run unit tests, and the data tests of existing tables."""
    return _run("test", junit_xml, watch=watch, **options)


def _run(command: Command, junit: Path | None = None, *, watch: bool = False, **options: Any) -> int:
    wanted, shared = _split(options)
    how = cast("RunOptions", {key: shared.pop(key) for key in RunOptions.__annotations__ if key in shared})

    def work(chosen: CommandSettings) -> bool:
        if watch and junit is not None:
            raise UsageError(
                "usage", "--watch and --junit-xml cannot be combined", "Use one of them: a report covers one run."
            )
        if watch:
            from engine.cli.commands.test_watch import watch_tests

            return watch_tests(chosen, wanted, how)
        from engine.cli.commands.build_command import run_nodes

        return run_nodes(chosen, command, wanted, how, junit)

    stopped = "" if command == "test" else "the next build continues where this one stopped"
    return carry_out(work, stopped=stopped, **shared)


def _split(options: Mapping[str, Any]) -> tuple[Selection, dict[str, Any]]:
    """The selection among a command's options, and the rest."""
    names = {f.name for f in fields(Selection)}
    chosen = Selection(**{key: value for key, value in options.items() if key in names})
    return chosen, {key: value for key, value in options.items() if key not in names}


@cli.command()
@click.argument("model", required=False)
@click.option("-s", "--select", "chosen_model", metavar="MODEL", help="The same as the argument MODEL.")
@click.option("--inline", metavar="SQL", help="A query instead of a model; may use ref() and source().")
@click.option("--table", is_flag=True, help="Print the stored table, without Java unless it has a VARIANT column.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=10, show_default=True, help="Rows to print.")
@click.option("--output", type=click.Choice(["text", "json", "csv"]), default="text")
@project_options
def show(
    model: str | None, chosen_model: str | None, inline: str | None, table: bool, limit: int, output: str, **shared: Any
) -> int:
    """Run a model's query over all there is now, open windows included, and print some rows."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.show import show_query, show_table

        if model and chosen_model:
            raise UsageError(
                "usage", f"show takes one model, not '{model}' and '{chosen_model}'", f"Write engine show {model}."
            )
        name = model or chosen_model
        if table:
            show_table(chosen, name, limit, output)
        else:
            show_query(chosen, name, inline, limit, output)

    return carry_out(work, **shared)


@cli.command()
@click.option("--security", is_flag=True, help="Check ports, file permissions, settings and secrets instead.")
@project_options
def debug(security: bool, **shared: Any) -> int:
    """Check Java, jars, catalog and state, with a fix for each."""

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.debug_command import debug

        return debug(chosen, security=security)

    return carry_out(work, **shared)


@cli.command()
@click.option("--dry-run", is_flag=True, help="Print what would be done, without changing anything.")
@click.option(
    "--older-than", metavar="DURATION", help="Expire snapshots older than that; default: the table's setting (5 days)."
)
@click.option(
    "--orphans-older-than", "orphans", metavar="DURATION", help="Remove orphan files older than that: 3 days."
)
@selection_options
@project_options
def maintain(dry_run: bool, older_than: str | None, orphans: str | None, **options: Any) -> int:
    """Join small files, expire old snapshots and remove orphan files, beside running streams."""
    wanted, shared = _split(options)

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.maintain_command import care_for

        return care_for(chosen, wanted, older_than, orphans, shared["log_format"], dry_run=dry_run)

    return carry_out(work, **shared)


@cli.command()
@click.argument("model")
@click.option("--accept", is_flag=True, help="Publish the staged rows of MODEL although tests failed.")
@project_options
def publish(model: str, accept: bool, **shared: Any) -> int:
    """Accept rows that failed the tests of a model with publish: on_tests_pass."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.publish_command import accept_rows

        accept_rows(chosen, model, accept=accept)

    return carry_out(work, **shared)


@cli.command()
@click.argument("tables", metavar="MODEL|TABLE...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--accept", multiple=True, type=click.Choice(["downstream-stops", "files-gone"]), help="A consequence to accept."
)
@project_options
def drop(tables: tuple[str, ...], accept: tuple[str, ...], *, yes: bool, **shared: Any) -> int:
    """Remove tables with their files, state, quarantine and deleted keys; asks first."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.drop import drop_tables

        drop_tables(chosen, tables, accept, shared["log_format"], yes=yes)

    return carry_out(work, **shared)


@cli.group()
def source() -> None:
    """What sources hold now."""


@source.command()
@click.argument("name")
@project_options
def inspect(name: str, **shared: Any) -> int:
    """Print a source's declaration with its columns, from the schema registry or a sample of records."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.show import show_source

        show_source(chosen, name)

    return carry_out(work, **shared)


@source.command()
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Instead of target/sources.json.")
@selection_options
@project_options
def freshness(output: Path | None, **options: Any) -> int:
    """Compare the newest row of sources with their bounds; fail if one is too old."""
    wanted, shared = _split(options)

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.source_freshness_command import show_freshness

        return show_freshness(chosen, wanted, output, shared["log_format"])

    return carry_out(work, **shared)


@cli.group()
def docs() -> None:
    """The lineage site."""


@docs.command()
@project_options
def generate(**shared: Any) -> int:
    """Write the site to target/docs/, and the artifacts beside it."""

    def work(chosen: CommandSettings) -> bool:
        from engine.cli.commands.docs_command import generate

        return generate(chosen)

    return carry_out(work, **shared)


@docs.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free port.")
@project_options
def serve(port: int, **shared: Any) -> int:
    """Serve the written site on 127.0.0.1 until Ctrl-C."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.docs_command import serve

        serve(chosen, port)

    return carry_out(work, **shared)


@cli.command()
@click.argument("column", required=False)
@click.option("--impact", is_flag=True, help="Also show the impact of removing the column.")
@click.option("--output", type=click.Choice(["text", "json", "mermaid", "dot"]), default="text", help="What to print.")
@selection_options
@project_options
def lineage(column: str | None, impact: bool, output: str, **options: Any) -> int:
    """Where a COLUMN (model.column) comes from; without one, the graph of what is selected."""

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.docs_command import lineage

        lineage(chosen, column, wanted, output, impact=impact)

    wanted, shared = _split(options)
    return carry_out(work, **shared)


@cli.command()
@click.argument("codes", metavar="[CODE]...", nargs=-1)
@project_options
def explain(codes: tuple[str, ...], **shared: Any) -> int:
    """Explain diagnostics by their CODE: cause, examples and fix; without one, show all of them by topic."""

    def work(_: CommandSettings) -> None:
        from engine.cli.explain_command import explain

        explain(codes, as_json=shared["log_format"] == "json")

    return carry_out(work, **shared)


@cli.command()
@project_options
def clean(**shared: Any) -> int:
    """Remove target/ and what the cache keeps of the project; tables and their state are never touched."""

    def work(chosen: CommandSettings) -> None:
        from engine.target_folder import TargetFolder
        from engine.user_cache import project_cache

        check_project(chosen)
        for folder in filter(None, (chosen.target_dir, project_cache(chosen.target_dir))):
            with TargetFolder(folder) as target:
                target.clear()
        chosen.out.say("Removed target/")

    return carry_out(work, **shared)


@cli.command()
@click.option("--force", is_flag=True, help="Replace an existing archive.")
@click.option("--driver-memory", default="", metavar="SIZE", help="For drivers with this heap; 32g and more differ.")
@click.option("--background", is_flag=True, hidden=True)
@project_options
def warmup(*, force: bool, driver_memory: str, background: bool, **shared: Any) -> int:
    """Write an archive of Java's classes now, by which sessions start in about half the time (once, a minute).

    Left alone, the first session that finds none has it written in the background when it ends.
    """

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.warmup import warm_up

        path = warm_up(force=force, memory=driver_memory, background=background)
        if path is not None:
            chosen.out.say(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")

    return carry_out(work, **shared)


@cli.group()
def jars() -> None:
    """The jars that Spark needs beside its own."""


@jars.command()
@project_options
def fetch(**shared: Any) -> int:
    """Fetch and verify all jars, so that later runs need no network."""

    def work(chosen: CommandSettings) -> None:
        from engine.project import is_project
        from engine.spark.jars import jar_paths, jar_sets
        from engine.spark.java import find_java

        # The jars are the user's, not a project's.
        with log_file(chosen) if is_project(chosen.root) else nullcontext():
            for path in jar_paths(jar_sets(), fetch=True, java=find_java(), notify=chosen.out.say):
                chosen.out.say(f"verified {path}")

    return carry_out(work, **shared)


if __name__ == "__main__":
    main()
