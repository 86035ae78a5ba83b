"""The history of turns: what ran when, how long, what it waited for and what came of it, kept in SQLite.

Events are collected in memory and written in one transaction by `flush`, which a thread of the process calls each
second: a turn costs a few appends to a list. A crash loses that second, and nothing else depends on it.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import local_paths
from engine.events import (
    BatchCommitted,
    Event,
    ModelFinished,
    NodeStateChanged,
    NodeTurnFinished,
    NodeTurnStarted,
    SinkFinished,
)
from engine.live import open_alerts
from engine.live.own_records import sealed, verified
from engine.target_folder import TargetFolder
from engine.times import time_millis

FOLDER = "live"
FILE = f"{FOLDER}/history.db"
# Which file this user made there: SQLite is to open no other.
_PROOF = f"{FOLDER}/history.json"
_VERSION = 4
_SCHEMA = f"""
create table turns (id integer primary key, node text, number integer, begin real, end real, waited real, reason text,
    status text, rows_in integer, rows_out integer, late integer, bad integer, batches integer, watermark text,
    message text, duplicates integer default 0);
create index turns_by_node on turns (node, begin);
create index turns_by_end on turns (end);
create table series (node text, minute integer, rows_in integer, rows_out integer, late integer, bad integer,
    batches integer, seconds real, held integer default 0, state_memory integer default 0,
    duplicates integer default 0, primary key (node, minute)) without rowid;
create index series_by_minute on series (minute);
create table states (id integer primary key, node text, at real, state text, reason text);
create index states_by_node on states (node, at);
create table nodes (target text, node text, at real, record text, primary key (target, node)) without rowid;
create table log (id integer primary key, at text, level text, line text);
{open_alerts.SCHEMA}"""
_SECONDS_OF_A_DAY = 86_400
_PRUNED_EACH = 600.0
_MOST_UNWRITTEN = 20_000
_MESSAGE = 2_000


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much of the past is kept, whichever bound is met first.

    Attributes:
        days: of all three tables.
        turns: rows; one is about 150 bytes.
        minutes: rows of the series: one for each minute in which a model committed.
    """

    days: float = 30
    turns: int = 200_000
    minutes: int = 1_000_000
    states: int = 100_000
    lines: int = 500


@dataclass(slots=True)
class _Turn:
    number: int
    begin: float
    waited: float
    reason: str
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    bad: int = 0
    duplicates: int = 0
    batches: int = 0
    watermark: str | None = None
    counted: bool = field(default=False)


