"""Which tables a state folder knows, and the end of what it knows of one.

A state folder may come with a project that somebody else wrote: folders that are links are not followed, and of a
table's folder only what the engine writes there is removed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.characters import whole_number
from engine.state.blob_store import make_private, sync_folder, unwritable
from engine.state.model_state import MODEL_FILE, TableState
from engine.state.object_path import ObjectPath
from engine.state.operations import FILES
from engine.state.state_path import StatePath, local, remove_tree

# A schema of several levels has dots between them.
_NAME = re.compile(r"\w+(?:\.\w+)*")


# How often a folder is moved to a name for which others wait, where two folders cannot be exchanged.
_ATTEMPTS = 50
# Paths that are given to renameat2 are below the working directory or absolute; what it does; how it says no.
_HERE, _EXCHANGE = -100, 2
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


def tables_in(root: StatePath, catalog: str) -> Iterator[TableState]:
    """The folders of tables below a state folder, in order; each may be empty but for its lock."""
    folder = root / catalog
    if folder.is_symlink():
        return
    for schema in _folders(folder):
        for table in _folders(folder / schema):
            yield TableState(root, catalog, schema, table)


def remove(folder: TableState) -> None:
    """Remove all that is kept of a table: generations, the notes of operations, and last the lock, which must be held.

    In a bucket the lock stays: its number must not come again.

    Raises StateError: `state-unwritable`.
    """
    path = folder.folder
    if isinstance(path, ObjectPath):
        for name in _names(path):
            if (number := whole_number(name)) is not None:
                folder.discard(number)
        for name in (name for name in FILES if name in _names(path)):
            _remove(path / name)
    else:
        _remove_folder(path)


def move(folder: TableState, to: TableState) -> None:
    """Give the folder of a table another name, at once; both locks must be held, and stay so.

    The lock of the new name is the file that was the old one's, whose lock the process holds.

    Raises StateError: `state-unwritable`.
    """
    old, new = local(folder.folder), local(to.folder)
    make_private(new)
    with _errors_as_unwritable(new):
        if _exchanged(old, new):
            _remove_folder(old)
        else:
            _replace(old, new)
        for parent in {new.parent, old.parent}:
            sync_folder(parent)


def _exchanged(old: Path, new: Path) -> bool:
    """Exchange two folders, where the system can: there is no moment at which another run could lock the new name.

    Source: renameat2(2), `RENAME_EXCHANGE`; it is not of every system (macOS) nor of every file system (NFS).
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(old), _HERE, os.fsencode(new), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(old), None, str(new))


def _replace(old: Path, new: Path) -> None:
    """Move a folder to the name of an empty one; a run that begins to wait for it makes a file there meanwhile."""
    for attempt in range(_ATTEMPTS):
        _remove_folder(new)
        try:
            old.rename(new)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or attempt + 1 == _ATTEMPTS:
                raise
        else:
            return


def _remove_folder(path: StatePath) -> None:
    for name in _names(path):
        if whole_number(name) is not None:
            if not (path / name).is_symlink():
                # Without model.json it is not a generation: that goes first, as in `TableState.discard`.
                _remove(path / name / MODEL_FILE)
            _remove(path / name)
    for name in (*FILES, "lock"):
        _remove(path / name)
    # What writes that were killed have left behind.
    for name in _names(path):
        if name.startswith("."):
            _remove(path / name)
    if not _names(path):
        with _errors_as_unwritable(path):
            path.rmdir()


@contextmanager
def _errors_as_unwritable(path: StatePath) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(local(path), error) from error


def _remove(path: StatePath) -> None:
    with _errors_as_unwritable(path):
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)


def _names(folder: StatePath) -> list[str]:
    if isinstance(folder, ObjectPath):
        return [path.name for path in folder.iterdir()]
    try:
        return sorted(os.listdir(local(folder)))  # noqa: PTH208 - names are wanted
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folders(folder: StatePath) -> list[str]:
    if isinstance(folder, ObjectPath):
        names = [path.name for path in folder.iterdir() if path.is_dir()]
    else:
        try:
            with os.scandir(local(folder)) as scanned:
                names = [entry.name for entry in scanned if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
    return sorted(name for name in names if _NAME.fullmatch(name))
