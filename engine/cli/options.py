"""Options that commands share, with dbt's names; each can be given as ENGINE_<NAME> too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from engine.api import THREADS

Command = Callable[..., Any]


class Several(click.Option):
    """An option whose values may follow each other: up to the next option, or `--`."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **{**settings, "multiple": True})


def _option(*names: str, env: str, **settings: Any) -> Callable[[Command], Command]:
    return click.option(*names, envvar=f"ENGINE_{env}", show_envvar=False, **settings)


def project_options(command: Command) -> Command:
    """Which project and target, and how to print."""
    for decorate in (
        _option("-q", "--quiet", env="QUIET", is_flag=True, help="Print errors and the result only."),
        _option(
            "--log-format", env="LOG_FORMAT", type=click.Choice(["text", "json"]), default="text",
            help="json: one object a line.",
        ),
        _option("--vars", "variables", env="VARS", metavar="YAML", default="{}", help="Values for var(): '{k: v}'."),
        _option("-t", "--target", env="TARGET", metavar="NAME", help="Target of project.yml to use."),
        _option(
            "--project-dir", env="PROJECT_DIR", type=click.Path(path_type=Path, file_okay=False), default=".",
            help="Folder with project.yml.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def selection_options(command: Command) -> Command:
    """Which nodes."""
    for decorate in (
        _option(
            "--state", env="STATE", type=click.Path(path_type=Path, file_okay=False),
            help="Folder with the manifest.json to compare with (state:modified).",
        ),
        _option(
            "--allow-empty", env="ALLOW_EMPTY", is_flag=True,
            help="A selection that matches nothing is a warning (for CI).",
        ),
        _option("--selector", env="SELECTOR", metavar="NAME", help="A named selection of selectors.yml."),
        _option("--exclude", env="EXCLUDE", cls=Several, metavar="SELECTION", help="Nodes to exclude."),
        _option(
            "-s", "--select", "-m", "--models", env="SELECT", cls=Several, metavar="SELECTION",
            help="Nodes to select: names, +name+, tag:x, path:models/x, source:a.b ...",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command


def plan_options(command: Command) -> Command:
    """What decides how models are built."""
    for decorate in (
        _option(
            "--accept",
            env="ACCEPT",
            multiple=True,
            type=click.Choice(["downstream-stops", "files-gone"]),
            help="A consequence of a full refresh to accept.",
        ),
        _option(
            "--reset-checkpoint",
            env="RESET_CHECKPOINT",
            metavar="now|earliest|TIME",
            help="Start new checkpoints for the selected streams and keep their rows; where to begin: now, "
            "earliest or a time.",
        ),
        _option("-f", "--full-refresh", env="FULL_REFRESH", is_flag=True, help="Rebuild the selected models."),
    ):
        command = decorate(command)
    return command


def test_options(command: Command) -> Command:
    """Which tests run."""
    return _option(
        "--no-cache", env="NO_CACHE", is_flag=True, help="Run every test, also those that passed with the same inputs."
    )(command)


def run_options(command: Command) -> Command:
    """How to run."""
    for decorate in (
        plan_options,
        _option("-x", "--fail-fast", env="FAIL_FAST", is_flag=True, help="Stop at the first failure."),
        _option(
            "--threads", env="THREADS", type=click.IntRange(1, 64), default=THREADS, show_default=True,
            help="Number of nodes to run in parallel.",
        ),
    ):  # fmt: skip
        command = decorate(command)
    return command
