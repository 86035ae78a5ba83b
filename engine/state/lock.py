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
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.errors import StateError
from engine.state.blob_store import make_private
from engine.state.lease import leased, process
from engine.state.model_state import TableState
from engine.state.object_path import ObjectPath
from engine.state.state_path import local

# How long to wait for the JVM of a process that is gone already: two seconds on an idle machine, many on a busy one.
ORPHAN_SECONDS = 60.0
_POLL_SECONDS = 0.2
_ATTEMPTS = 10


@contextmanager
def locked(states: Sequence[TableState]) -> Iterator[tuple[int, ...]]:
    """Hold the locks of some tables of one state folder.

    Yields:
        The descriptors, for the JVM to inherit; none are yielded of leases.

    Raises:
        StateError: `table-locked` if another run holds one of them, `state-unwritable`.
    """
    root = states[0].root if states else None
    if isinstance(root, ObjectPath):
        with leased(root.as_store(), str(root), [state.key for state in states]):
            yield ()
        return
    _allow_files(len(states))
    descriptors: list[int] = []
    try:
        for state in sorted(states, key=lambda s: s.folder):
            descriptors.append(_acquire(state))  # noqa: PERF401 - those before one that fails are closed
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


def _acquire(state: TableState) -> int:
    """Take the lock of a table; what dropped the table meanwhile has removed the file that was locked."""
    for _ in range(_ATTEMPTS):
        make_private(local(state.folder))
        descriptor = _locked(state)
        if _is_there(descriptor, local(state.folder) / "lock"):
            return descriptor
        os.close(descriptor)
    raise _held(state, {})


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _locked(state: TableState) -> int:
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
            owner = _owner(path)
            if _alive(owner) or time.monotonic() > deadline:
                os.close(descriptor)
                raise _held(state, owner) from None
            time.sleep(_POLL_SECONDS)
        else:
            _sign(descriptor)
            return descriptor


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(process()).encode(), 0)


def _owner(path: Path) -> dict[str, Any]:
    try:
        owner: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return owner


def _alive(owner: dict[str, Any]) -> bool:
    pid = owner.get("pid")
    if not isinstance(pid, int) or owner.get("host") != socket.gethostname():
        return bool(owner)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _held(state: TableState, owner: dict[str, Any]) -> StateError:
    who = "another run"
    if owner:
        who = f"process {owner.get('pid')} on {owner.get('host')} ({owner.get('command')}, since {owner.get('since')})"
    message = f"{state.catalog}.{state.schema}.{state.table} is being written by {who}"
    return StateError(
        "table-locked", message, "Wait until it has ended, or stop it; the lock of a killed run is released."
    )
