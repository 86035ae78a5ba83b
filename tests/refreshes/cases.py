"""Random queries of the forms that are followed, and random changes of their tables.

The rules are tried on SQLite: they are SQL, and a refresh there takes a millisecond. What is left as it is must be what
a full computation gives.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from engine.compile.refresh.changed_keys import FollowedQuery, InputState, follow

TABLES = {"orders": ("id", "k", "g", "v"), "items": ("id", "k", "g", "v"), "kinds": ("id", "k", "g", "v")}
# The part of the queries that are followed as pipes.
PIPES = 0.4


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A refresh that was tried: the query, its keys, and what is wrong (empty: nothing)."""

    sql: str
    keys: tuple[str, ...]
    fault: str
    affected: int
    kept: int


def cases(seed: int, count: int) -> Iterator[Refreshed]:
    """Yield refreshes: several changes after each other of each random query."""
    chance, done, number = random.Random(seed), 0, 0
    while done < count:
        number += 1
        for result in _query(chance):
            yield result
            done += 1
            if done == count:
                return


def _query(chance: random.Random) -> Iterator[Refreshed]:
    written = query(chance)
    sql = written.sql
    # SQLite has no pipes: what is followed is the pipe, and what must come out is the query.
    followed = follow(written.pipe if chance.random() < PIPES else sql, TABLES)
    if not followed.keys:
        return
    lake = sqlite3.connect(":memory:")
    for name in TABLES:
        lake.execute(f"create table {name} (id, k, g, v)")
        lake.executemany(
            f"insert into {name} values (?, ?, ?, ?)", [_row(chance) for _ in range(chance.randint(0, 12))]
        )
    for _ in range(chance.randint(1, 4)):
        keys = tuple(chance.sample(followed.keys, chance.randint(1, min(2, len(followed.keys)))))
        before = {name: _rows(lake, f"select * from {name}") for name in TABLES}
        old = _rows(lake, sql)
        for name in chance.sample(sorted(TABLES), chance.randint(1, 3)):
            _change(lake, name, chance)
        yield _refresh(lake, sql, followed, keys, before, old)
    lake.close()


def _refresh(
    lake: sqlite3.Connection,
    sql: str,
    followed: FollowedQuery,
    keys: tuple[str, ...],
    before: dict[str, Counter[tuple[object, ...]]],
    old: Counter[tuple[object, ...]],
) -> Refreshed:
    changed = []
    for name in TABLES:
        now = _rows(lake, f"select * from {name}")
        states = {
            InputState.BEFORE: before[name], InputState.AFTER: now,
            InputState.REMOVED: before[name] - now, InputState.ADDED: now - before[name],
        }  # fmt: skip
        if before[name] != now:
            changed.append(name)
        for state, rows in states.items():
            lake.execute(f"drop table if exists {name}_{state.value}")
            lake.execute(f"create table {name}_{state.value} (id, k, g, v)")
            lake.executemany(f"insert into {name}_{state.value} values (?, ?, ?, ?)", list(rows.elements()))
    new = _rows(lake, sql)
    if not changed:
        return Refreshed(sql, keys, "" if new == old else "nothing changed, and other rows", 0, sum(old.values()))
    search = followed.search(keys, changed, lambda view, state: f"{view}_{state.value}")
    affected = {tuple(row) for row in lake.execute(search)}
    names = [part[0].lower() for part in lake.execute(f"select * from ({sql}) limit 0").description]
    places = [names.index(key) for key in keys]

    def is_kept(row: tuple[object, ...]) -> bool:
        return tuple(row[place] for place in places) not in affected

    kept = Counter({row: number for row, number in old.items() if is_kept(row)})
    full = Counter({row: number for row, number in new.items() if is_kept(row)})
    fault = "" if kept == full else f"kept {kept - full}, missing {full - kept}\n{search}"
    return Refreshed(sql, keys, fault, len(affected), sum(kept.values()))


def _rows(lake: sqlite3.Connection, sql: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in lake.execute(sql))


def _row(chance: random.Random) -> tuple[object, ...]:
    value = lambda most: chance.choice([None, *range(most)])  # noqa: E731
    return chance.randint(0, 30), value(4), value(3), value(5)


def _change(lake: sqlite3.Connection, name: str, chance: random.Random) -> None:
    kind = chance.choice(["insert", "delete", "update", "move", "null", "empty"])
    one = f"rowid in (select rowid from {name} order by random() limit {chance.randint(1, 3)})"
    if kind == "insert":
        lake.executemany(f"insert into {name} values (?, ?, ?, ?)", [_row(chance) for _ in range(chance.randint(1, 3))])
        return
    picked = [row[0] for row in lake.execute(f"select rowid from {name} order by rowid")]
    chance.shuffle(picked)
    rows = picked if kind == "empty" and chance.random() < 0.3 else picked[: chance.randint(1, 3)]
    del one
    values = {"update": ("v", chance.randint(0, 4)), "move": ("k", chance.randint(0, 3)), "null": ("k", None)}
    for row in rows:
        if kind in values:
            column, value = values[kind]
            lake.execute(f"update {name} set {column} = ? where rowid = ?", (value, row))
        else:
            lake.execute(f"delete from {name} where rowid = ?", (row,))


