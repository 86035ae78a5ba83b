"""The command `engine`: arguments in, lines and exit codes out.

Exit codes: 0 all good, 1 something the user must fix failed, 2 usage or internal error.
Each command imports what it needs when it runs, so that --help and ls stay quick.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import click

from engine import __version__
from engine.cli.arguments import Group
from engine.cli.options import project_options, run_options, selection_options
from engine.cli.project import (
    Failed,
    Selection,
    Settings,
    Unheard,
    compiled,
    errors_of,
    log_file,
    selected,
    settings,
    unhandled,
)
from engine.errors import EngineError, UsageError

# Terminals get colours unless NO_COLOR says otherwise (no-color.org).
_CONTEXT = {"help_option_names": ["-h", "--help"], "color": False if os.environ.get("NO_COLOR") else None}


@click.group(cls=Group, context_settings=_CONTEXT)
@click.version_option(__version__, "--version", "-V", prog_name="headrace")
def cli() -> None:
    """SQL models over streams, run by Spark into Iceberg tables, exactly once."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    sys.exit(invoke(arguments))


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        result = cli.main(args=arguments, prog_name="engine", standalone_mode=False)
    except click.exceptions.Abort:
        sys.stderr.write("interrupted\n")
        return 1
    except click.ClickException as error:
        from engine.cli.terminal import write

        shown = StringIO()
        error.show(shown)
        write(shown.getvalue(), error=True, end="")
        return 2
    return result if isinstance(result, int) else 0


def _command(work: Callable[[Settings], bool | None], **shared: Any) -> int:
    """Run a command's body; turn errors into lines and an exit code."""
    chosen: Settings | None = None
    # Python's own would write what a template says to the terminal as it is.
    logging.lastResort = Unheard(logging.WARNING)
    try:
        chosen = settings(**shared)
        return 1 if work(chosen) is False else 0
    except Failed:
        return 1
    except EngineError as error:
        from engine.cli.printing import printer

        out = chosen.out if chosen else printer(shared["log_format"], quiet=shared["quiet"])
        out.diagnostics(error.diagnostics)
        return errors_of(error)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the next build goes on where this one stopped\n")
        return 1
    except Exception as error:  # noqa: BLE001 - the process ends here
        unhandled(error, chosen)
        return 2


@cli.command()
@project_options
def parse(**shared: Any) -> int:
    """Read the project and report every mistake."""

    def work(chosen: Settings) -> None:
        manifest = compiled(chosen).manifest
        chosen.out.say(_found(manifest))

    return _command(work, **shared)


@cli.command("compile")
@project_options
def compile_(**shared: Any) -> int:
    """Report every mistake, and write target/compiled/ and target/manifest.json."""

    def work(chosen: Settings) -> bool:
        from engine.compile.artifacts import write_artifacts

        manifest = compiled(chosen, must_hold=False).manifest
        write_artifacts(manifest, chosen.target_dir)
        chosen.out.say(_found(manifest))
        return not manifest.errors

    return _command(work, **shared)


def _found(manifest: Any) -> str:
    errors = len(manifest.errors)
    warnings = len(manifest.diagnostics) - errors
    # Counted by their ids: the nodes themselves need not be looked at.
    kinds = Counter(node_id.partition(".")[0] for node_id in manifest.nodes)
    tests = f"{kinds['test']} data tests, {kinds['unit_test']} unit tests"
    return f"Found {kinds['model']} models, {tests}, {kinds['source']} sources; {errors} errors, {warnings} warnings"


@cli.command()
@click.option("--output", type=click.Choice(["text", "name", "path", "json"]), default="text", help="What to print.")
@click.option("--resource-type", type=click.Choice(["model", "source", "test", "unit_test", "all"]), default="all")
@click.option("--orphans", is_flag=True, help="Tables that were built and that no model has any more, instead.")
@selection_options
@project_options
def ls(output: str, resource_type: str, *, orphans: bool, **options: Any) -> int:
    """List nodes in build order."""

    def work(chosen: Settings) -> None:
        if orphans:
            from engine.cli.dropping import list_orphans

            if wanted != Selection():
                raise UsageError(
                    "usage", "--orphans and a selection together", "Orphans belong to no model: all are shown."
                )
            list_orphans(chosen, output)
            return
        from engine.cli.listing import write_lines

        manifest = compiled(chosen, heard=False).manifest
        nodes = selected(chosen, manifest, wanted, tell=output == "text")
        write_lines(manifest, nodes, output, resource_type)

    wanted, shared = _split(options)
    return _command(work, **shared)


