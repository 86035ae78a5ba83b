"""Random queries of the forms that are followed."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tests.refreshes.written import Written

TABLES = {"orders": ("id", "k", "g", "v"), "items": ("id", "k", "g", "v"), "kinds": ("id", "k", "g", "v")}
# The part of the queries that are followed as pipes.
PIPES = 0.4


@dataclass(frozen=True, slots=True)
class Piped:
    """A query, and the same as a pipe."""

    sql: str
    pipe: str


def query(chance: random.Random) -> Written:
    """Return a query by the rules: its FROM, then what brings its rows together."""
    found = _query(chance)
    return Written(found.sql, found.pipe if chance.random() < PIPES else found.sql)


def _query(chance: random.Random) -> Piped:
    if chance.random() < 0.15:
        sides = _select(chance, plain=True), _select(chance, plain=True)
        return Piped(f"{sides[0].sql}\nunion all\n{sides[1].sql}", f"{sides[0].pipe} |> union all {sides[1].sql}")
    return _select(chance)


def _select(chance: random.Random, *, plain: bool = False) -> Piped:
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
        return Piped(f"{items} {start}{where}", f"{steps} |> {items}")
    least = chance.randint(1, 2) if chance.random() < 0.3 else None
    having, more = (f" having count(*) > {least}", f" |> where n > {least}") if least else ("", "")
    values = f"count(*) as n, sum({column()}) as s, count(distinct {column()}) as d, max({column()}) as m"
    groups, shown = chance.choice(
        [(key, f"{key} as a"), (f"{key}, {other}", f"{key} as a, {other} as b"), ("1", f"{key} as a"),
         (f"coalesce({key}, 9)", f"coalesce({key}, 9) as a"), ("aa", f"{key} as aa")]
    )  # fmt: skip
    sql = f"select {shown}, {values} {start}{where} group by {groups}{having}"
    return Piped(sql, f"{steps} |> aggregate {values} group by {shown}{more}")


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