class TurnHistory:
    """The history of one process; it may be read from other threads and other processes.

    Args:
        target_dir: folder of artifacts; the file is `live/history.db` in it, readable by its owner alone.
        kept: bounds.

    Raises ProjectError: `target-link`, `target-unwritable`.
    """

    def __init__(self, target_dir: Path, limits: HistoryLimits | None = None) -> None:
        self.path = target_dir / FILE
        self.note = ""  # what a user should know: the file was replaced, or cannot be written
        self._limits = limits or HistoryLimits()
        self._lock = threading.Lock()
        self._running: dict[str, _Turn] = {}
        self._turns: list[tuple[Any, ...]] = []
        self._series: dict[tuple[str, int], list[float]] = {}
        self._states: list[tuple[Any, ...]] = []
        self._lines: list[tuple[str, str, str]] = []
        self._nodes: dict[tuple[str, str], str] = {}
        self._written_nodes: dict[tuple[str, str], str] = {}
        self._pruned = 0.0
        self._connection = self._open_database(target_dir)

    def _open_database(self, target_dir: Path) -> sqlite3.Connection:
        """Open the file, or replace one that this user did not make, that cannot be read or has another form."""
        try:
            if _is_verified(target_dir):
                return _connect(self.path)
            if os.path.lexists(self.path):
                self.note = f"{FILE} was not written here by you; the history begins again"
        except _OtherFormError:
            self.note = f"{FILE} was written by another version of Headrace; the history begins again"
        except sqlite3.DatabaseError as error:
            self.note = f"{FILE} cannot be read ({error}); the history begins again"
        with TargetFolder(target_dir) as folder:
            for end in ("", "-wal", "-shm"):
                folder.remove(FILE + end)
            with folder.append(FILE) as file:  # private, and no link
                identity = _identity(os.fstat(file.fileno()))
            folder.write(_PROOF, sealed(identity, target_dir, _PROOF))
        return _connect(self.path)

    def add(self, event: Event) -> None:
        match event:
            case NodeTurnStarted():
                at = seconds_of(event.at)
                self._running[event.node] = _Turn(event.number, at, event.waited, event.reason)
            case BatchCommitted():
                self._batch(event)
            case ModelFinished():
                self._model(event)
            case SinkFinished():
                self._delivery(event)
            case NodeTurnFinished():
                self._finished(event)
            case NodeStateChanged():
                with self._lock:
                    self._states.append((event.node, seconds_of(event.at), event.state.value, event.reason[:_MESSAGE]))
            case _:
                pass

    def add_line(self, line: tuple[str, str, str]) -> None:
        with self._lock:
            self._lines.append((line[0], line[1], line[2][:_MESSAGE]))

    def keep(self, target: str, nodes: Mapping[str, Mapping[str, Any]]) -> None:
        texts = {(target, node): json.dumps(record) for node, record in nodes.items()}
        with self._lock:
            self._nodes |= {key: text for key, text in texts.items() if self._written_nodes.get(key) != text}

    def stored_nodes(self, target: str) -> dict[str, dict[str, Any]]:
        rows = _rows(self.path, "select node, record from nodes where target = ?", (target,))
        return {row["node"]: json.loads(row["record"]) for row in rows}

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the last lines of the log, the oldest first."""
        rows = list(_rows(self.path, "select * from log order by id desc limit ?", (self._limits.lines,)))
        return [(row["at"], row["level"], row["line"]) for row in reversed(rows)]

    def _batch(self, event: BatchCommitted) -> None:
        bad = sum(event.bad_records.values())
        if turn := self._running.get(event.node):
            turn.counted = True
            turn.batches += 1
            turn.rows_in += event.rows_in
            turn.rows_out += event.rows_out
            turn.late += event.late
            turn.bad += bad
            turn.duplicates += event.duplicates
            turn.watermark = event.watermark or turn.watermark
        if event.replayed:
            return
        numbers = (event.rows_in, event.rows_out, event.late, bad, 1, event.seconds)
        memory = sum(one.memory_bytes for one in event.held)
        self._count(event.node, time.time(), (*numbers, event.duplicates), (event.state_rows, memory))

    def _model(self, event: ModelFinished) -> None:
        turn = self._running.get(event.node)
        if turn is None or turn.counted:
            return
        # A batch table has no micro-batches: its numbers are in its end.
        bad = sum(event.bad_records.values())
        turn.rows_in, turn.rows_out, turn.late, turn.bad = event.rows_in, event.rows_out, event.late, bad
        turn.watermark = event.watermark
        if event.rows_out:
            numbers = (event.rows_in, event.rows_out, event.late, bad, 1, event.seconds)
            self._count(event.node, seconds_of(event.at), (*numbers, 0))

    def _delivery(self, event: SinkFinished) -> None:
        if (turn := self._running.get(event.node)) is not None and event.rows_out:
            turn.rows_out = event.rows_out
            self._count(event.node, seconds_of(event.at), (0, event.rows_out, 0, 0, 1, event.seconds, 0))

    def _count(self, node: str, at: float, numbers: Sequence[float], levels: Sequence[float] = (0, 0)) -> None:
        """Add numbers to those of the minute; of levels the last one counts."""
        with self._lock:
            sums = self._series.get((node, int(at // 60)), [0] * (len(numbers) + len(levels)))
            added = [before + number for before, number in zip(sums, numbers, strict=False)]
            self._series[node, int(at // 60)] = [*added, *levels]

    def _finished(self, event: NodeTurnFinished) -> None:
        end = seconds_of(event.at)
        turn = self._running.pop(event.node, None) or _Turn(event.number, end - event.seconds, 0.0, "")
        numbers = (turn.rows_in, turn.rows_out, turn.late, turn.bad, turn.batches, turn.watermark)
        row = (event.node, event.number, turn.begin, turn.begin + event.seconds, turn.waited, turn.reason)
        with self._lock:
            self._turns.append((*row, event.status.value, *numbers, event.message[:_MESSAGE], turn.duplicates))

    def flush(self) -> None:
        """Write what was collected, and remove what is older or more than is kept.

        A disk that is full or a file that somebody holds is noted, and tried again the next time; what is kept
        for that is bounded.
        """
        with self._lock:
            turns, series, states = self._turns, self._series, self._states
            lines, nodes = self._lines, self._nodes
            self._turns, self._series, self._states, self._lines, self._nodes = [], {}, [], [], {}
        if turns or series or states or lines or nodes:
            try:
                self._write(turns, series, states)
                self._write_last(lines, nodes)
                self._connection.commit()
                self._written_nodes |= nodes
            except sqlite3.Error as error:
                self._connection.rollback()
                self.note = f"{FILE} cannot be written: {error}"
                self._keep(turns, states, lines, nodes)
        if time.monotonic() - self._pruned > _PRUNED_EACH:
            self._pruned = time.monotonic()
            with suppress(sqlite3.Error):
                self.prune()

    def _write(
        self,
        turns: Sequence[tuple[Any, ...]],
        series: Mapping[tuple[str, int], Sequence[float]],
        states: Sequence[tuple[Any, ...]],
    ) -> None:
        db = self._connection
        db.executemany("insert into turns values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", turns)
        db.executemany(
            "insert into series (node, minute, rows_in, rows_out, late, bad, batches, seconds, duplicates, held,"
            " state_memory) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (node, minute) do update set"
            " rows_in = rows_in + excluded.rows_in, rows_out = rows_out + excluded.rows_out,"
            " late = late + excluded.late, bad = bad + excluded.bad, batches = batches + excluded.batches,"
            " seconds = seconds + excluded.seconds, duplicates = duplicates + excluded.duplicates,"
            " held = excluded.held, state_memory = excluded.state_memory",
            [(*key, *sums) for key, sums in series.items()],
        )
        db.executemany("insert into states values (null, ?, ?, ?, ?)", states)

    def _write_last(self, lines: Sequence[tuple[str, str, str]], nodes: Mapping[tuple[str, str], str]) -> None:
        now = time.time()
        self._connection.executemany("insert into log values (null, ?, ?, ?)", lines)
        self._connection.executemany(
            "insert or replace into nodes values (?, ?, ?, ?)", [(*key, now, text) for key, text in nodes.items()]
        )

    def _keep(
        self,
        turns: list[tuple[Any, ...]],
        states: list[tuple[Any, ...]],
        lines: list[tuple[str, str, str]],
        nodes: dict[tuple[str, str], str],
    ) -> None:
        with self._lock:
            self._turns = [*turns, *self._turns][-_MOST_UNWRITTEN:]
            self._states = [*states, *self._states][-_MOST_UNWRITTEN:]
            self._lines = [*lines, *self._lines][-self._limits.lines :]
            self._nodes = nodes | self._nodes

    def prune(self, at: float | None = None) -> None:
        oldest = (time.time() if at is None else at) - self._limits.days * _SECONDS_OF_A_DAY
        with self._connection as db:
            db.execute("delete from turns where end < ?", (oldest,))
            db.execute("delete from series where minute < ?", (int(oldest // 60),))
            db.execute("delete from states where at < ?", (oldest,))
            bounds = (("turns", self._limits.turns), ("states", self._limits.states), ("log", self._limits.lines))
            for table, most in bounds:
                db.execute(f"delete from {table} where id <= (select max(id) from {table}) - ?", (most,))  # noqa: S608
            db.execute(
                "delete from series where minute <= (select minute from series order by minute desc limit 1 offset ?)",
                (self._limits.minutes,),
            )

    def close(self) -> None:
        self.flush()
        self._connection.close()


def _is_verified(target_dir: Path) -> bool:
    with TargetFolder(target_dir) as folder:
        content = folder.read(_PROOF)
    try:
        identity = _identity(os.lstat(target_dir / FILE))
    except OSError:
        return False
    return bool(content) and verified(content or b"", target_dir, _PROOF) == identity


def _identity(file_stat: os.stat_result) -> bytes:
    """A file, whatever it is called: another one in its place has another number."""
    return json.dumps({"inode": file_stat.st_ino, "owner": file_stat.st_uid}).encode()


class _OtherFormError(Exception):
    pass


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
    try:
        connection.execute("pragma journal_mode = wal")
        # Without a wait for the disk: a power failure may cost the last turns, never the file.
        connection.execute("pragma synchronous = normal")
        (version,) = connection.execute("pragma user_version").fetchone()
        (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
        if tables == 0:
            connection.executescript(f"{_SCHEMA}pragma user_version = {_VERSION};")
        elif version != _VERSION:
            raise _OtherFormError  # noqa: TRY301
        connection.execute("select id, bad, watermark, message from turns limit 1")
    except (sqlite3.Error, _OtherFormError):
        connection.close()
        raise
    return connection


def seconds_of(at: str) -> float:
    """Return the time of an event as seconds since 1970; now if it has none."""
    try:
        return time_millis(at) / 1000
    except ValueError:
        return time.time()


def turns(
    path: Path, *, node: str = "", since: float = 0.0, until: float = math.inf, limit: int = 1000
) -> list[dict[str, Any]]:
    """Return the last turns, newest first; times are seconds since 1970.

    Args:
        path: of the history.
        node: id of the model; empty: of all.
        since: the turn ended at or after that.
        until: the turn began at or before that.
        limit: at most so many.
    """
    where, values = (
        ("node = ? and end >= ? and begin <= ?", (node, since, until))
        if node
        else ("end >= ? and begin <= ?", (since, until))
    )
    return list(_rows(path, f"select * from turns where {where} order by id desc limit ?", (*values, limit)))  # noqa: S608


def extent(path: Path, node: str) -> tuple[float, float] | None:
    """Return the times of the first and the last minute of a model's series; None: it has none."""
    text = "select min(minute) as first, max(minute) as last from series where node = ?"
    for row in _rows(path, text, (node,)):
        if row["first"] is not None:
            return row["first"] * 60.0, row["last"] * 60.0
    return None


