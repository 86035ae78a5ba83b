"""Files that somebody else may have put there: regular ones of a bounded size; no links, pipes or devices."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_AT_ONCE = 1 << 20
# What is kept of the largest projects from one command to the next has a tenth of these bytes.
MOST_OF_A_CACHE = 1 << 27


class NotRegularError(OSError):
    """What has the name of a file is a link, a folder, a pipe, a socket or a device, or the file is too large."""


def read_regular(path: Path | str, most_bytes: int) -> bytes:
    """Return the content of a file.

    A link of the last part of the path is not followed, and a pipe without a writer does not hold the caller up.

    Args:
        path: of the file.
        most_bytes: a larger one is an error.

    Raises:
        NotRegularError: it is not a regular file, or it is larger.
        OSError: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if os.path.islink(path):  # noqa: PTH114 - a text is as good
            raise NotRegularError(f"{path} is a symbolic link") from error
        raise
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise NotRegularError(f"{path} is not a regular file")
        # One that grows meanwhile has its end at the bound, too.
        content = _read(descriptor, most_bytes + 1) if seen.st_size <= most_bytes else b""
    finally:
        os.close(descriptor)
    if max(len(content), seen.st_size) > most_bytes:
        raise NotRegularError(f"{path} has more than {most_bytes:,} bytes")
    return content


def _read(descriptor: int, most: int) -> bytes:
    """The bytes of a file, at most so many."""
    parts: list[bytes] = []
    while most > 0 and (part := os.read(descriptor, min(most, _AT_ONCE))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)
