"""The commands `engine ...` in the code of a page, and whether the command line accepts them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from engine.cli.main import cli
from tests.pages.page_blocks import Block

# A line of a shell, a unit of systemd, a Dockerfile, a CI file or a Python string: what begins with `engine`, with a path or not.
_COMMAND = re.compile(r"(?:^|[\s\"'=])(?:[\w./~-]*/)?engine[ \t]+(?P<arguments>(?:[a-z]|--?\w)[^\n]*)", re.MULTILINE)
_LANGUAGES = {"console", "sh", "ini", "dockerfile", "yaml", "text", "python"}


def engine_commands(block: Block) -> Iterator[tuple[int, list[str]]]:
    """Return the arguments of each `engine` command in a block, with its line."""
    if block.language not in _LANGUAGES:
        return
    for number, line in enumerate(block.text.splitlines(), block.line):
        if re.match(r"\s*(from|import) ", line):
            continue
        if block.language == "console" and not line.startswith("$ "):
            continue
        for part in re.split(r"\s(?:&&|\|\|?|;)\s", line.removeprefix("$ ")):
            match = _COMMAND.search(part)
            if match:
                text = re.sub(r"\s#\s.*", "", match["arguments"]).rstrip()
                yield number, shlex.split(text.rstrip('",') if text.count('"') % 2 else text)


def check_command(arguments: list[str]) -> None:
    """Read arguments as the command line does, and run nothing.

    Raises:
        click.UsageError: a command or an option does not exist, or a value does not fit.
    """
    if arguments in (["--version"], ["--help"]):
        return
    context = cli.make_context("engine", list(arguments))
    command: click.Command = cli
    rest = [*context._protected_args, *context.args]
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        context = found.make_context(name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
        command = found
