"""Files that somebody else may have put there: regular ones of a bounded size; no links, pipes or devices.

JSON that somebody else wrote: bounded in size, in values and in depth before Python builds it.

A text of a few bytes may become hundreds of times as large: `[],[],..` makes a list of each three bytes. Commas and
opening brackets are counted first, those in texts too, which is quick and never too few.
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
    """What has the name of a file is a link, a folder, a pipe, a socket or a device, or the file is too large."""


def open_regular(path: Path | str, most_bytes: int) -> BinaryIO:
    """Open a file for reading.

    A link of the last part of the path is not followed, and a pipe without a writer does not hold the caller up.

    Raises:
        NotRegularError: it is not a regular file, or it is larger.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if os.path.islink(path):  # noqa: PTH114 - a text is as good
            raise NotRegularError(f"{path} is a symbolic link") from error
        raise
    seen = os.fstat(descriptor)
    if stat.S_ISREG(seen.st_mode) and seen.st_size <= most_bytes:
        return os.fdopen(descriptor, "rb", buffering=0)
    os.close(descriptor)
    if stat.S_ISREG(seen.st_mode):
        raise _too_large(path, most_bytes)
    raise NotRegularError(f"{path} is not a regular file")


def read_regular(path: Path | str, most_bytes: int) -> bytes:
    """Return the content of a file, opened by `open_regular`.

    Raises:
        NotRegularError: it is not a regular file, or it is larger.
        OSError: it cannot be read.
    """
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
    """Return the value of a JSON text in UTF-8.

    Raises:
        ValueError: it is not JSON, too deep or too large, or has half of a surrogate pair, which no text can hold.
    """
    if len(content) > most_bytes or sum(content.count(sign) for sign in (b",", b"[", b"{")) > most_values:
        raise ValueError("it is too large")
    try:
        return msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
