"""Random queries, and random changes of their tables.

The rules are tried on SQLite: they are SQL, and a refresh there takes a millisecond. What is left as it is must be what
a full computation gives: all of the rows where no column that is read changed, else those of other partitions.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.compile.refresh.changed_keys import FollowedQuery, InputState, follow_changes
from engine.compile.refresh.query_block import NotFollowedError
from engine.compile.sql.read_names import read_names
from tests.refreshes.queries import TABLES, query
from tests.refreshes.renamings import renamings
from tests.refreshes.written import Written

_COLUMNS = TABLES["orders"]
_Row = tuple[object, ...]
# The part of the queries that rename columns, or put them in another order.
RENAMINGS = 0.5


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A refresh that was tried.

    Attributes:
        written: the query.
        keys: columns that partition its rows; none: it is not followed.
        fault: what is wrong; empty: nothing.
        kept: how many rows were left as they were.
        unread: none of the columns that it reads changed.
    """

    written: Written
    keys: tuple[str, ...]
    fault: str
    kept: int = 0
    unread: bool = False


def cases(seed: int, count: int, renaming: float = RENAMINGS) -> Iterator[Refreshed]:
    """Yield refreshes: several changes after each other of each random query."""
    chance, done = random.Random(seed), 0
    renamed = renamings(chance, tuple(TABLES), _COLUMNS, spark=False)
    while done < count:
        written = next(renamed) if chance.random() < renaming else query(chance)
        for result in _query(chance, written):
            yield result
            done += 1
            if done == count:
                return


@dataclass(frozen=True, slots=True)
class _Reading:
    """What Headrace finds in a query: the columns that it may read by table, and how its changes follow."""

    columns: Mapping[str, Sequence[str]]
    followed: FollowedQuery | None

    @classmethod
    def of(cls, text: str) -> _Reading:
        names = read_names(text)
        columns = {table: [one for one in own if names is None or one in names] for table, own in TABLES.items()}
        try:
            return cls(columns, follow_changes(text, columns))
        except NotFollowedError:
            return cls(columns, None)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.followed.keys if self.followed is not None else ()


def _query(chance: random.Random, written: Written) -> Iterator[Refreshed]:
    reading = _Reading.of(written.text)
    lake = sqlite3.connect(":memory:")
    for name in TABLES:
        lake.execute(f"create table {name} ({', '.join(_COLUMNS)})")
        lake.executemany(
            f"insert into {name} values (?, ?, ?, ?)", [_row(chance) for _ in range(chance.randint(0, 12))]
        )
    for _ in range(chance.randint(1, 4)):
        keys = tuple(chance.sample(reading.keys, chance.randint(1, min(2, len(reading.keys))))) if reading.keys else ()
        before = {name: _rows(lake, f"select * from {name}") for name in TABLES}
        old = _rows(lake, written.plain)
        for name in chance.sample(sorted(TABLES), chance.randint(1, 3)):
            _change(lake, name, chance)
        yield _refresh(lake, written, reading, keys, before, old)
    lake.close()


def _refresh(
    lake: sqlite3.Connection,
    written: Written,
    reading: _Reading,
    keys: tuple[str, ...],
    before: Mapping[str, Counter[_Row]],
    old: Counter[_Row],
) -> Refreshed:
    changed = [name for name in TABLES if _registered(lake, name, before[name], reading.columns[name])]
    new = _rows(lake, written.plain)
    if not changed:
        fault = (
            "" if new == old else f"no column that is read changed, {reading.columns}\nhad {old - new}, has {new - old}"
        )
        return Refreshed(written, (), fault, sum(old.values()), unread=True)
    if reading.followed is None or not keys:
        return Refreshed(written, (), "")
    search = reading.followed.search(keys, changed, lambda view, state: f"{view}_{state.value}")
    try:
        affected = {tuple(row) for row in lake.execute(search)}
    except sqlite3.Error as error:
        return Refreshed(written, keys, f"{error}\n{search}")
    names = [part[0].lower() for part in lake.execute(f"select * from ({written.plain}) limit 0").description]
    places = [names.index(key) for key in keys]

    def is_kept(row: _Row) -> bool:
        return tuple(row[place] for place in places) not in affected

    kept = Counter({row: number for row, number in old.items() if is_kept(row)})
    full = Counter({row: number for row, number in new.items() if is_kept(row)})
    fault = "" if kept == full else f"kept {kept - full}, missing {full - kept}\n{search}"
    return Refreshed(written, keys, fault, sum(kept.values()))


def _registered(lake: sqlite3.Connection, name: str, before: Counter[_Row], columns: Sequence[str]) -> bool:
    """Make the tables of an input's states, which have the columns that are read; whether it changed in these."""
    read = columns or _COLUMNS[:1]
    places = [_COLUMNS.index(column) for column in read]
    old, now = (
        Counter(tuple(row[place] for place in places) for row in rows.elements())
        for rows in (before, _rows(lake, f"select * from {name}"))
    )
    states = {InputState.BEFORE: old, InputState.AFTER: now, InputState.REMOVED: old - now, InputState.ADDED: now - old}
    for state, rows in states.items():
        lake.execute(f"drop table if exists {name}_{state.value}")
        lake.execute(f"create table {name}_{state.value} ({', '.join(read)})")
        marks = ", ".join("?" for _ in read)
        lake.executemany(f"insert into {name}_{state.value} values ({marks})", list(rows.elements()))
    return old != now


def _rows(lake: sqlite3.Connection, sql: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in lake.execute(sql))


def _row(chance: random.Random) -> tuple[object, ...]:
    value = lambda most: chance.choice([None, *range(most)])  # noqa: E731
    return chance.randint(0, 30), value(4), value(3), value(5)


def _change(lake: sqlite3.Connection, name: str, chance: random.Random) -> None:
    kind = chance.choice(["insert", "delete", "update", "move", "null", "column", "column", "empty"])
    if kind == "insert":
        lake.executemany(f"insert into {name} values (?, ?, ?, ?)", [_row(chance) for _ in range(chance.randint(1, 3))])
        return
    picked = [row[0] for row in lake.execute(f"select rowid from {name} order by rowid")]
    chance.shuffle(picked)
    rows = picked if kind == "empty" and chance.random() < 0.3 else picked[: chance.randint(1, 3)]
    values = {
        "update": ("v", chance.randint(0, 4)), "move": ("k", chance.randint(0, 3)), "null": ("k", None),
        "column": (chance.choice(_COLUMNS), chance.randint(0, 4)),
    }  # fmt: skip
    for row in rows:
        if kind in values:
            column, value = values[kind]
            lake.execute(f"update {name} set {column} = ? where rowid = ?", (value, row))
        else:
            lake.execute(f"delete from {name} where rowid = ?", (row,))
