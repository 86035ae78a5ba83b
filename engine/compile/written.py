"""What stands in target/ as it was written, so that a compilation writes only what has changed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

_FILE = ".cache/written.json"
_LOCK = ".cache/lock"


@dataclass(frozen=True, slots=True)
class Written:
    """Files made from one thing: its key, and of each file (relative to target/) the time in ns and the size."""

    key: str
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def stands(self, key: str, folder: Path) -> bool:
        """Whether the files are there as they were written, and would be written alike."""
        return self.key == key and all(_seen(folder, name) == seen for name, seen in self.files.items())


def wrote(key: str, folder: Path, *paths: Path) -> Written:
    """Files that have just been written."""
    names = [path.relative_to(folder).as_posix() for path in paths]
    return Written(key, {name: seen for name in names if (seen := _seen(folder, name))})


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other command writes into a target folder, which is made if it is not there."""
    path = folder / _LOCK
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write(folder: Path, name: str, text: str) -> tuple[int, int]:
    """Write a file below target/ and tell its time in ns and size. Half a surrogate pair has no UTF-8 form."""
    path = f"{folder}/{name}"
    data = text.encode("utf-8", "replace")
    try:
        file = open(path, "wb")  # noqa: PTH123, SIM115 - thousands of files
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True)
        file = open(path, "wb")  # noqa: PTH123, SIM115 - as above
    with file:
        file.write(data)
        file.flush()
        stat = os.fstat(file.fileno())
    return stat.st_mtime_ns, stat.st_size


def load(folder: Path) -> dict[str, Written]:
    """What was written before, by node; nothing if that cannot be read."""
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=dict[str, Written])
    except (OSError, msgspec.MsgspecError):
        return {}


def save(written: Mapping[str, Written], folder: Path) -> None:
    """Keep what was written."""
    path = folder / _FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(msgspec.json.encode(written))
    temporary.replace(path)


def _seen(folder: Path, name: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(f"{folder}/{name}")  # noqa: PTH116 - ten thousand files, and Path takes thrice as long
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
