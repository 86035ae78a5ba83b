r"""The one way out of a command: everything that is printed goes through `write` or `write_json`.

Control characters and those that cannot be seen are written out (`\x1b`), so that none steers the terminal; commands to
a CI system are taken apart; values of secrets are masked. Colours, only ours, are the only sequences.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import click

from engine.characters import visible, without_commands
from engine.cli.console.live_area import AREA
from engine.errors import UsageError
from engine.secrets.scrubber import scrub, scrubber

_NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}


@dataclass(frozen=True, slots=True)
class Styled:
    """A text in a colour (empty: the terminal's own), where the terminal has colours."""

    text: str
    colour: str
    bold: bool = False


Part = str | Styled


def write(*parts: Part, error: bool = False, end: str = "\n") -> None:
    # Asked for once: a report of a thousand findings has five thousand parts.
    clean = scrubber()
    _write_to_stream("".join(_styled(part, clean) for part in parts), error=error, end=end)


def plain(*parts: Part) -> str:
    clean = scrubber()
    return "".join(_safe(part.text if isinstance(part, Styled) else part, clean) for part in parts)


def indented(text: str, width: int) -> str:
    """The text with its second and later lines moved to the right, so that none looks like a line of ours."""
    first, *further_lines = text.split("\n")
    blank = " " * width
    return "\n".join([first, *(line if line.startswith(blank) else f"{blank}{line}" for line in further_lines)])


def write_json(record: Any, *, indent: int | None = None) -> None:
    _write_to_stream(json_text(record, indent=indent), error=False, end="\n")


def json_text(record: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """A record as JSON, in ASCII without control characters; infinities and NaN become strings."""
    try:
        text = json.dumps(record, indent=indent, default=default, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(record), indent=indent, default=default, allow_nan=False)
    # These are inside strings only.
    return scrub(text).replace("\x7f", "\\u007f").replace("##", "#\\u0023")


def open_streams() -> None:
    """Give a process that was started without standard streams some that lead nowhere.

    Else the next file that is opened would be taken for one.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is given first.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - for as long as the process lives


def take_write_failure() -> OSError | None:
    """Why some of what was printed could not be written, if so, once; not that its reader has left."""
    return _write_failures.pop() if _write_failures else None


def reader_left() -> bool:
    """Whether nobody reads any more what is printed."""
    return bool(_broken_pipes)


_write_failures: list[OSError] = []
_broken_pipes: list[BrokenPipeError] = []


@contextmanager
def writing(stream: Any) -> Iterator[None]:
    """Continue without a reader, and without room: a build does not end because `head` has seen enough of it."""
    try:
        yield
    except OSError as failure:
        if isinstance(failure, BrokenPipeError):
            _broken_pipes[:] = [failure]
        else:
            _write_failures[:] = [failure]
        # What is still in Python's buffer would fail again at the end of the process.
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def _safe(text: str, clean: Callable[[str], str]) -> str:
    return without_commands(visible(clean(text)))


def _styled(part: Part, clean: Callable[[str], str]) -> str:
    if not isinstance(part, Styled):
        return _safe(part, clean)
    return click.style(_safe(part.text, clean), fg=part.colour or None, bold=part.bold or None)


def _write_to_stream(text: str, *, error: bool, end: str) -> None:
    stream = sys.stderr if error else sys.stdout
    with AREA.above(), writing(stream):
        click.echo(_encodable(text, stream) + end, nl=False, err=error)


def _encodable(text: str, stream: Any) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text if text.isascii() else text.encode(encoding, "backslashreplace").decode(encoding)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return _NAMES.get(value, "NaN")
    return value


def confirmed(command: str, question: str) -> bool:
    """Ask a question; no answer is no. Raises UsageError: there is no terminal."""
    if not sys.stdin.isatty():
        message = f"{command} needs a confirmation, and there is no terminal to ask"
        raise UsageError("usage", message, "Add --yes to confirm.")
    write(f"{question} [y/N] ", end="")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
