"""A terminal of 24 lines of 200 columns with a process in it, and what a person would see on it at each moment."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

ROWS, COLUMNS = 24, 200
_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


@dataclass
class Screen:
    """The cells of a terminal, with what scrolled out above them; knows the sequences that the engine uses."""

    lines: list[str] = field(default_factory=lambda: [""])
    row: int = 0
    column: int = 0
    unknown: list[str] = field(default_factory=list)
    _rest: str = ""

    def feed(self, text: str) -> None:
        text = self._rest + text
        self._rest = ""
        place = 0
        while place < len(text):
            if text[place] == "\x1b":
                if (found := _SEQUENCE.match(text, place)) is None:
                    self._rest = text[place:]
                    return
                self._obey(found[1], found[2])
                place = found.end()
                continue
            self._put(text[place])
            place += 1

    def _put(self, character: str) -> None:
        if character == "\n":
            self.row += 1
        elif character == "\r":
            self.column = 0
        else:
            if self.column >= COLUMNS:
                self.row, self.column = self.row + 1, 0
            self._grow()
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1
        self._grow()

    def _grow(self) -> None:
        while len(self.lines) <= self.row:
            self.lines.append("")

    def _obey(self, argument: str, letter: str) -> None:
        if letter == "A":
            # Not above what is visible.
            self.row = max(self.row - int(argument or 1), len(self.lines) - ROWS, 0)
        elif letter == "K":
            line = self.lines[self.row]
            self.lines[self.row] = "" if argument == "2" else line[: self.column]
        elif letter == "J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif letter != "m":
            self.unknown.append(argument + letter)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).rstrip()


@dataclass
class Watched:
    """A command on a terminal of its own.

    Attributes:
        screen: as it is now.
        seen: each different text of the last lines, with the seconds since the start at which it appeared.
        code: exit code; a signal as a negative number.
    """

    screen: Screen = field(default_factory=Screen)
    seen: list[tuple[float, str]] = field(default_factory=list)
    code: int = 0
    raw: bytes = b""

    def last_lines(self) -> list[str]:
        return [text.rsplit("\n", 1)[-1] for _, text in self.seen]


def watch(
    arguments: list[str], environment: dict[str, str], *, folder: Path, interrupt_at: str = "", seconds: float = 120
) -> Watched:
    """Run a command on a terminal of its own until it ends.

    Args:
        arguments: of the command `engine`.
        environment: beside that of this process.
        folder: where it runs.
        interrupt_at: a text on the screen at which Ctrl-C is pressed, once.
        seconds: after which it is killed.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    variables = {key: value for key, value in os.environ.items() if key not in {"CI", "NO_COLOR"}}
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
        env={**variables, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment},
        # Ctrl-C is a signal to the processes whose terminal it is.
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    watched, pressed = Watched(), False
    while time.monotonic() - begin < seconds:
        if not select.select([ours], [], [], 1.0)[0]:
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        watched.raw += piece
        watched.screen.feed(piece.decode("utf-8", "replace"))
        text = watched.screen.text
        if not watched.seen or watched.seen[-1][1] != text:
            watched.seen.append((time.monotonic() - begin, text))
        if interrupt_at and not pressed and interrupt_at in text:
            pressed = True
            os.write(ours, b"\x03")
    else:
        os.killpg(process.pid, signal.SIGKILL)
    os.close(ours)
    watched.code = process.wait(10)
    return watched
