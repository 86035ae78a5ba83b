"""The files of state by path, wherever they are: `pathlib.Path` in the local file system, `ObjectPath` in a bucket.

What reads and removes state asks for no more than `StatePath` has, which is a part of `pathlib.Path`, so that local
files are read as ever. In a bucket a folder is a prefix: it is there while something is below it.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, Self

from engine import local_paths
from engine.state import blob_store
from engine.state.blob_store import Folder, Store
from engine.state.object_path import ObjectPath


class StatePath(Protocol):
    """A file or a folder of the state.

    What is not there raises FileNotFoundError. Where `content` and `names_in` cannot look they raise StateError; in a
    bucket everything else that fails does, too, never OSError.
    """

    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    @property
    def parent(self) -> Self: ...

    def __truediv__(self, name: str, /) -> Self: ...

    def __lt__(self, other: Any, /) -> bool: ...

    def with_name(self, name: str) -> Self: ...

    def exists(self) -> bool: ...

    def is_file(self) -> bool: ...

    def is_dir(self) -> bool: ...

    def is_symlink(self) -> bool:
        """Whether it is a link; there are none in a bucket."""

    def read_bytes(self) -> bytes: ...

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str: ...

    def iterdir(self) -> Iterator[Self]: ...

    def glob(self, pattern: str) -> Iterator[Self]: ...

    def rglob(self, pattern: str) -> Iterator[Self]: ...

    def unlink(self, missing_ok: bool = False) -> None: ...

    def rmdir(self) -> None:
        """Remove an empty folder; in a bucket there is none."""


def store_of(root: StatePath) -> Store:
    if isinstance(root, ObjectPath):
        return root.as_store()
    return Folder(local(root))


def content(path: StatePath) -> bytes:
    """The content of a regular file; a link is not followed.

    Raises:
        OSError: it is not there, or is something else.
        StateError: `state-unreadable`.
    """
    if isinstance(path, ObjectPath):
        return path.read_bytes()
    with _looking(local(path)):
        return blob_store.content(local(path))


def names_in(folder: StatePath) -> list[str]:
    """The names of what is directly in a folder, hidden ones too.

    Raises:
        OSError: it is not there, or is a file; in a bucket a folder that is not there has nothing in it.
        StateError: `state-unreadable`.
    """
    if isinstance(folder, ObjectPath):
        return [name for name, _ in folder.store.entries(folder.key)]
    with _looking(local(folder)):
        return os.listdir(local(folder))  # noqa: PTH208 - names are enough


# Of a disk, or of this process: what is there is not known then.
_UNKNOWN = {errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@contextmanager
def _looking(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _UNKNOWN:
            raise blob_store.unreadable(path, error) from error
        raise


def remove_tree(path: StatePath, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it.

    Raises OSError: unless errors are ignored; in a bucket StateError `state-unwritable` whether they are or not.
    """
    if isinstance(path, ObjectPath):
        path.remove()
    else:
        shutil.rmtree(local(path), ignore_errors=ignore_errors)


def copy_tree(path: StatePath, to: StatePath) -> None:
    """Copy a local folder with all that is in it; what is there already is overwritten. It is on the disk afterwards.

    Raises OSError: it cannot be read or written.
    """
    shutil.copytree(local(path), local(to), dirs_exist_ok=True)
    os.sync()


def names_below(path: StatePath, folder: StatePath) -> tuple[str, ...]:
    return PurePosixPath(str(path)).relative_to(PurePosixPath(str(folder))).parts


def spark_location(path: StatePath) -> str:
    """The path as Spark takes it; Hadoop decodes nothing in it."""
    return path.uri if isinstance(path, ObjectPath) else local_paths.hadoop(local(path))


def local(path: StatePath) -> Path:
    """The path as one of the local file system. Raises TypeError: it is in a bucket."""
    if isinstance(path, Path):
        return path
    raise TypeError(str(path))
