"""`engine start`, the commands that reach it, and the one that shows what it does."""

from __future__ import annotations

from typing import Any

import click

from engine.cli.arguments import Command
from engine.cli.command_setup import CommandSettings
from engine.cli.exits import carry_out
from engine.cli.options import project_options, selection_options, split, threads_option

_STOPPED = "the next start or build continues where this one stopped"


@click.command(cls=Command)
@click.option("--watch", is_flag=True, help="Keep showing the status until Ctrl-C.")
@click.option("--live", is_flag=True, help="Report only whether the process works, for a liveness probe.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@project_options
def status(*, watch: bool, live: bool, output: str, **shared: Any) -> int:
    """Show what engine start is doing: state, lag, rows and errors of each model.

    Exits with 0 if all models are healthy, 1 if one has failed or stalled, 3 if engine start does not run. With --live,
    it exits with 0 if the process works, whatever its models do, 1 if it hangs, and 3 if it does not run.
    """
    code = 0

    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.status_command import show_liveness, show_status

        nonlocal code
        code = show_liveness(chosen.target_dir, output) if live else show_status(chosen.target_dir, output, watch=watch)

    return carry_out(work, **shared) or code


@click.command(cls=Command)
@threads_option
@click.option(
    "--turn-seconds",
    type=click.FloatRange(min=0.1),
    default=20.0,
    show_default=True,
    help="A stream with more input than this continues after the others have had their turn.",
)
@click.option("--idle-timeout", type=click.FloatRange(min=0), default=10.0, show_default=True,
              help="Minutes without work after which Java is given back; 0: never.")  # fmt: skip
@click.option("--reload/--no-reload", default=True, help="Use edits of the project when they are saved.")
@click.option("--maintain-after", type=click.IntRange(0), default=100, show_default=True,
              help="Commits after which a table is maintained, in a quiet moment; 0: never.")  # fmt: skip
@click.option("--max-java-memory", type=click.FloatRange(min=0), default=0.0, show_default=True,
              help="Gigabytes above which Java is restarted between turns; 0: no limit.")  # fmt: skip
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
    """Keep models up to date until stopped."""
    wanted, shared = split(options)

    def work(chosen: CommandSettings) -> bool:
        from engine.api.keep_running.live_project import LiveOptions
        from engine.api.requests import THREADS
        from engine.cli.commands.start_command import start_project

        how = LiveOptions(
            threads or THREADS, turn_seconds, reload, idle_timeout * 60 or None, maintain_after,
            int(max_java_memory * 2**30) or None,
        )  # fmt: skip
        return start_project(chosen, wanted, how, serve)

    return carry_out(work, stopped=_STOPPED, **shared)


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
    """Begin no turn of some models, or of all, until they are resumed."""
    return _ask("pause", models, **shared)


@click.command(cls=Command)
@click.argument("models", nargs=-1)
@project_options
def resume(models: tuple[str, ...], **shared: Any) -> int:
    """Resume paused models."""
    return _ask("resume", models, **shared)


@click.command(cls=Command)
@project_options
def reload(**shared: Any) -> int:
    """Make `engine start` read the project again."""
    return _ask("reload", (), **shared)


def _ask(request: str, models: tuple[str, ...], **shared: Any) -> int:
    def work(chosen: CommandSettings) -> None:
        from engine.cli.commands.start_command import ask_running

        ask_running(chosen, request, models)

    return carry_out(work, **shared)


COMMANDS = (start, stop, pause, resume, reload, status)
