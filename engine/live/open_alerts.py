"""Alerts that were sent and are not over, and messages that wait to be sent: in history.db, over restarts and kills.

What opens or ends an alert and its message are written in one transaction before anything is sent: a process that is
killed leaves neither an alert of which nobody heard nor one that is sent again. A message is removed once sent. A
kill in between sends it twice, with the same `id`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = """
create table alerts (target text, alert text, model text, message text, since real,
    primary key (target, alert, model)) without rowid;
create table messages (id text primary key, number integer, content text) without rowid;
create table bad_counts (target text, model text, at real, total integer,
    primary key (target, model, at)) without rowid;
"""
_MOST_UNSENT = 1_000

# alert, model
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert that is not over: its message, and since when (seconds since 1970)."""

    message: str
    since: float


@dataclass(slots=True)
class OpenAlerts:
    """Where the alerts of a target are kept; None in place of the file: in memory only.

    Every method raises `sqlite3.Error` if the file cannot be read or written.
    """

    path: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _unsent: dict[str, str] = field(default_factory=dict)

    def load(self, target: str) -> tuple[dict[Key, OpenAlert], dict[str, list[tuple[float, int]]]]:
        """Return what is open, and how many bad records each model had had at some times, the last at least."""
        alerts: dict[Key, OpenAlert] = {}
        counts: dict[str, list[tuple[float, int]]] = {}
        if self.path is None:
            return alerts, counts
        with self._lock, closing(_connect(self.path)) as db:
            for alert, model, message, since in db.execute(
                "select alert, model, message, since from alerts where target = ?", (target,)
            ):
                alerts[alert, model] = OpenAlert(message, since)
            for node, at, record in db.execute("select node, at, record from nodes where target = ?", (target,)):
                total = sum(json.loads(record).get("bad_records", {}).values())
                counts[node.partition(".")[2]] = [(at, total)]
            marks: dict[str, list[tuple[float, int]]] = {}
            for model, at, total in db.execute(
                "select model, at, total from bad_counts where target = ? order by model, at", (target,)
            ):
                marks.setdefault(model, []).append((at, total))
        counts |= marks
        return alerts, counts

    def save(
        self,
        target: str,
        alerts: Mapping[Key, OpenAlert],
        counts: Mapping[str, Iterable[tuple[float, int]]],
        messages: Iterable[Mapping[str, Any]],
    ) -> None:
        new = {message["id"]: json.dumps(message) for message in messages}
        with self._lock:
            if self.path is None:
                self._unsent.update(new)
                return
            with closing(_connect(self.path)) as db, db:
                db.execute("delete from alerts where target = ?", (target,))
                db.executemany(
                    "insert into alerts values (?, ?, ?, ?, ?)",
                    [(target, *key, alert.message, alert.since) for key, alert in alerts.items()],
                )
                db.execute("delete from bad_counts where target = ?", (target,))
                rows = [(target, model, at, total) for model, marks in counts.items() for at, total in marks]
                db.executemany("insert or replace into bad_counts values (?, ?, ?, ?)", rows)
                (last,) = db.execute("select coalesce(max(number), 0) from messages").fetchone()
                db.executemany(
                    "insert or replace into messages values (?, ?, ?)",
                    [(id_, last + place, content) for place, (id_, content) in enumerate(new.items(), 1)],
                )

    def unsent(self) -> list[dict[str, Any]]:
        with self._lock:
            if self.path is None:
                return [json.loads(content) for content in self._unsent.values()]
            with closing(_connect(self.path)) as db:
                text = "select content from messages order by number limit ?"
                return [json.loads(content) for (content,) in db.execute(text, (_MOST_UNSENT,))]

    def forget(self, id_: str) -> None:
        """Forget a message, which was sent or never will be."""
        with self._lock:
            if self.path is None:
                self._unsent.pop(id_, None)
                return
            with closing(_connect(self.path)) as db, db:
                db.execute("delete from messages where id = ?", (id_,))


def _connect(path: Path) -> sqlite3.Connection:
    # The observer has made the file, and proven that it is this user's.
    connection = sqlite3.connect(path, timeout=5.0)
    connection.execute("pragma synchronous = normal")
    return connection