@dataclass(frozen=True, slots=True)
class Written:
    """A query, and the same as a pipe."""

    sql: str
    pipe: str


def query(chance: random.Random) -> Written:
    """Return a query by the rules: its FROM, then what brings its rows together."""
    if chance.random() < 0.15:
        sides = _select(chance, plain=True), _select(chance, plain=True)
        return Written(f"{sides[0].sql}\nunion all\n{sides[1].sql}", f"{sides[0].pipe} |> union all {sides[1].sql}")
    return _select(chance)


def _select(chance: random.Random, *, plain: bool = False) -> Written:
    start, names = _from(chance)
    column = lambda: f"{chance.choice(names)}.{chance.choice('kgv')}"  # noqa: E731
    parts = [_condition(chance, column) for _ in range(chance.randint(0, 2))]
    where = f" where {' and '.join(parts)}" if parts else ""
    first = lambda: f"{chance.choice(names[:1] * 3 + names)}.{chance.choice('kg')}"  # noqa: E731
    kind = "plain" if plain else chance.choice(["group", "group", "plain", "distinct", "window"])
    key, other = first(), first()
    steps = _steps(start, parts)
    if kind == "plain":
        items = f"select {key} as a, {column()} as b, {column()} as c"
    elif kind == "distinct":
        items = f"select distinct {key} as a, {column()} as b"
    elif kind == "window":
        more = f", {other}" if chance.random() < 0.4 else ""
        total = f"sum({column()}) over (partition by {key}{more}) as c"
        items = f"select {key} as a, {column()} as b, {total}, count(*) over (partition by {key}) as d"
    if kind != "group":
        return Written(f"{items} {start}{where}", f"{steps} |> {items}")
    least = chance.randint(1, 2) if chance.random() < 0.3 else None
    having, more = (f" having count(*) > {least}", f" |> where n > {least}") if least else ("", "")
    values = f"count(*) as n, sum({column()}) as s, count(distinct {column()}) as d, max({column()}) as m"
    groups, shown = chance.choice(
        [(key, f"{key} as a"), (f"{key}, {other}", f"{key} as a, {other} as b"), ("1", f"{key} as a"),
         (f"coalesce({key}, 9)", f"coalesce({key}, 9) as a"), ("aa", f"{key} as aa")]
    )  # fmt: skip
    sql = f"select {shown}, {values} {start}{where} group by {groups}{having}"
    return Written(sql, f"{steps} |> aggregate {values} group by {shown}{more}")


def _steps(start: str, conditions: list[str]) -> str:
    """The FROM and the conditions as steps: those of the first relation alone come before the joins."""
    first, *joins = re.split(r" (?=left join )|(?<!left) (?=join )", start)
    early = [one for one in conditions if not re.search(r"\b[bc]\.", one)]
    late = [one for one in conditions if one not in early]
    texts = [first, *(f"where {one}" for one in early), *joins, *(f"where {one}" for one in late)]
    return " |> ".join(texts)


def _condition(chance: random.Random, column) -> str:
    one = column()
    return chance.choice(
        [f"{one} is null", f"{one} is not null", f"{one} > {chance.randint(0, 2)}", f"{one} <> {column()}",
         f"({one} = 1 or {column()} is null)", f"coalesce({one}, 0) < 3"]
    )  # fmt: skip


def _from(chance: random.Random) -> tuple[str, list[str]]:
    used, texts, outer = [], [], []
    for place in range(chance.choice([1, 2, 2, 3])):
        alias, table = "abc"[place], chance.choice(sorted(TABLES))
        relation = (
            table
            if chance.random() < 0.7
            else f"(select * from {table} where {chance.choice(['v > 0', 'k is not null'])})"
        )
        if not used:
            texts.append(f"from {relation} as {alias}")
        else:
            word = chance.choice(["join", "left join", "left join"])
            against = [one for one in used if word == "left join" or one not in outer]
            on = f"{alias}.k = {chance.choice(against)}.k"
            on += f" and {alias}.v >= {chance.choice(against)}.g" if chance.random() < 0.2 else ""
            on = f"coalesce({on[:3]}, 0) = coalesce({chance.choice(against)}.k, 0)" if chance.random() < 0.15 else on
            texts.append(f"{word} {relation} as {alias} on {on}")
            outer += [alias] if word == "left join" else []
        used.append(alias)
    return " ".join(texts), used
