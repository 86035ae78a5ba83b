"""`engine start`, the commands that reach it, and the one that shows what it does."""

from __future__ import annotations

from typing import Any

import click

from engine.cli.arguments import Command
from engine.cli.command_setup import CommandSettings
from engine.cli.exits import run_command
from engine.cli.options import project_options, selection_options, split, threads_option

_STOPPED = "the next start or build continues where this one stopped"


@click.command(cls=Command)
@click.option("--watch", is_flag=True, help="Refresh the status until Ctrl-C.")
@click.option("--live", is_flag=True, help="Only check that the process responds (for liveness probes).")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@project_options
def status(*, watch: bool, live: bool, output: str, **shared: Any) -> int:
    """Show the status, lag, rows and errors of each model run by `engine start`.

    Exit codes: 0 if all models are healthy, 1 if a model has failed or stalled, 3 if `engine start` is not running.
    With --live: 0 if the process responds, 1 if it does not respond, 3 if it is not running.
    """
    code = 0

    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.status_command import show_liveness, show_status

        nonlocal code
        code = (
            show_liveness(settings.target_dir, output)
            if live
            else show_status(settings.target_dir, output, watch=watch)
        )

    return run_command(work, **shared) or code


@click.command(cls=Command)
@threads_option
@click.option(
    "--turn-seconds",
    type=click.FloatRange(min=0.1),
    default=20.0,
    show_default=True,
    help="End a stream's run after this many seconds, so that other models can run.",
)
@click.option("--idle-timeout", type=click.FloatRange(min=0), default=10.0, show_default=True,
              help="Shut the Spark JVM down after this many idle minutes; 0: never.")  # fmt: skip
@click.option("--reload/--no-reload", default=True, help="Reload the project after each edit.")
@click.option("--maintain-after", type=click.IntRange(0), default=100, show_default=True,
              help="Maintain a table after this many commits, when the process is idle; 0: never.")  # fmt: skip
@click.option("--max-java-memory", type=click.FloatRange(min=0), default=0.0, show_default=True,
              help="Restart the Spark JVM between runs if it uses more than this many GB; 0: no limit.")  # fmt: skip
@click.option("--serve", type=click.IntRange(0, 65535), help="Serve the live page on this port of 127.0.0.1.")
@selection_options
@project_options
def start(
    threads: int | None,
    turn_seconds: float,
    idle_timeout: float,
    maintain_after: int,
    max_java_memory: float,
    serve: int | None,
    *,
    reload: bool,
    **options: Any,
) -> int:
    """Run models continuously until stopped."""
    selection, shared = split(options)

    def work(settings: CommandSettings) -> bool:
        from engine.api.keep_running.live_project import LiveOptions
        from engine.api.requests import THREADS
        from engine.cli.commands.start_command import start_project

        live_options = LiveOptions(
            threads or THREADS, turn_seconds, reload, idle_timeout * 60 or None, maintain_after,
            int(max_java_memory * 2**30) or None,
        )  # fmt: skip
        return start_project(settings, selection, live_options, serve)

    return run_command(work, stopped=_STOPPED, **shared)


@click.command(cls=Command)
@click.argument("models", nargs=-1)
@project_options
def stop(models: tuple[str, ...], **shared: Any) -> int:
    """Stop `engine start`, or pause the named models."""
    return _ask("pause" if models else "stop", models, **shared)


@click.command(cls=Command)
@click.argument("models", nargs=-1)
@project_options
def pause(models: tuple[str, ...], **shared: Any) -> int:
    """Pause some models, or all, until `engine resume`."""
    return _ask("pause", models, **shared)


@click.command(cls=Command)
@click.argument("models", nargs=-1)
@project_options
def resume(models: tuple[str, ...], **shared: Any) -> int:
    """Resume some or all paused models."""
    return _ask("resume", models, **shared)


@click.command(cls=Command)
@project_options
def reload(**shared: Any) -> int:
    """Make `engine start` reload the project."""
    return _ask("reload", (), **shared)


def _ask(request: str, models: tuple[str, ...], **shared: Any) -> int:
    def work(settings: CommandSettings) -> None:
        from engine.cli.commands.start_command import ask_running

        ask_running(settings, request, models)

    return run_command(work, **shared)


COMMANDS = (start, stop, pause, resume, reload, status)
