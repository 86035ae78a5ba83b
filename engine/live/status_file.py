"""The last status on disk, and whether the process that wrote it runs: for commands that cannot ask it.

A project may come with such a file: what is read was sealed by this user (`own_records`) and has the form of a status.
The process holds an OS lock on `live/running.lock` while it runs. A killed process loses it at once, and neither a
number that another process has by now nor another container can be mistaken for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from engine.errors import UsageError
from engine.live.own_records import sealed, verified
from engine.live.status_record import StatusRecord, status_record
from engine.live.turn_history import FOLDER
from engine.secrets.scrubber import scrub
from engine.target_folder import TargetFolder

FILE = f"{FOLDER}/status.json"
_LOCK = f"{FOLDER}/running.lock"
# The thread that decides makes a plan now and then, which may wait for brokers and catalogs.
_ALIVE_SECONDS = 300.0


def hold(target_dir: Path) -> BinaryIO:
    """Take the lock of a running process; it is held until the file is closed.

    Raises UsageError: another process holds it; ProjectError: `target-link`, `target-unwritable`.
    """
    with TargetFolder(target_dir) as folder:
        file = folder.append(_LOCK)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        status = read(target_dir)
        pid = status["pid"] if status else "unknown"
        raise UsageError(
            "usage",
            f"engine start runs already with this target folder (process {pid})",
            "Stop it with engine stop, or give this one a folder of its own: --target-path DIR.",
        ) from error
    note_beat(file, time.monotonic())
    return file


def note_beat(lock: BinaryIO, beat: float) -> None:
    """Note that the process works, at a time of the monotonic clock, which does not run while the machine sleeps.

    It is the modification time of the lock: that needs no room on a disk that is full.
    """
    with suppress(OSError):
        os.utime(lock.fileno(), (beat, beat))


def is_fresh(beat: float) -> bool:
    """Whether a process works that noted this time of the monotonic clock last."""
    return time.monotonic() - beat < _ALIVE_SECONDS


def alive(target_dir: Path) -> bool:
    """Whether a process holds the lock and works: it can begin turns, whether models succeed or fail."""
    try:
        beat = os.lstat(target_dir / _LOCK).st_mtime
    except OSError:
        return False
    return running(target_dir) and is_fresh(beat)


def running(target_dir: Path) -> bool:
    """Whether a process holds the lock."""
    try:
        descriptor = os.open(target_dir / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def write(target_dir: Path, status: StatusRecord) -> None:
    """Write the status at once or not at all. Raises ProjectError: `target-link`, `target-unwritable`."""
    content = scrub(json.dumps(status, allow_nan=False)).encode("utf-8", "replace")
    with TargetFolder(target_dir) as folder:
        folder.write(FILE, sealed(content, target_dir, FILE))


def read(target_dir: Path) -> StatusRecord | None:
    """Return the last status that this user wrote there; None if there is none of this form."""
    with TargetFolder(target_dir) as folder:
        content = folder.read(FILE)
    content_unsealed = verified(content, target_dir, FILE) if content else None
    return status_record(content_unsealed) if content_unsealed else None


def is_of_others(target_dir: Path) -> bool:
    """Whether there is something in the place of a status that `read` does not accept."""
    return os.path.lexists(target_dir / FILE) and read(target_dir) is None
