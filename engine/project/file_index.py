"""What the models' files were when they were last read, so that a file that is still the same is not read again.

A file is the same if its size, its times and its inode are. A file that was changed just before it was looked at
is read all the same: a second change within one tick of the clock would leave no trace.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.bounds.regular_file import MOST_OF_A_CACHE, read_regular
from engine.errors import ProjectError
from engine.target_folder import TargetFolder

# Times of files go in steps; two seconds are the largest (FAT), and clocks of file servers may be a little off.
_MARGIN = 2_000_000_000
_FORM = 1


class SeenFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read: size, times of change in ns, inode; `sure`: it had been left alone for a while."""

    size: int
    changed: int
    touched: int
    inode: int
    sure: bool
    digest: str


class _Kept(msgspec.Struct, frozen=True):
    form: int
    files: dict[str, SeenFile]


@dataclass(slots=True)
class Index:
    """The files by the names shown to users: as they were known, and as they are now.

    Attributes:
        path: where it is kept; None: nowhere.
        began: when the files were looked at, in ns.
    """

    path: Path | None
    known: Mapping[str, SeenFile]
    began: int
    now: dict[str, SeenFile] = field(default_factory=dict)

    def same(self, shown: str, stat: os.stat_result) -> str | None:
        """The digest of a file that is as it was; None if it has to be read."""
        seen = self.known.get(shown)
        if seen is None or not seen.sure or self._seen(stat, seen.digest) != seen:
            return None
        self.now[shown] = seen
        return seen.digest

    def add(self, shown: str, stat: os.stat_result, digest: str) -> None:
        self.now[shown] = self._seen(stat, digest)

    def _seen(self, stat: os.stat_result, digest: str) -> SeenFile:
        sure = max(stat.st_mtime_ns, stat.st_ctime_ns) < self.began - _MARGIN
        return SeenFile(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, sure, digest)

    def save(self) -> None:
        """Keep it; a folder that cannot be written only costs time."""
        if self.path is None or self.now == self.known:
            return
        with contextlib.suppress(ProjectError, UnicodeEncodeError), TargetFolder(self.path.parent) as folder:
            folder.write(self.path.name, msgspec.json.encode(_Kept(_FORM, self.now)))


def load_index(path: Path | None) -> Index:
    began = time.time_ns()
    if path is not None:
        with contextlib.suppress(OSError, ValueError, RecursionError, msgspec.MsgspecError):
            kept = msgspec.json.decode(read_regular(path, MOST_OF_A_CACHE), type=_Kept)
            return Index(path, kept.files if kept.form == _FORM else {}, began)
    return Index(path, {}, began)


def text_digest(shown: str, text: str | None) -> str:
    """A hash of a file's name and text; None is a file that cannot be read."""
    whole = f"{shown}\0{text}" if text is not None else f"{shown}\0\0"
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
