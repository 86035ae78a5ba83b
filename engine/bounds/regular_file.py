"""Files that somebody else may have put there: regular ones of a bounded size; no links, pipes or devices."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotRegularError(OSError):
    """What has the name of a file is a link, a folder, a pipe, a socket or a device, or the file is too large."""


def read_regular(path: Path, most_bytes: int) -> bytes:
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
        if path.is_symlink():
            raise NotRegularError(f"{path} is a symbolic link") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(f"{path} is not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise NotRegularError(f"{path} has more than {most_bytes:,} bytes")
    return content
