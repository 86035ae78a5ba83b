"""Options that commands share, with dbt's names; each can be given as ENGINE_<NAME> too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from engine.api import THREADS, Selection
from engine.cli.console.log_level import LogLevel
from engine.cli.shell_completion import of_selections, of_targets

Command = Callable[..., Any]


class Several(click.Option):
    """An option whose values may follow each other: up to the next option, or `--`."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **{**settings, "multiple": True})


def _option(*names: str, env: str, **settings: Any) -> Callable[[Command], Command]:
    return click.option(*names, envvar=f"ENGINE_{env}", show_envvar=False, **settings)


def output_options(command: Command) -> Command:
    for decorate in (
        _option("-d", "--debug", env="DEBUG", is_flag=True, help="Same as --log-level debug."),
        _option("-q", "--quiet", env="QUIET", is_flag=True, help="Print only errors and the result."),
        _option(
            "--log-level", env="LOG_LEVEL", type=click.Choice([level.value for level in LogLevel]),
            default=LogLevel.INFO.value,
            help="debug: everything, with tracebacks; warn: warnings and errors; error: same as -q.",
        ),
        _option(
            "--log-format", env="LOG_FORMAT", type=click.Choice(["text", "json"]), default="text",
            help="json: one object per line.",
        ),
        _option(
            "--project-dir", env="PROJECT_DIR", type=click.Path(path_type=Path, file_okay=False), default=".",
            help="Folder with project.yml.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def project_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--warn-error/--no-warn-error", env="WARN_ERROR", default=None,
            help="Treat warnings as errors, and warning data tests as failures; default: flags: in project.yml.",
        ),
        _option(
            "--target-path", env="TARGET_PATH", type=click.Path(path_type=Path, file_okay=False),
            help="Folder for artifacts and logs (default: target/), relative to the project.",
        ),
        _option("--vars", "variables", env="VARS", metavar="YAML", default="{}", help="Values for var(): '{k: v}'."),
        _option(
            "-t", "--target", env="TARGET", metavar="NAME", shell_complete=of_targets,
            help="Target in project.yml to use.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return output_options(command)


def selection_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--state", env="STATE", type=click.Path(path_type=Path, file_okay=False),
            help="Folder of the earlier manifest.json, for state:modified.",
        ),
        _option(
            "--allow-empty", env="ALLOW_EMPTY", is_flag=True,
            help="Only warn if the selection matches nothing (for CI).",
        ),
        _option("--selector", env="SELECTOR", metavar="NAME", help="Use a selector from selectors.yml."),
        _option(
            "--exclude", env="EXCLUDE", cls=Several, metavar="SELECTION", shell_complete=of_selections,
            help="Nodes to exclude.",
        ),
        _option(
            "-s", "--select", "-m", "--models", env="SELECT", cls=Several, metavar="SELECTION",
            shell_complete=of_selections,
            help="Nodes to select: names, +name+, tag:x, path:models/x, source:a.b ...",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def defer_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--favor-state/--no-favor-state", env="FAVOR_STATE", default=None,
            help="With --defer: prefer their tables to the target's own; default: flags: in project.yml.",
        ),
        _option(
            "--defer-state", env="DEFER_STATE", type=click.Path(path_type=Path, file_okay=False),
            help="Folder of the manifest.json for --defer (default: --state).",
        ),
        _option(
            "--defer/--no-defer", env="DEFER", default=None,
            help="Read unselected models that the target does not have from the tables named in the "
            "manifest.json of --state; default: flags: in project.yml.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def plan_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--accept",
            env="ACCEPT",
            multiple=True,
            type=click.Choice(["downstream-stops", "files-gone"]),
            help="Accept a named consequence of a full refresh.",
        ),
        _option(
            "--reset-checkpoint",
            env="RESET_CHECKPOINT",
            metavar="now|earliest|open-windows|TIME",
            help="Start new checkpoints for the selected streams and keep their rows; where to begin: now, "
            "earliest, open-windows (the windows that are not written yet) or a time.",
        ),
        _option("-f", "--full-refresh", env="FULL_REFRESH", is_flag=True, help="Rebuild the selected models."),
        _option(
            "--discard-refresh",
            env="DISCARD_REFRESH",
            is_flag=True,
            help="Discard an interrupted full refresh instead of finishing it.",
        ),
        _option(
            "--empty",
            env="EMPTY",
            is_flag=True,
            help="Create missing tables with their columns but no rows; data tests do not run.",
        ),
    ):
        command = decorate(command)
    return command


def test_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--store-failures", env="STORE_FAILURES", is_flag=True,
            help="Store the failing rows of each selected data test in a table.",
        ),
        _option(
            "--no-cache", env="NO_CACHE", is_flag=True,
            help="Rerun tests even if they passed with the same inputs.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


fail_fast_option = _option(
    "-x", "--fail-fast/--no-fail-fast", env="FAIL_FAST", default=None,
    help="Stop at the first failure; default: flags: in project.yml.",
)  # fmt: skip


def threads_option(command: Command) -> Command:
    threads = _option(
        "--threads", env="THREADS", type=click.IntRange(1, 64), default=THREADS, show_default=True,
        help="Number of nodes to run in parallel.",
    )  # fmt: skip
    return threads(command)


def run_options(command: Command) -> Command:
    return threads_option(fail_fast_option(command))


def split(options: Mapping[str, Any]) -> tuple[Selection, dict[str, Any]]:
    names = {f.name for f in fields(Selection)}
    chosen = Selection(**{key: value for key, value in options.items() if key in names})
    return chosen, {key: value for key, value in options.items() if key not in names}
