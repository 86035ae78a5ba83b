"""What was written below target/, so that a compilation writes only what has changed, and removes only its own.

The record is in the user's cache: one in target/ may have come with the project. A lost or wrong one costs time; files
are compared with it, and written where they differ.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.bounds.regular_file import MOST_OF_A_CACHE, read_regular
from engine.errors import ProjectError
from engine.target_folder import TargetFolder, is_plain_name

_FILE = "written.json"
_LOCK = ".cache/lock"


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files made from one thing: its key, and of each file (relative to target/) the time in ns and the size."""

    key: str
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def stands(self, key: str, folder: TargetFolder) -> bool:
        return self.key == key and all(folder.file_stamp(name) == stamp for name, stamp in self.files.items())


@contextmanager
def alone(folder: TargetFolder) -> Iterator[None]:
    """Wait until no other command writes into a target folder, which is made if it is not there."""
    with folder.append(_LOCK) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write(folder: TargetFolder, name: str, text: str) -> tuple[int, int]:
    """Write a file below target/, return its time in ns and size. Half a surrogate pair has no UTF-8 form."""
    return folder.write(name, text.encode("utf-8", "replace"))


def load(cache: Path | None) -> dict[str, WrittenFiles]:
    """What was written before, by node; nothing if that cannot be read, or is kept nowhere."""
    if cache is None:
        return {}
    try:
        files_by_node = msgspec.json.decode(read_regular(cache / _FILE, MOST_OF_A_CACHE), type=dict[str, WrittenFiles])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return {}
    return {node: item for node, item in files_by_node.items() if all(map(is_plain_name, item.files))}


def save(written: Mapping[str, WrittenFiles], cache: Path | None) -> None:
    """Keep what was written; a folder that cannot be written only costs time."""
    if cache is not None:
        with suppress(OSError, ValueError, ProjectError), TargetFolder(cache) as folder:
            folder.write(_FILE, msgspec.json.encode(written))
