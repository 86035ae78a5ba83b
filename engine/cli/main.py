"""The command `engine`: arguments in, lines and exit codes out.

The commands are declared in the modules named *_commands; each imports what it needs when it runs, so that --help and
ls stay quick.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Sequence

import click

from engine import __version__
from engine.cli import (
    live_commands,
    migration_commands,
    project_commands,
    run_commands,
    setup_commands,
    table_commands,
)
from engine.cli.arguments import Group
from engine.cli.console.safe_output import open_streams
from engine.cli.exits import INTERRUPTED, TERMINATED, exit_code

# Terminals get colours unless NO_COLOR is set (no-color.org) or they have none.
_IS_PLAIN = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
_CONTEXT = {"help_option_names": ["-h", "--help"], "color": False if _IS_PLAIN else None}


@click.group(cls=Group, context_settings=_CONTEXT)
@click.version_option(__version__, "--version", "-V", prog_name="headrace")
def cli() -> None:
    """Run SQL models as Spark streams into Iceberg tables, exactly once."""


for _commands in (
    project_commands,
    run_commands,
    live_commands,
    table_commands,
    migration_commands,
    setup_commands,
):
    for _command in _commands.COMMANDS:
        cli.add_command(_command)
# dbt has both names.
cli.add_command(project_commands.ls, "list")


def main(arguments: Sequence[str] | None = None) -> None:
    # Python looks for garbage after every 700 new objects. A project is tens of thousands of them, and all are in use:
    # with this number `ls` of 5,000 models takes 0.6 s of processor instead of 1.05.
    gc.set_threshold(10_000)
    open_streams()
    # A core file of this process or of Java would hold secrets, and lie in the project.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    code = invoke(arguments)
    if code in {INTERRUPTED, TERMINATED}:
        # What is left to do takes a moment, in which impatience has nothing to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def invoke(arguments: Sequence[str] | None = None) -> int:
    return exit_code(cli, arguments)


if __name__ == "__main__":
    main()
