"""One writer a table: an OS lock that the driver's JVM inherits, or a lease where state is in a bucket.

The lock of the operating system is flock(2) on an open file description. The JVM gets the same description, so the
lock is free only when both processes are gone: a JVM outlives a killed Python by some seconds (measured: 2) and may
still commit in that time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from engine.errors import StateError
from engine.state.blob_store import make_private
from engine.state.lease import leased
from engine.state.lock_holder import LockHolder, TableLockedError, process
from engine.state.model_state import TableState
from engine.state.object_path import ObjectPath
from engine.state.state_path import local

# How long to wait for the JVM of a process that is gone already: two seconds on an idle machine, many on a busy one.
ORPHAN_SECONDS = 60.0
_POLL_SECONDS = 0.2
_ATTEMPTS = 10


@contextmanager
def locked(states: Sequence[TableState], *, keeps_running: bool = False) -> Iterator[tuple[int, ...]]:
    """Hold the locks of some tables of one state folder.

    Raises:
        StateError: `table-locked` if another run holds one of them, `state-unwritable`.
    """
    root = states[0].root if states else None
    if isinstance(root, ObjectPath):
        with leased(root.as_store(), str(root), [state.key for state in states], keeps_running=keeps_running):
            yield ()
        return
    _allow_files(len(states))
    record = json.dumps(process(keeps_running=keeps_running)).encode()
    descriptors: list[int] = []
    try:
        for state in sorted(states, key=lambda s: s.folder):
            descriptors.append(_acquire(state, record))  # noqa: PERF401 - those before one that fails are closed
        yield tuple(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 512
    if soft < wanted and (hard == resource.RLIM_INFINITY or soft < hard):
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _acquire(state: TableState, record: bytes) -> int:
    """Take the lock of a table; what dropped the table meanwhile has removed the file that was locked."""
    for _ in range(_ATTEMPTS):
        make_private(local(state.folder))
        descriptor = _locked(state, record)
        if _is_there(descriptor, local(state.folder) / "lock"):
            return descriptor
        os.close(descriptor)
    raise _held(state, LockHolder({}))


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _locked(state: TableState, record: bytes) -> int:
    path = local(state.folder) / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        hint = "Make the state folder writable, or change 'state:' of the target."
        raise StateError("state-unwritable", f"{path} cannot be written: {error.strerror}", hint) from error
    deadline = time.monotonic() + ORPHAN_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(path)
            if holder.may_live or time.monotonic() > deadline:
                os.close(descriptor)
                raise _held(state, holder) from None
            time.sleep(_POLL_SECONDS)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, record, 0)
            return descriptor


def _holder(path: Path) -> LockHolder:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return LockHolder({})
    return LockHolder(record if isinstance(record, dict) else {})


def _held(state: TableState, holder: LockHolder) -> StateError:
    table = f"{state.catalog}.{state.schema}.{state.table}"
    return TableLockedError.by(table, holder, "the lock of a killed run is released")