def series(path: Path, node: str, *, since: float, until: float = math.inf, step: int = 1) -> list[dict[str, Any]]:
    """Return the sums of a model for each `step` minutes since a time, in order; minutes without a commit have none.

    `held` and `state_memory` are levels: the greatest of those minutes.
    """
    text = (
        "select minute / ? * ? as minute, sum(rows_in) as rows_in, sum(rows_out) as rows_out, sum(late) as late,"
        " sum(bad) as bad, sum(batches) as batches, sum(seconds) as seconds, sum(duplicates) as duplicates,"
        " max(held) as held, max(state_memory) as state_memory from series"
        " where node = ? and minute >= ? and minute <= ? group by 1 order by 1"
    )
    return list(_rows(path, text, (step, step, node, int(since // 60), until / 60)))


def state_changes(path: Path, node: str, *, limit: int = 100) -> list[dict[str, Any]]:
    return list(_rows(path, "select * from states where node = ? order by id desc limit ?", (node, limit)))


def _rows(path: Path, text: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield rows; none if there is no history or it cannot be read."""
    if not path.is_file():
        return
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(local_paths.sqlite(path.absolute(), "mode=ro"), uri=True)) as db,
    ):
        db.row_factory = sqlite3.Row
        for row in db.execute(text, values):
            yield {key: row[key] for key in row.keys() if key != "id"}  # noqa: SIM118 - a Row is not a mapping