@cli.command()
@run_options
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
@selection_options
@project_options
@click.option("--junit-xml", type=click.Path(path_type=Path, dir_okay=False), help="Write a report for CI.")
@click.option("--watch", is_flag=True, help="Run again what an edit affects, until Ctrl-C.")
def test(junit_xml: Path | None, watch: bool, **options: Any) -> int:
    """Run unit tests, and the data tests of tables that stand."""
    return _run("test", junit_xml, watch=watch, **options)


def _run(command: str, junit: Path | None = None, *, watch: bool = False, **options: Any) -> int:
    wanted, shared = _split(options)
    how = {key: shared.pop(key) for key in ("threads", "fail_fast", "full_refresh", "accept", "reset_checkpoint")}

    def work(chosen: Settings) -> bool:
        if watch and junit is not None:
            raise UsageError("usage", "--watch and --junit-xml together", "A report is of one run: give one of them.")
        if watch:
            from engine.cli.watching import watch_tests

            return watch_tests(chosen, wanted, how)
        from engine.cli.running import run_nodes

        return run_nodes(chosen, command, wanted, how, junit)

    return _command(work, **shared)


def _split(options: Mapping[str, Any]) -> tuple[Selection, dict[str, Any]]:
    """The selection among a command's options, and the rest."""
    names = {f.name for f in fields(Selection)}
    chosen = Selection(**{key: value for key, value in options.items() if key in names})
    return chosen, {key: value for key, value in options.items() if key not in names}


