"""One writer a table where no operating system can lock: a lease in a store, by conditional create alone.

A lease is the file `<table>/lock/<n>`; the highest counts, and creating the next number takes it. A holder renews one
file for all its leases, `.runs/<owner>`, and removes it in the end: a lease whose file is missing was released, one
whose file is a minute old has lost its holder. No clocks of two machines are compared: the store reports the age, or it
is watched.

A holder that was stopped for longer finds a higher number before its next commit; for the moment between see
`engine.lake.table_fence`. Who takes over owes the table a fence; `fenced` says whether it was paid.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from engine.bounds.regular_file import parse_json
from engine.errors import EngineError, StateError
from engine.state.blob_store import Store
from engine.state.lock_holder import LockHolder, TableLockedError, process

RENEWED_EVERY = 10.0
GONE_AFTER = 60.0
_POLL = 1.0
# A store answers in some ten milliseconds, and a project may have thousands of tables.
_AT_ONCE = 8
_RUNS = ".runs"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_OWNER = re.compile(r"[A-Za-z0-9-]{1,64}")
_MAX_BYTES, _MAX_VALUES = 100_000, 1_000
# A lease is taken over at most once a minute.
_MAX_CHANGES = 100
# Seconds between attempts to reach a store that is away; its client's own attempts come on top of each.
_PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 25.0)
Result = TypeVar("Result")
_log = logging.getLogger("engine.state")


@dataclass(frozen=True, slots=True)
class LeaseClock:
    """Time, in seconds from any beginning."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


_CLOCK = LeaseClock()


@dataclass(slots=True)
class Holder:
    """`owner` is what no other run has; `process` is the process, for people."""

    store: Store
    place: str
    owner: str
    process: Mapping[str, Any]
    _turn: int = field(default=0)

    def begin(self) -> None:
        """Show that the run is there, for the first time.

        Raises StateError: `state-unsafe`: the store overwrites an object that was to be created.
        """
        key = f"{_RUNS}/{self.owner}"
        self.store.put_if_absent(key, self._content())
        if self.store.put_if_absent(key, b"{}"):
            self.store.delete(key)
            message = f"the store of {self.place} ignores 'If-None-Match: *', so that two runs could hold one lock"
            raise StateError(
                "state-unsafe", message, "Keep the state in a store with conditional writes, or in a folder."
            )

    def renew(self) -> None:
        self._turn += 1
        self.store.put(f"{_RUNS}/{self.owner}", self._content())

    def _content(self) -> bytes:
        return json.dumps({**self.process, "turn": self._turn}).encode()

    def release(self) -> None:
        self.store.delete(f"{_RUNS}/{self.owner}")


@dataclass(slots=True)
class Lease:
    """A later lease has a higher `number`; `fenced`: no run with an earlier lease can still commit to the table."""

    holder: Holder
    folder: str
    number: int
    fenced: bool
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def token(self) -> str:
        """The number, and what distinguishes it from leases of that number of other tables; commits carry it."""
        return f"{self.number}-{self.mark}"

    def check(self) -> None:
        """Read it again. Raises StateError: `lease-lost`: it was taken over; nothing may be committed any more."""
        newest, record = while_away(lambda: _newest(self.holder.store, self.folder))
        if newest != self.number or record.get("owner") != self.holder.owner:
            raise self.lost_error(record)

    def lost_error(self, record: Mapping[str, Any] | None = None) -> StateError:
        by = f" by {LockHolder(record)}" if record and record.get("owner") != self.holder.owner else ""
        message = (
            f"the lock of {_name(self.folder)} was taken over{by}, as this run did not respond for "
            f"{GONE_AFTER:.0f} seconds"
        )
        hint = "Nothing more is written by this run; committed rows stay, and the other run continues from there."
        return StateError("lease-lost", message, hint)

    def fence_raised(self) -> None:
        self.fenced = True
        self.holder.store.put(_key(self.folder, self.number), self.record())

    def record(self) -> bytes:
        return json.dumps({**self.holder.process, "owner": self.holder.owner, "fenced": self.fenced}).encode()


# The leases that this process holds, by their tokens.
_leases: dict[str, Lease] = {}


def held_lease(place: str, folder: str) -> Lease | None:
    """The lease of a table that this process holds; None: none, or the table has a lock of the operating system."""
    return next((e for e in _leases.values() if (e.holder.place, e.folder) == (place, folder)), None)


def lease_of_token(token: str | None) -> Lease | None:
    return _leases.get(token) if token else None


@contextmanager
def leased(
    store: Store, place: str, folders: Sequence[str], clock: LeaseClock = _CLOCK, *, keeps_running: bool = False
) -> Iterator[tuple[Lease, ...]]:
    """Hold the leases of some tables, renewed until the end; those whose holders seem gone are watched for a while.

    Raises:
        StateError: `table-locked`: another run holds one of them. `lease-lost` in place of any error that is raised
            after one was taken over: what the other run has changed by then looks like damage.
    """
    from concurrent.futures import ThreadPoolExecutor

    holder = Holder(store, place, uuid.uuid4().hex, process(keeps_running=keeps_running))
    holder.begin()
    ended = threading.Event()
    thread = threading.Thread(target=_renewing, args=(holder, ended), name="lease", daemon=True)
    thread.start()
    leases: list[Lease] = []
    try:
        # Of two runs that want the same tables one gets the first, and the other is rejected before it has any.
        ordered = sorted(folders)
        leases += [take_lease(holder, folder, clock) for folder in ordered[:1]]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            leases += pool.map(partial(take_lease, holder, clock=clock), ordered[1:])
        _leases.update({lease.token: lease for lease in leases})
        yield tuple(leases)
    except EngineError as error:
        if (lost_lease := first_lost(leases)) is not None:
            raise lost_lease from error
        raise
    finally:
        ended.set()
        thread.join()
        for lease in leases:
            _leases.pop(lease.token, None)
        try:
            holder.release()
        except EngineError as error:
            _log.warning("the lock could not be released, and is free in a minute: %s", error)


