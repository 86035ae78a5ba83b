"""A terminal that follows a page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from engine.cli.main import invoke
from tests.lab import LabSession, share_session
from tests.pages.page_blocks import Command, blocks_of, commands_of, comparable, put

# Commands that start Java, or whose output depends on those before.
NEEDS_TABLES = re.compile(r"engine (build|test|show|plan|compare|rollback)\b|python ")
# Variables, and a command of the engine without anything that is the shell's.
_PLAIN = re.compile(r"((?:[A-Z_]+=\w+ )*)engine ((?:'[^']*'|\"[^\"$`\\]*\"|[^'\"|&;<>$`*?()\\])*)")
# Set to write the real output into the pages that are tested.
UPDATE = "ENGINE_WRITE_PAGES"


@dataclass(slots=True)
class Terminal:
    """Runs commands one after the other: those of the engine in this process, others in a shell.

    Attributes:
        folder: where the next command runs.
        programs: a folder with `engine` and `python`, in front of the path of the shell.
        session: for commands that need one; None: none does.
    """

    folder: Path
    programs: Path
    session: LabSession | None = None

    def __post_init__(self) -> None:
        self.programs.mkdir(parents=True)
        for name, arguments in (("engine", "-m engine "), ("python", "")):
            program = self.programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
            program.chmod(0o755)

    def run(self, command: Command) -> str:
        """Run a command and return what it prints on both streams."""
        if command.text.startswith("cd "):
            self.folder /= command.text.removeprefix("cd ")
            return ""
        plain = _PLAIN.fullmatch(command.text)
        code, printed = self._here(shlex.split(plain[1]), plain[2]) if plain else self._in_shell(command.text)
        failed = re.search(r"(: |^)error: |^rejected |ERROR=[1-9]", printed, re.MULTILINE)
        assert (code != 0) == bool(failed), f"{command.text} ended with {code}:\n{printed}"
        return printed

    def _here(self, variables: list[str], arguments: str) -> tuple[int, str]:
        printed = StringIO()
        with (
            share_session(self.session, own_lakes=True) if self.session is not None else nullcontext(),
            patch.dict(os.environ, dict([*(variable.split("=", 1) for variable in variables), ("NO_COLOR", "1")])),
            chdir(self.folder),
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            return invoke(shlex.split(arguments)), printed.getvalue()

    def _in_shell(self, text: str) -> tuple[int, str]:
        ended = subprocess.run(
            ["/bin/sh", "-c", text],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return ended.returncode, ended.stdout

    def follow(self, page: Path, *, tables: bool) -> Iterator[tuple[Command, str]]:
        """Do what a page says, and yield each command with what it printed.

        Args:
            page: its path.
            tables: also the commands that start Java, or show what those left.
        """
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.file:
                put(block, self.folder)
            elif block.language == "console":
                for command in commands_of(block):
                    if tables or not NEEDS_TABLES.match(command.text):
                        yield command, self.run(command)


def write_output(page: Path, outputs: list[tuple[Command, str]]) -> None:
    """Replace the output that a page shows by the real one."""
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for command, output in reversed(outputs):
        assert lines[command.line - 1].startswith(f"$ {command.text}"), "the page was edited meanwhile"
        shown = len(command.output.splitlines())
        lines[command.line : command.line + shown] = [output if output.endswith("\n") or not output else f"{output}\n"]
    page.write_text("".join(lines), encoding="utf-8")


def follow_page(page: Path, folder: Path, *, session: LabSession | None, given: Path | None = None) -> None:
    """Do what a page says in an empty folder, and compare what the commands print; with `UPDATE` write it into the page.

    Args:
        page: its path.
        folder: an empty one.
        session: for its commands; None: only those that need no tables are run.
        given: what is in the folder at the beginning; None: nothing.
    """
    empty = folder / "empty"
    if given is None:
        empty.mkdir()
    else:
        shutil.copytree(given, empty)
    outputs = list(Terminal(empty, folder / "bin", session).follow(page, tables=session is not None))
    assert outputs
    if UPDATE in os.environ:
        write_output(page, outputs)
        return
    for command, output in outputs:
        said, expected = comparable(output), comparable(command.output)
        assert said == expected, f"line {command.line}: {command.text}\n{said}\ninstead of\n{expected}"
