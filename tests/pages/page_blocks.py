"""The blocks of a page: files to write, edits of them, commands with their output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?:`(?P<file>[^`\n]+)`:\n\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_CLOCK = re.compile(r"^\d\d:\d\d:\d\d  ", re.MULTILINE)
_RATE = re.compile(r"\b[\d,]+ rows/s")
_SNAPSHOT = re.compile(r"\b\d{17,}\b")
_SECONDS = re.compile(r"\b\d+(?:\.\d+)?( ?)s\b")
_WHEN = re.compile(r"\b(replaced at|as of) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: after the fence.
        file: the path in backticks on the line before it: the file that the block is, or edits ("" without one).
        text: between the fences.
        line: of the first line of the text, from 1.
    """

    language: str
    file: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a `console` block, and what it prints.

    Attributes:
        text: after `$ `.
        output: the lines up to the next command or the end of the block.
        line: of the command in the page, from 1.
    """

    text: str
    output: str
    line: int


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    return [
        Block(m["language"], m["file"] or "", m["text"], page.count("\n", 0, m.start("text")) + 1)
        for m in _FENCE.finditer(page)
    ]


def commands_of(block: Block) -> list[Command]:
    """Return the commands of a `console` block in order."""
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(keepends=True), block.line):
        if line.startswith("$ "):
            found.append(Command(line[2:].strip(), "", number))
        else:
            found[-1] = Command(found[-1].text, found[-1].output + line, found[-1].line)
    return found


def put(block: Block, folder: Path) -> None:
    """Write the file of a block, or edit it with the lines of a `diff` block."""
    path = folder / block.file
    if block.language != "diff":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return
    lines = block.text.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{block.file} does not have the lines of line {block.line} once"
    path.write_text(text.replace(before, after), encoding="utf-8")


def comparable(output: str) -> str:
    """Return output without what differs from run to run: clock, times of commits, durations, rates, ids of snapshots,
    and the order of what runs side by side."""
    output = _WHEN.sub(r"\1 TIME", output)
    output = _RATE.sub("N rows/s", _SECONDS.sub(r"N.N\1s", _CLOCK.sub("HH:MM:SS  ", output)))
    lines = _SNAPSHOT.sub("SNAPSHOT", output).splitlines()
    return "\n".join(sorted(line for line in lines if line))
