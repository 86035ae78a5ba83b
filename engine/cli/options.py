"""Options that commands share, with dbt's names; each can be given as ENGINE_<NAME> too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from engine.api import THREADS, Selection
from engine.cli.console.log_level import LogLevel
from engine.cli.shell_completion import complete_selections, complete_targets

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
            help="Lowest log level to print. debug adds tracebacks; error is the same as -q.",
        ),
        _option(
            "--log-format", env="LOG_FORMAT", type=click.Choice(["text", "json"]), default="text",
            help="Format of messages; json: one object per line.",
        ),
        _option(
            "--project-dir", env="PROJECT_DIR", type=click.Path(path_type=Path, file_okay=False), default=".",
            help="Folder that contains project.yml.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def project_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--warn-error/--no-warn-error", env="WARN_ERROR", default=None,
            help="Treat warnings as errors, and fail data tests that warn "
            "(default: the value under 'flags' in project.yml).",
        ),
        _option(
            "--target-path", env="TARGET_PATH", type=click.Path(path_type=Path, file_okay=False),
            help="Folder for artifacts and logs, relative to the project (default: target/).",
        ),
        _option(
            "--vars", "variables", env="VARS", metavar="YAML", default="{}",
            help="Set values for var(): '{minimum: 10}'.",
        ),
        _option(
            "-t", "--target", env="TARGET", metavar="NAME", shell_complete=complete_targets,
            help="Use this target from project.yml.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return output_options(command)


def selection_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--state", env="STATE", type=click.Path(path_type=Path, file_okay=False),
            help="Folder that contains an earlier manifest.json, for state:modified.",
        ),
        _option(
            "--allow-empty", env="ALLOW_EMPTY", is_flag=True,
            help="Warn instead of failing if the selection matches nothing (for CI).",
        ),
        _option("--selector", env="SELECTOR", metavar="NAME", help="Use a selector from selectors.yml."),
        _option(
            "--exclude", env="EXCLUDE", cls=Several, metavar="SELECTION", shell_complete=complete_selections,
            help="Exclude nodes from the selection.",
        ),
        _option(
            "-s", "--select", "-m", "--models", env="SELECT", cls=Several, metavar="SELECTION",
            shell_complete=complete_selections,
            help="Select nodes: names, +name+, tag:x, path:models/x, source:a.b ...",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def defer_options(command: Command) -> Command:
    for decorate in (
        _option(
            "--favor-state/--no-favor-state", env="FAVOR_STATE", default=None,
            help="With --defer: read unselected models from the manifest.json even if they exist in the target "
            "(default: the value under 'flags' in project.yml).",
        ),
        _option(
            "--defer-state", env="DEFER_STATE", type=click.Path(path_type=Path, file_okay=False),
            help="Folder that contains the manifest.json for --defer (default: --state).",
        ),
        _option(
            "--defer/--no-defer", env="DEFER", default=None,
            help="For unselected models that do not exist in the target, read the tables listed in the "
            "--state manifest.json (default: the value under 'flags' in project.yml).",
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
            type=click.Choice(["downstream-stops", "files-gone", "sink-schema"]),
            help="Proceed with a full refresh even if downstream streams stop (downstream-stops) or rows of archived "
            "or deleted files are lost (files-gone), or with an edit that changes columns of a sink (sink-schema). "
            "Can be repeated.",
        ),
        _option(
            "--reset-checkpoint",
            env="RESET_CHECKPOINT",
            metavar="now|earliest|open-windows|TIME",
            help="Start new checkpoints for the selected streams and keep their rows. Each stream reads from now, "
            "from the earliest record, from the windows that are not written yet (open-windows), or from a timestamp.",
        ),
        _option(
            "-f",
            "--full-refresh",
            env="FULL_REFRESH",
            is_flag=True,
            help="Rebuild the selected models from the first row of their sources.",
        ),
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
            help="Create missing tables without rows, and skip data tests.",
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
    help="Stop at the first failure (default: the value under 'flags' in project.yml).",
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
    selection = Selection(**{key: value for key, value in options.items() if key in names})
    return selection, {key: value for key, value in options.items() if key not in names}
