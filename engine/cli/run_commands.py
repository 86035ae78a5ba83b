"""Commands that run models and tests, and the plan of what they would do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from engine.api import Command as RunCommand
from engine.api import RebuildOptions, RunOptions
from engine.cli.arguments import Command
from engine.cli.command_setup import CommandSettings
from engine.cli.exits import run_command
from engine.cli.options import (
    defer_options,
    fail_fast_option,
    plan_options,
    project_options,
    run_options,
    selection_options,
    split,
    test_options,
)
from engine.errors import UsageError

_STOPPED = "the next build continues where this one stopped"
_REFRESHING = "the next build finishes the full refresh; to discard it: --discard-refresh"
_watch_option = click.option(
    "--watch", is_flag=True, help="Keep running until Ctrl-C, and rebuild the affected models after each edit."
)
# What would be carried out again after each edit.
_REPEATING = {
    "empty": "--empty",
    "full_refresh": "--full-refresh",
    "reset_checkpoint": "--reset-checkpoint",
    "accept": "--accept",
}


@click.command(cls=Command)
@click.option(
    "--output",
    type=click.Choice(["tree", "text", "json", "markdown"]),
    default=None,
    help="Output format (default: tree on a terminal, otherwise text).",
)
@click.option("--unchanged", is_flag=True, help="Include unchanged models in the tree.")
@click.option(
    "--fail-on",
    type=click.Choice(["create", "resume", "reset", "refresh", "rebuild"]),
    multiple=True,
    help="Exit with code 1 if the plan contains this action. Can be repeated.",
)
@click.option("--diff", is_flag=True, help="Show the changed settings and SQL of each edited model.")
@click.option(
    "--no-catalog",
    is_flag=True,
    help="Compare with the manifest.json of --state instead of the deployed tables. Reads no catalog, state or source.",
)
@plan_options
@defer_options
@selection_options
@project_options
def plan(
    output: str | None, unchanged: bool, fail_on: tuple[str, ...], diff: bool, no_catalog: bool, **options: Any
) -> int:
    """Show how a build would affect each model, and why. Changes nothing."""
    selection, shared = split(options)
    run_options = cast("RebuildOptions", {key: shared.pop(key) for key in RebuildOptions.__annotations__})

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.plan_command import PlanOutput, show_plan

        return show_plan(
            settings, selection, run_options, PlanOutput(output or "", diff, fail_on, no_catalog, unchanged)
        )

    return run_command(work, **shared)


@click.command(cls=Command)
@run_options
@plan_options
@test_options
@defer_options
@selection_options
@project_options
@_watch_option
@click.option(
    "--rebuild",
    is_flag=True,
    help="Rebuild the selected streaming tables as shadow tables, then test, compare and publish them.",
)
@click.option(
    "--clone",
    metavar="TARGET",
    help="Clone the tables of models that differ from TARGET and build those clones; read all unchanged models "
    "from TARGET.",
)
@click.option(
    "--no-publish",
    is_flag=True,
    help="With --rebuild: build, test and compare the shadow tables without publishing them.",
)
@click.option("--discard", is_flag=True, help="With --rebuild: remove the unpublished shadow tables.")
def build(watch: bool, rebuild: bool, no_publish: bool, discard: bool, clone: str | None, **options: Any) -> int:
    """Run models and tests in dependency order."""
    if clone is not None:
        return _clone(clone, rebuild=rebuild or no_publish or discard, watch=watch, **options)
    if rebuild or no_publish or discard:
        return _rebuild(rebuild=rebuild, watch=watch, no_publish=no_publish, discard=discard, **options)
    return _run("build", watch=watch, **options)


@click.command(cls=Command)
@run_options
@plan_options
@defer_options
@selection_options
@project_options
def run(**options: Any) -> int:
    """Run models without their tests."""
    return _run("run", **options)


@click.command(cls=Command)
@run_options
@test_options
@defer_options
@selection_options
@project_options
@click.option("--junit-xml", type=click.Path(path_type=Path, dir_okay=False), help="Write a JUnit report for CI.")
@_watch_option
def test(junit_xml: Path | None, watch: bool, **options: Any) -> int:
    """Run unit tests and data tests."""
    return _run("test", junit_xml, watch=watch, **options)


def _run(command: RunCommand, junit: Path | None = None, *, watch: bool = False, **options: Any) -> int:
    selection, shared = split(options)
    run_options = cast("RunOptions", {key: shared.pop(key) for key in RunOptions.__annotations__ if key in shared})

    def work(settings: CommandSettings) -> bool:
        if watch:
            _check_repeatable(run_options, junit)
            from engine.cli.commands.watch_command import watch_project

            return watch_project(settings, command, selection, run_options)
        from engine.cli.commands.build_command import run_nodes

        return run_nodes(settings, command, selection, run_options, junit)

    stopped = "" if command == "test" else _STOPPED
    if run_options.get("full_refresh"):
        stopped = _REFRESHING
    return run_command(work, stopped=stopped, **shared)


def _clone(other: str, *, rebuild: bool, watch: bool, **options: Any) -> int:
    given_options = {**options, "watch": watch, "rebuild": rebuild}
    conflicting_option = next((option for key, option in _NOT_WITH_CLONE.items() if given_options[key]), "")
    selection, shared = split(options)
    run_options = cast("RunOptions", {key: shared.pop(key) for key in RunOptions.__annotations__ if key in shared})

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.build_command import clone_and_run

        if conflicting_option:
            raise UsageError("usage", f"--clone and {conflicting_option} cannot be combined", "Use one of them.")
        return clone_and_run(settings, selection, run_options, other)

    return run_command(work, stopped=_STOPPED, **shared)


# What says otherwise where models are read and where they begin, or would be repeated after each edit.
_NOT_WITH_CLONE = {
    "watch": "--watch",
    "rebuild": "--rebuild",
    "defer": "--defer",
    "empty": "--empty",
    "full_refresh": "--full-refresh",
}

# What a rebuild beside the tables decides itself.
_NOT_WITH_REBUILD = {
    "watch": "--watch",
    "empty": "--empty",
    "full_refresh": "--full-refresh",
    "reset_checkpoint": "--reset-checkpoint",
    "discard_refresh": "--discard-refresh",
    "store_failures": "--store-failures",
    "defer": "--defer",
}


def _rebuild(*, rebuild: bool, no_publish: bool, discard: bool, watch: bool, **options: Any) -> int:
    given_options = {**options, "watch": watch}
    conflicting_option = next((option for key, option in _NOT_WITH_REBUILD.items() if given_options[key]), "")
    selection, shared = split(options)
    run_options = {key: shared.pop(key) for key in RunOptions.__annotations__ if key in shared}

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.rebuild_command import RebuildFlags
        from engine.cli.commands.rebuild_command import rebuild as rebuild_tables

        if not rebuild:
            raise UsageError("usage", "--no-publish and --discard need --rebuild", "Add --rebuild.")
        if conflicting_option:
            raise UsageError("usage", f"--rebuild and {conflicting_option} cannot be combined", "Use one of them.")
        if discard and no_publish:
            raise UsageError("usage", "--discard and --no-publish cannot be combined", "Use one of them.")
        flags = RebuildFlags(
            run_options["accept"], run_options["threads"], not no_publish, discard, shared["log_format"]
        )
        return rebuild_tables(settings, selection, flags)

    return run_command(work, stopped="the next build --rebuild continues where this one stopped", **shared)


def _check_repeatable(run_options: RunOptions, junit: Path | None) -> None:
    """Reject what must not happen again with each edit."""
    if junit is not None:
        raise UsageError(
            "usage", "--watch and --junit-xml cannot be combined", "Use one of them: a report covers one run."
        )
    for key, option in _REPEATING.items():
        if run_options.get(key):
            message = f"--watch and {option} cannot be combined: each edit would do it again"
            hint = (
                f"Run it once, next to this one: engine build {option} -s MODEL. While --watch waits, it holds no lock."
            )
            raise UsageError("usage", message, hint)


@click.command(cls=Command)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    envvar="ENGINE_THREADS",
    help="Number of nodes to run in parallel (default: as in the command to retry).",
)
@fail_fast_option
@project_options
def retry(threads: int | None, *, fail_fast: bool | None, **shared: Any) -> int:
    """Rerun the failed and skipped nodes of the last build, run or test, with the same options."""

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.build_command import retry

        return retry(settings, threads, fail_fast=fail_fast)

    return run_command(work, stopped=_STOPPED, **shared)


@click.command(cls=Command, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    help="Where to run the driver (default: cluster, if the master supports it).",
)
@click.option(
    "--environment", default="", metavar="ARCHIVE", help="Python environment for the cluster, packed with venv-pack."
)
@click.option(
    "--dry-run", is_flag=True, help="Print the spark-submit command, its settings and its files without running it."
)
@project_options
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def submit(command: tuple[str, ...], deploy_mode: str | None, environment: str, *, dry_run: bool, **shared: Any) -> int:
    """Run a COMMAND (for example: build -s name) on the target's cluster with spark-submit."""

    def work(settings: CommandSettings) -> bool:
        from engine.cli.commands.submit_command import submit_command

        return submit_command(settings, command, deploy_mode, environment, dry_run=dry_run)

    return run_command(work, **shared)


COMMANDS = (plan, build, run, test, retry, submit)