def first_lost(leases: Iterable[Lease]) -> StateError | None:
    """The error of the first lease that was taken over; None: of none that is known."""
    for lease in leases:
        try:
            lease.check()
        except StateError as error:
            if error.diagnostic.code == "lease-lost":
                return error
        except EngineError:
            return None
    return None


def _renewing(holder: Holder, ended: threading.Event) -> None:
    while not ended.wait(RENEWED_EVERY):
        try:
            holder.renew()
        except EngineError as error:
            # The store may be back before others may take over; if not, the next check says so.
            _log.warning("the lock could not be renewed: %s", error)


def take_lease(holder: Holder, folder: str, clock: LeaseClock = _CLOCK) -> Lease:
    """Take the lease of a table. Raises StateError: `table-locked`: another run holds it."""
    number, record = _newest(holder.store, folder)
    is_gone = _is_gone(holder, folder, number, record, clock)
    lease = Lease(holder, folder, number + 1, fenced=not is_gone and bool(record.get("fenced", True)))
    if not holder.store.put_if_absent(_key(folder, lease.number), lease.record()):
        raise _locked_error(folder, _newest(holder.store, folder)[1])
    for old in holder.store.list(f"{folder}/lock"):
        if _NUMBER.fullmatch(old) and int(old) < lease.number:
            holder.store.delete(_key(folder, int(old)))
    return lease


def _is_gone(holder: Holder, folder: str, number: int, record: Mapping[str, Any], clock: LeaseClock) -> bool:
    """Watch whether a lease's holder is gone; False: it released it, or there is none. Raises if it is there."""
    store, run = holder.store, f"{_RUNS}/{record.get('owner')}"
    last_content = store.get(run) if record else None
    # After an outage of the store each file is old, and renewed in a moment: it is watched for two turns in any case.
    age = min(store.age(run) or 0.0, GONE_AFTER - 2 * RENEWED_EVERY) if last_content is not None else 0.0
    watched_since = clock.now() - age
    seconds_left = GONE_AFTER - (clock.now() - watched_since)
    if last_content is not None and seconds_left > RENEWED_EVERY:
        text = "%s was locked by %s: waiting whether that run is there, at most %.0f seconds"
        level = logging.DEBUG if LockHolder(holder.process).keeps_running else logging.WARNING
        _log.log(level, text, _name(folder), LockHolder(record), seconds_left)
    while last_content is not None:
        if clock.now() - watched_since >= GONE_AFTER:
            return True
        clock.sleep(_POLL)
        content, newest = store.get(run), _newest(store, folder)[0]
        if newest != number or content not in {last_content, None}:
            raise _locked_error(folder, record)
        last_content = content
    return False


def while_away(ask: Callable[[], Result]) -> Result:
    """Ask a store, for about a minute if it does not answer: a run that is under way waits for it.

    Raises EngineError: `s3-unreachable` after that; anything else at once.
    """
    for pause in _PAUSES:
        try:
            return ask()
        except EngineError as error:
            if error.diagnostic.code != "s3-unreachable":
                raise
            _log.warning("%s; asking again in %s s", error, pause)
            time.sleep(pause)
    return ask()


def _newest(store: Store, folder: str) -> tuple[int, Mapping[str, Any]]:
    for _ in range(_MAX_CHANGES):
        number = max((int(name) for name in store.list(f"{folder}/lock") if _NUMBER.fullmatch(name)), default=0)
        if not number:
            return 0, {}
        content = store.get(_key(folder, number))
        if content is None:
            # Taken over between the two.
            continue
        try:
            return number, _record(content)
        except ValueError as error:
            message = f"the lock of {_name(folder)} cannot be read: {error}"
            raise StateError("state-unreadable", message, f"Remove {_key(folder, number)} from the state.") from error
    message = f"the lock of {_name(folder)} changes again and again while it is read"
    raise StateError("state-unreadable", message, f"Find the program that writes to {folder}/lock in the state.")


def _record(content: bytes) -> Mapping[str, Any]:
    """What a lease says; whoever can write to the state may have written it.

    Raises ValueError: it is not what a run writes.
    """
    record = parse_json(content, _MAX_VALUES, _MAX_BYTES)
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - of a text
    owner = record.get("owner")
    # It becomes the name of a file.
    if not isinstance(owner, str) or not _OWNER.fullmatch(owner):
        raise ValueError("it names no run")
    return record


def _key(folder: str, number: int) -> str:
    return f"{folder}/lock/{number}"


def _name(folder: str) -> str:
    return folder.replace("/", ".")


def _locked_error(folder: str, record: Mapping[str, Any]) -> StateError:
    released = f"the lock of a killed run is released after {GONE_AFTER:.0f} seconds"
    return TableLockedError.by(_name(folder), LockHolder(record), released)
