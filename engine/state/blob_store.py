"""What state asks of the place where it is kept: no more than an object store gives.

Whole files are written, read, listed and removed; one that must not be there yet is created only if it is not. Nothing
is renamed, appended to or locked. Keys are names joined by `/`. Spark's checkpoints are not written through this: Spark
has its own file systems.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.bounds.regular_file import NotRegularError, read_regular
from engine.errors import StateError

PRIVATE = 0o700
# Of a file of the state: facts about a model, or (in a checkpoint) the names of all files that a stream was given.
MOST_BYTES = 1 << 30


class Store(Protocol):
    """A place for small files. What cannot be read or written raises StateError, with the system's reason."""

    def get(self, key: str) -> bytes | None:
        """The content of a file; None: there is none."""

    def put(self, key: str, content: bytes) -> None:
        """Write a file, or another content of it; others see the old one or the new one."""

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write a file that is not there; False, and nothing written, if it is. Of several writers one wins."""

    def age(self, key: str, /) -> float | None:
        """How many seconds ago a file was written, by the store's own clock; None: it has none that all agree on."""

    def list(self, prefix: str) -> tuple[str, ...]:
        """The names directly under a prefix, of files and of what has files under it; in order."""

    def delete(self, prefix: str) -> None:
        """Remove a file, or all that is under a prefix; that nothing is there is no error."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A store in the local file system: readable by its owner only, on the disk when a call returns."""

    root: Path

    @property
    def uri(self) -> str:
        return str(self.root)

    def get(self, key: str) -> bytes | None:
        try:
            return content(f"{self.root}/{key}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(self.root / key, error) from error

    def put(self, key: str, content: bytes) -> None:
        path = self.root / key
        make_private(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            _write(temporary, content)
            temporary.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise unwritable(path, error) from error

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """See `Store`; a hard link is made of a whole file, or not made if the name is taken."""
        path = self.root / key
        make_private(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            _write(temporary, content)
            os.link(temporary, path)
            sync_folder(path.parent)
        except FileExistsError:
            return False
        except OSError as error:
            raise unwritable(path, error) from error
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def age(self, _: str) -> float | None:
        """See `Store`; the clocks of machines that share a folder may differ."""
        return None

    def list(self, prefix: str) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries(prefix) if not name.startswith("."))

    def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
        try:
            with os.scandir(f"{self.root}/{prefix}") as found:
                return tuple(sorted((entry.name, entry.is_dir()) for entry in found))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise unreadable(self.root / prefix, error) from error

    def keys(self, prefix: str) -> tuple[str, ...]:
        folder = self.root / prefix
        return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))

    def delete(self, prefix: str) -> None:
        path = self.root / prefix
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove files; those that are not there are no error."""
        for key in keys:
            (self.root / key).unlink(missing_ok=True)

    def copy(self, key: str, to: str) -> bool:
        found = self.get(key)
        if found is not None:
            self.put(to, found)
        return found is not None


def content(path: Path | str) -> bytes:
    """The content of a regular file; the state may have come with a project, where a link or a pipe has its name.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    try:
        return read_regular(path, MOST_BYTES)
    except NotRegularError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for the owner only.

    Raises:
        StateError: `state-unwritable`.
    """
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(mode=PRIVATE, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def unwritable(path: Path, error: OSError) -> StateError:
    hint = "Make the folder writable and check the free space, or change 'state:' of the target."
    return StateError("state-unwritable", f"{path} cannot be written: {error.strerror}", hint)


def unreadable(path: Path, error: OSError) -> StateError:
    hint = "Make it readable, or restore it from a backup: it records what the table contains."
    return StateError("state-unreadable", f"{path} cannot be read: {error.strerror}", hint)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
