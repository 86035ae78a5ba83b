"""Commands that show what `engine start` does."""

from __future__ import annotations

from typing import Any

import click

from engine.cli.arguments import Command
from engine.cli.command_setup import CommandSettings
from engine.cli.exits import carry_out
from engine.cli.options import project_options


@click.command(cls=Command)
@click.option("--watch", is_flag=True, help="Keep showing the status until Ctrl-C.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@project_options
def status(*, watch: bool, output: str, **shared: Any) -> int:
    """Show what engine start is doing: state, lag, rows and errors of each model.

    Exits with 0 if all models are healthy, 1 if one has failed or stalled, 3 if engine start does not run.
    """
    code = 0

    def work(chosen: CommandSettings) -> None:
        from engine.cli.live.status_command import show_status

        nonlocal code
        code = show_status(chosen.target_dir, output, watch=watch)

    return carry_out(work, **shared) or code


COMMANDS = (status,)
