"""From the commits of a table to the transactions of a target.

Appended files are delivered in transactions of bounded size, each with a place in the files. A commit that takes rows
out is delivered in one transaction, and so is the difference from a snapshot that is not in the table's history any
more. Where the table may have several rows of a key, a commit is one transaction too, and two such rows in it are an
error: nothing says which is the newer.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from engine import kill_points
from engine.errors import StateError
from engine.lake.changes.committed_rows import Commit, CommitKind, CommittedTable
from engine.sinks.position import Position
from engine.sinks.target import Change, ChangeKind, SinkSpec, SinkTarget, Transaction, Written

ROWS = 200_000
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Piece:
    """A change, the position that it reaches, and whether a transaction may end there."""

    change: Change | None
    position: Position
    whole: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """What a sink has not delivered: the commits, and the position that it is at."""

    position: Position
    commits: tuple[Commit, ...]


class DeliveryStoppedError(Exception):
    """The process ends: the open transaction was rolled back."""


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """When a delivery ends early.

    `stop`: ends it at once, within a transaction. `ends_at`, by the monotonic clock: it ends after the transaction that
    is open then.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = math.inf


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a delivery wrote, and the position that it reached; `more`: it ended before it had delivered all."""

    written: Written
    position: Position
    more: bool = False


def deliver(
    spec: SinkSpec,
    table: CommittedTable,
    target: SinkTarget,
    *,
    from_now: bool,
    limits: DeliveryLimits | None = None,
) -> Delivered:
    """Deliver what was committed since the sink's position.

    Raises:
        DeliveryStoppedError: `limits.stop` was set.
        StateError: `sink-position`, `sink-history`, `sink-rows-changed`: it cannot continue from there; `sink-fenced`.
        EngineError: what the table or the target raise.
    """
    target.check()
    stored_position = target.position()
    undelivered = find_undelivered(spec, table, stored_position, from_now=from_now)
    if stored_position is None:
        target.begin(undelivered.position)
    limits = limits or DeliveryLimits()
    pieces, written, before = _pieces(spec, table, undelivered), Written(), stored_position or undelivered.position
    first = next(pieces, None)
    while first is not None and time.monotonic() < limits.ends_at:
        transaction = Transaction(before, iter(()), before)
        rest: list[_Piece] = []
        transaction.changes = _changes(transaction, first, pieces, rest, limits.stop)
        written = written.plus(target.deliver(transaction))
        kill_points.reach("sink committed", spec.name)
        before, first = transaction.after, rest[0] if rest else None
    return Delivered(written, before, more=first is not None)


def find_undelivered(
    spec: SinkSpec, table: CommittedTable, stored_position: Position | None, *, from_now: bool
) -> Pending:
    """What is to be delivered from a stored position; None: from the first delivery's.

    Raises StateError: as `deliver`.
    """
    start = Position(table.uuid, key=spec.key, columns=spec.names)
    position = stored_position or (replace(start, snapshot=table.current) if from_now else start)
    _check(spec, table, position)
    position = replace(position, key=spec.key, columns=spec.names)
    if position.reading is not None:
        return Pending(position, tuple(_resumed(spec, table, position)))
    return Pending(position, tuple(_behind(spec, table, position.snapshot)))


def _check(spec: SinkSpec, table: CommittedTable, position: Position) -> None:
    again = f"Deliver the table again: engine sink reset {spec.name} --to earliest."
    if position.table != table.uuid:
        message = f"the sink '{spec.name}' has delivered another table of the same name, which was dropped since"
        raise StateError("sink-position", message, again)
    if position.key != spec.key:
        message = f"the key of the sink '{spec.name}' was ({', '.join(position.key)}) at its last delivery"
        raise StateError("sink-position", message, f"Write 'key: [{', '.join(position.key)}]'. {again}")
    if position.columns != spec.names and position.reading is not None:
        message = f"the columns of the sink '{spec.name}' changed while a commit is delivered in part"
        raise StateError("sink-position", message, again)


def _resumed(spec: SinkSpec, table: CommittedTable, position: Position) -> Iterator[Commit]:
    """The commit that is delivered in part, and those behind it."""
    reading = position.reading
    if reading is None or not table.has(reading):
        message = f"the snapshot that the sink '{spec.name}' has delivered in part has expired"
        raise StateError("sink-history", message, _ways(spec))
    yield Commit(reading, position.base, CommitKind.APPENDS, "append")
    yield from _behind(spec, table, reading)


def _behind(spec: SinkSpec, table: CommittedTable, snapshot: int | None) -> Iterator[Commit]:
    if table.current is None or table.current == snapshot or table.is_past_end(snapshot):
        return
    if snapshot is None:
        yield from _all(spec, table, table.current)
        return
    commits = table.commits_after(snapshot)
    if commits is None:
        # A full refresh, a rollback or an expiry: the two versions are compared.
        commits = [Commit(table.current, snapshot, CommitKind.CHANGES, "replaced")]
    for commit in commits:
        if commit.kind is CommitKind.CHANGES:
            _check_change(spec, table, commit)
        yield commit


def _all(spec: SinkSpec, table: CommittedTable, current: int) -> Iterator[Commit]:
    """The commits of a first delivery.

    Which of two rows of a key is the newer only the order of commits says: where rows were taken out or commits have
    expired, the table is one commit.
    """
    if spec.unique or not spec.key:
        yield Commit(current, None, CommitKind.APPENDS, "append")
        return
    commits = table.commits_after(None)
    if commits is None or any(commit.kind is CommitKind.CHANGES for commit in commits):
        yield Commit(current, None, CommitKind.CHANGES, "append")
        return
    yield from commits


def _check_change(spec: SinkSpec, table: CommittedTable, commit: Commit) -> None:
    if not spec.key:
        message = (
            f"rows were taken out of the table of the sink '{spec.name}' ({commit.operation}), which only adds rows"
        )
        hint = f"Add 'key: [...]' to the sink, or skip the change: engine sink reset {spec.name} --to now."
        raise StateError("sink-rows-changed", message, hint)
    if commit.base is not None and not table.has(commit.base):
        message = f"the snapshot that the sink '{spec.name}' has delivered last has expired"
        raise StateError("sink-history", message, _ways(spec))


def _ways(spec: SinkSpec) -> str:
    return (
        f"Deliver the whole table again: engine sink reset {spec.name} --to earliest. Or continue with later changes: "
        f"engine sink reset {spec.name} --to now."
    )


def _changes(
    transaction: Transaction, first: _Piece, pieces: Iterator[_Piece], rest: list[_Piece], stop: threading.Event
) -> Iterator[Change]:
    """The changes of one transaction, which ends behind enough rows or time; `rest` gets what follows."""
    begin, rows, piece = time.monotonic(), 0, first
    while True:
        if stop.is_set():
            raise DeliveryStoppedError
        transaction.after = piece.position
        if piece.change is not None:
            rows += piece.change.rows.num_rows
            yield piece.change
        following = next(pieces, None)
        if following is None:
            return
        if piece.whole and (rows >= ROWS or time.monotonic() - begin > _SECONDS):
            rest.append(following)
            return
        piece = following


def _pieces(spec: SinkSpec, table: CommittedTable, undelivered: Pending) -> Iterator[_Piece]:
    position = undelivered.position
    for number, commit in enumerate(undelivered.commits, 1):
        resumed = commit.snapshot == position.reading
        behind = (position.file, position.row) if resumed else ("", 0)
        ordered = spec.unique or not spec.key
        whole = ordered and commit.kind is not CommitKind.CHANGES
        checked = 0 if ordered else number
        if spec.key:
            for read in table.removed(commit, spec.key):
                yield _Piece(Change(ChangeKind.REMOVE, read.rows), position, whole=False)
        for read in table.added(commit, spec.names, behind):
            inside = replace(position, reading=commit.snapshot, base=commit.base, file=read.file, row=read.row)
            yield _Piece(Change(ChangeKind.UPSERT, read.rows, checked), inside if whole else position, whole)
        position = replace(position, snapshot=commit.snapshot, reading=None, base=None, file="", row=0)
        yield _Piece(None, position, whole=True)
