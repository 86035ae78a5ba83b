"""A terminal that follows a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.pages.page_blocks import Command, blocks_of, commands_of, comparable, put

# Commands that start Java, or whose output depends on those before.
NEEDS_TABLES = re.compile(r"engine (build|test|show|plan)\b")
# Set to write the real output into the pages that are tested.
UPDATE = "ENGINE_WRITE_PAGES"


@dataclass(slots=True)
class Terminal:
    """Runs commands one after the other.

    Attributes:
        folder: where the next command runs.
        programs: a folder with `engine`, in front of the path.
    """

    folder: Path
    programs: Path

    def __post_init__(self) -> None:
        self.programs.mkdir(parents=True)
        program = self.programs / "engine"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m engine "$@"\n')
        program.chmod(0o755)

    def run(self, command: Command) -> str:
        """Run a command and return what it prints on both streams."""
        if command.text.startswith("cd "):
            self.folder /= command.text.removeprefix("cd ")
            return ""
        ended = subprocess.run(
            ["/bin/sh", "-c", command.text],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        failed = re.search(r"(: |^)error: |^rejected |ERROR=[1-9]", ended.stdout, re.MULTILINE)
        assert (ended.returncode != 0) == bool(failed), f"{command.text} ended with {ended.returncode}:\n{ended.stdout}"
        return ended.stdout

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


def follow_page(page: Path, folder: Path, *, tables: bool) -> None:
    """Do what a page says in an empty folder, and compare what the commands print; with `UPDATE` write it into the page."""
    empty = folder / "empty"
    empty.mkdir()
    outputs = list(Terminal(empty, folder / "bin").follow(page, tables=tables))
    assert outputs
    if UPDATE in os.environ:
        write_output(page, outputs)
        return
    for command, output in outputs:
        said, expected = comparable(output), comparable(command.output)
        assert said == expected, f"line {command.line}: {command.text}\n{said}\ninstead of\n{expected}"
