"""One writer a table: an OS lock that the driver's JVM inherits, or a lease where state is in a bucket.

flock(2) is on an open file description, which the JVM gets too: it outlives a killed Python by some seconds (measured:
2) and may commit in that time. For a JVM that was started before, a shell of two lines inherits the locks: it lets go
when the run has ended, or, if the process is killed, when the JVM is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from engine.errors import StateError
from engine.secrets.scrubber import without_secrets
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
    """Hold the locks of some tables of one state folder. Raises StateError: `table-locked`, `state-unwritable`."""
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
    needed_limit = count + 512
    if soft < needed_limit and (hard == resource.RLIM_INFINITY or soft < hard):
        limit = needed_limit if hard == resource.RLIM_INFINITY else min(needed_limit, hard)
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
    raise _locked_error(state, LockHolder({}))


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
                raise _locked_error(state, holder) from None
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


def _locked_error(state: TableState, holder: LockHolder) -> StateError:
    table = f"{state.catalog}.{state.schema}.{state.table}"
    return TableLockedError.by(table, holder, "the lock of a killed run is released")


# Its input is the process that runs, its output a pipe of which the JVM holds the other end and into which nobody
# writes: reading it ends when the JVM has ended. (A shell has numbers for the descriptors 0 to 9 only.)
_SCRIPT: Final = "read -r line && exit\nread -r line <&1"
_SHELL: Final = "/bin/sh"


class LockKeeper:
    """Keeps the locks of the runs of one JVM, which inherits a descriptor; `close_inherited` closes it here."""

    def __init__(self) -> None:
        self._alive, self.inherited = os.pipe()

    def close_inherited(self) -> None:
        """The JVM has its end of the pipe: from now on it alone has it."""
        os.close(self.inherited)
        self.inherited = -1

    def close(self) -> None:
        for descriptor in (self._alive, self.inherited):
            if descriptor >= 0:
                os.close(descriptor)
        self._alive = self.inherited = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def keeping(self, locks: Sequence[int]) -> Iterator[None]:
        """Keep locks during the block, and until the JVM ends if this process ends in it; the caller closes them."""
        with subprocess.Popen(
            [_SHELL, "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=self._alive,
            stderr=subprocess.DEVNULL,
            pass_fds=tuple(locks),
            cwd="/",
            env=without_secrets(),
            # Ctrl-C is for the process that runs.
            start_new_session=True,
        ) as shell:
            try:
                yield
            finally:
                # One that was killed has let go already.
                try:
                    shell.communicate(b"\n")
                except BrokenPipeError:
                    shell.wait()
