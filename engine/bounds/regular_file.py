"""Files and JSON from strangers: regular files of a bounded size, no links, pipes or devices.

JSON is bounded before Python builds it: a few bytes may become hundreds of times as large, as `[],[],..` makes a list
of each three bytes. Counting commas and opening brackets, including those in texts, is quick and never too low.
"""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

_AT_ONCE = 1 << 20
# What is kept of the largest projects from one command to the next has a tenth of these bytes.
MOST_OF_A_CACHE = 1 << 27


class NotRegularError(OSError):
    """A path is a link, folder, pipe, socket or device, or the file is too large."""


def open_regular(path: Path | str, most_bytes: int) -> BinaryIO:
    """Open a file for reading; raise NotRegularError if it is not a regular file, or is larger.

    A link as the last part of the path is not followed, and a pipe without a writer does not block.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if os.path.islink(path):  # noqa: PTH114 - a text is as good
            raise NotRegularError(f"{path} is a symbolic link") from error
        raise
    file_stat = os.fstat(descriptor)
    if stat.S_ISREG(file_stat.st_mode) and file_stat.st_size <= most_bytes:
        return os.fdopen(descriptor, "rb", buffering=0)
    os.close(descriptor)
    if stat.S_ISREG(file_stat.st_mode):
        raise _too_large(path, most_bytes)
    raise NotRegularError(f"{path} is not a regular file")


def read_regular(path: Path | str, most_bytes: int) -> bytes:
    """Return the content of a file; errors are those of `open_regular`."""
    with open_regular(path, most_bytes) as file:
        # One that grows meanwhile has its end at the bound, too.
        content = _read(file.fileno(), most_bytes + 1)
    if len(content) > most_bytes:
        raise _too_large(path, most_bytes)
    return content


def _too_large(path: Path | str, most_bytes: int) -> NotRegularError:
    return NotRegularError(f"{path} has more than {most_bytes:,} bytes")


def _read(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(descriptor, min(most, _AT_ONCE))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


# A table with ten thousand snapshots has a tenth of these bytes and values.
MOST_BYTES: Final = 1 << 26
MOST_VALUES: Final = 2_000_000


def parse_json(content: bytes, most_values: int = MOST_VALUES, most_bytes: int = MOST_BYTES) -> Any:
    """Parse JSON in UTF-8; raise ValueError if it is too deep, too large, or has half of a surrogate pair."""
    if len(content) > most_bytes or sum(content.count(sign) for sign in (b",", b"[", b"{")) > most_values:
        raise ValueError("it is too large")
    try:
        return msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
