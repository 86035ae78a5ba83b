"""One writer a table where no operating system can lock: a lease in a store, by conditional create alone.

A lease is the file `<table>/lock/<n>`; the highest number counts. It is taken by creating the next number, so of those
that see a lease run out one wins; its holder alone writes it again. Whether a holder is gone is shown by its file not
changing for a while, as the clocks of two machines are never compared. A holder that was stopped for longer than that
(suspended, cut off) finds a higher number when it reads the lease again, which is to be done before each commit.

No store but the local file system is part of this version, and that has locks that need no such care
(`engine.state.lock`).
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.errors import StateError
from engine.state.blob_store import Store

RENEWED_EVERY = 10.0
GONE_AFTER = 60.0
_POLL = 1.0


@dataclass(frozen=True, slots=True)
class LeaseClock:
    """Time, in seconds from any beginning."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


_CLOCK = LeaseClock()


@dataclass(slots=True)
class Lease:
    """A lease that was taken.

    Attributes:
        store: where it is.
        folder: of the table, in the store.
        number: of the lease.
        owner: what no other holder says.
    """

    store: Store
    folder: str
    number: int
    owner: str
    _turn: int = field(default=0)

    def check(self) -> None:
        """Read it again.

        Raises:
            StateError: `table-locked`: it was taken over; nothing may be committed any more.
        """
        if _newest(self.store, self.folder) != self.number or not self._ours():
            message = f"another run took over the lock of {self.folder} while this one did not respond"
            raise StateError("table-locked", message, "Committed rows stay; the other run continues from there.")

    def renew(self) -> None:
        """Say that the holder is there.

        Raises:
            StateError: `table-locked`.
        """
        self.check()
        self._turn += 1
        self.store.put(_key(self.folder, self.number), _content(self.owner, self._turn))

    def release(self) -> None:
        """Let others take it at once."""
        if self._ours():
            self.store.put(_key(self.folder, self.number), b"")

    def _ours(self) -> bool:
        content = self.store.get(_key(self.folder, self.number))
        return bool(content) and json.loads(content or b"{}").get("owner") == self.owner


def take(store: Store, folder: str, clock: LeaseClock = _CLOCK) -> Lease:
    """Take the lease of a table; one whose holder seems gone is watched for a while first.

    Raises:
        StateError: `table-locked`: another run holds it.
    """
    number = _newest(store, folder)
    seen, since = _held(store, folder, number), clock.now()
    while seen and clock.now() - since < GONE_AFTER:
        clock.sleep(_POLL)
        if _newest(store, folder) != number or (now := _held(store, folder, number)) not in {seen, b""}:
            raise _taken(folder)
        seen = now
    lease = Lease(store, folder, number + 1, str(uuid.uuid4()))
    if not store.put_if_absent(_key(folder, lease.number), _content(lease.owner, 0)):
        raise _taken(folder)
    for old in store.list(f"{folder}/lock"):
        if int(old) < lease.number:
            store.delete(f"{folder}/lock/{old}")
    return lease


@contextmanager
def held(store: Store, folder: str) -> Iterator[Lease]:
    """Hold the lease of a table, renewed until the end.

    Raises:
        StateError: `table-locked`.
    """
    lease, done = take(store, folder), threading.Event()

    def renewing() -> None:
        while not done.wait(RENEWED_EVERY):
            try:
                lease.renew()
            except StateError:
                return  # the next check says so

    thread = threading.Thread(target=renewing, name="lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        done.set()
        thread.join()
        lease.release()


def _newest(store: Store, folder: str) -> int:
    return max((int(name) for name in store.list(f"{folder}/lock")), default=0)


def _held(store: Store, folder: str, number: int) -> bytes:
    """What the holder of a lease wrote last; empty: it was released, or there is none."""
    return store.get(_key(folder, number)) or b""


def _key(folder: str, number: int) -> str:
    return f"{folder}/lock/{number}"


def _content(owner: str, turn: int) -> bytes:
    return json.dumps({"owner": owner, "turn": turn}).encode()


def _taken(folder: str) -> StateError:
    hint = "Wait until it has ended, or stop it; the lock of a killed run is released."
    return StateError("table-locked", f"{folder} is being written by another run", hint)