@cli.command()
@click.argument("model", required=False)
@click.option("--inline", metavar="SQL", help="A query instead of a model; ref() and source() work in it.")
@click.option("--table", is_flag=True, help="Print the stored table, without Java unless it has a VARIANT column.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=10, show_default=True, help="Rows to print.")
@click.option("--output", type=click.Choice(["text", "json", "csv"]), default="text")
@project_options
def show(model: str | None, inline: str | None, table: bool, limit: int, output: str, **shared: Any) -> int:
    """Run a model's query over all there is now, open windows included, and print some rows."""

    def work(chosen: Settings) -> None:
        from engine.cli.showing import show_query, show_table

        if table:
            show_table(chosen, model, limit, output)
        else:
            show_query(chosen, model, inline, limit, output)

    return _command(work, **shared)


@cli.command()
@click.option("--security", is_flag=True, help="Check ports, modes, settings and secrets instead.")
@project_options
def debug(security: bool, **shared: Any) -> int:
    """Check Java, jars, catalog and state, with the remedy for each."""

    def work(chosen: Settings) -> bool:
        from engine.characters import one_line
        from engine.cli.terminal import Styled, write
        from engine.runtime.debug import checkup

        result = compiled(chosen, must_hold=False)
        target = result.target
        if security:
            from engine.cli.securing import show_security

            return show_security(chosen, target)
        good = True
        for finding in checkup(target, chosen.root, result.manifest):
            good = good and finding.good
            mark = Styled("OK   ", "green") if finding.good else Styled("ERROR", "red")
            write(mark, f" {finding.part.ljust(10)} {one_line(finding.text)}")
            if finding.remedy:
                write(f"      {' ' * 10} {one_line(finding.remedy)}")
        return good

    return _command(work, **shared)


@cli.command()
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--older-than", metavar="DURATION", help="Snapshots of that age may go; else as the tables say (5 days).")
@click.option("--orphans-older-than", "orphans", metavar="DURATION", help="Lost files of that age go: 3 days.")
@selection_options
@project_options
def maintain(dry_run: bool, older_than: str | None, orphans: str | None, **options: Any) -> int:
    """Join small files, expire old snapshots and remove lost files, beside running streams."""
    wanted, shared = _split(options)

    def work(chosen: Settings) -> bool:
        from engine.cli.maintaining import care_for

        return care_for(chosen, wanted, older_than, orphans, shared["log_format"], dry_run=dry_run)

    return _command(work, **shared)


@cli.command()
@click.argument("model")
@click.option("--accept", is_flag=True, help="Show the rows of MODEL that wait, whatever its tests said.")
@project_options
def publish(model: str, accept: bool, **shared: Any) -> int:
    """Accept rows that failed the tests of a model with publish: on_tests_pass."""

    def work(chosen: Settings) -> None:
        from engine.cli.publishing import accept_rows

        accept_rows(chosen, model, accept=accept)

    return _command(work, **shared)


@cli.command()
@click.argument("tables", metavar="MODEL|TABLE...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--accept", multiple=True, type=click.Choice(["downstream-stops", "files-gone"]), help="A consequence you accept."
)
@project_options
def drop(tables: tuple[str, ...], accept: tuple[str, ...], *, yes: bool, **shared: Any) -> int:
    """Remove tables with their files, state, quarantine and deleted keys; asks first."""

    def work(chosen: Settings) -> None:
        from engine.cli.dropping import drop_tables

        drop_tables(chosen, tables, accept, shared["log_format"], yes=yes)

    return _command(work, **shared)


@cli.group()
def source() -> None:
    """What sources hold now."""


@source.command()
@click.argument("name")
@project_options
def inspect(name: str, **shared: Any) -> int:
    """Print a source's declaration with its columns, from the schema registry or a sample of records."""

    def work(chosen: Settings) -> None:
        from engine.cli.showing import show_source

        show_source(chosen, name)

    return _command(work, **shared)


@source.command()
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Instead of target/sources.json.")
@selection_options
@project_options
def freshness(output: Path | None, **options: Any) -> int:
    """Compare the newest row of sources with their bounds; fail if one is too old."""
    wanted, shared = _split(options)

    def work(chosen: Settings) -> bool:
        from engine.cli.freshness import show_freshness

        return show_freshness(chosen, wanted, output, shared["log_format"])

    return _command(work, **shared)


@cli.group()
def docs() -> None:
    """The lineage site."""


@docs.command()
@project_options
def generate(**shared: Any) -> int:
    """Write the site to target/docs/, and the artifacts beside it."""

    def work(chosen: Settings) -> bool:
        from engine.cli.telling import generate

        return generate(chosen)

    return _command(work, **shared)


@docs.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free one.")
@project_options
def serve(port: int, **shared: Any) -> int:
    """Serve the written site on 127.0.0.1 until Ctrl-C."""

    def work(chosen: Settings) -> None:
        from engine.cli.telling import serve

        serve(chosen, port)

    return _command(work, **shared)


@cli.command()
@click.argument("column", required=False)
@click.option("--impact", is_flag=True, help="Also what goes with the column.")
@click.option("--output", type=click.Choice(["text", "json", "mermaid", "dot"]), default="text", help="What to print.")
@selection_options
@project_options
def lineage(column: str | None, impact: bool, output: str, **options: Any) -> int:
    """Where a COLUMN (model.column) comes from; without one, the graph of what is selected."""

    def work(chosen: Settings) -> None:
        from engine.cli.telling import lineage

        lineage(chosen, column, wanted, output, impact=impact)

    wanted, shared = _split(options)
    return _command(work, **shared)


@cli.command()
@project_options
def clean(**shared: Any) -> int:
    """Remove target/ and what the cache keeps of the project; tables and their state are never touched."""

    def work(chosen: Settings) -> None:
        from engine.errors import ProjectError
        from engine.own_cache import project_cache
        from engine.target_folder import TargetFolder

        if not (chosen.root / "project.yml").is_file():
            raise ProjectError("project-missing", f"there is no project.yml in {chosen.root}")
        for folder in filter(None, (chosen.target_dir, project_cache(chosen.target_dir))):
            with TargetFolder(folder) as target:
                target.clear()
        chosen.out.say("Removed target/")

    return _command(work, **shared)


@cli.command()
@click.option("--force", is_flag=True, help="Write it again if it is there.")
@project_options
def warmup(*, force: bool, **shared: Any) -> int:
    """Write an archive of Java's classes, so that later sessions start in about half the time (once, a minute)."""

    def work(chosen: Settings) -> None:
        from engine.cli.warming import warm_up

        path = warm_up(force=force)
        chosen.out.say(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")

    return _command(work, **shared)


@cli.group()
def jars() -> None:
    """The jars that Spark needs beside its own."""


@jars.command()
@project_options
def fetch(**shared: Any) -> int:
    """Fetch and verify all jars, so that later runs need no network."""

    def work(chosen: Settings) -> None:
        from engine.spark.jars import jar_paths, jar_sets
        from engine.spark.java import find_java

        with log_file(chosen):
            for path in jar_paths(jar_sets(), fetch=True, java=find_java(), notify=chosen.out.say):
                chosen.out.say(f"verified {path}")

    return _command(work, **shared)


if __name__ == "__main__":
    main()
