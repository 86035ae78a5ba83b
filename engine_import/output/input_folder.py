"""Files of somebody else's folder, read with a bound and through no link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from engine.errors import ProjectError
from engine.target_folder import is_plain_name

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_bounded(folder: Path, name: str, most: int) -> bytes | None:
    """Return the content of a plain file below a folder; None if there is no such file.

    Each folder on the way is opened without following links, so that a name in a foreign manifest cannot lead to
    other files of the machine. The folder itself is the user's choice and may be a link.

    Args:
        folder: where to begin.
        name: of the file, relative to the folder, with `/`.
        most: bytes that are read at most.

    Raises:
        ProjectError: `import-unreadable`: the name leads out of the folder, is a link or not a plain file, or the file
            is larger than `most`.
    """
    if not is_plain_name(name):
        raise _unreadable(folder, name, "its path leads out of the folder")
    *above, last = name.split("/")
    opened = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for part in above:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        opened.append(os.open(last, _FILE, dir_fd=opened[-1]))
        found = os.fstat(opened[-1])
        if not stat.S_ISREG(found.st_mode):
            raise _unreadable(folder, name, "it is not a plain file")
        return _content(opened[-1], most, folder, name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(folder, name, error.strerror or str(error)) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _content(descriptor: int, most: int, folder: Path, name: str) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _unreadable(folder, name, f"it is larger than {most // 2**20} MiB")
    return content


def _unreadable(folder: Path, name: str, reason: str) -> ProjectError:
    shown = (folder / name).as_posix()[:300]
    hint = "Give the folder of a plain file; links are not followed."
    return ProjectError("import-unreadable", f"{shown!r} cannot be imported: {reason}", hint)
