"""Random joins of streams: what they compare, of which kind, and with which watermarks.

Some forms are such that Spark alone gives wrong rows for them: NULL keys, bounds that it misreads, an event time that is
equal to a column without watermark. What compile rejects is left out, and counted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from engine.compile.streaming.check_query import check_text
from tests.fuzz.relations import relation

COLUMNS = {"id": "int", "k": "string", "ts": "timestamp", "created": "timestamp", "amount": "int"}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
SIDES = ("l", "r", "c")
DELAYS = (0, 30, 300, 600, 1200)
_KINDS = ("inner", "left", "left", "right", "full", "full", "left semi")
_KEYS = (
    "l.id = r.id",
    "l.id = r.id",
    "l.id = r.id and l.k = r.k",
    "l.k = r.k",
    "nullif(l.k, '') = nullif(r.k, '')",
    "l.id = r.id and nullif(l.k, '') = nullif(r.k, '')",
    "lower(l.k) = case when r.k = 'a' then 'a' end",
    "nullif(l.id, 2) = nullif(r.id, 3)",
    "l.id + 1 = r.id + 1",
    "l.id <=> r.id and l.k = r.k",
    "((l.id = r.id and l.amount > 3) or (l.id = r.id and r.amount > 6))",
    "(l.id, l.k) = (r.id, r.k)",
)
_LENGTHS = (
    "interval 10 minutes",
    "interval 25 minutes",
    "interval 1 hour",
    "interval 300 seconds",
    "interval 0 seconds",
)
# What only one side decides, in ON; clock rows pass all of it.
_ONE_SIDED = ("l.amount > 3", "r.amount > 3", "l.k <> 'b'", "r.k is not null", "3 < l.amount", "not (r.amount <= 3)")
_ABOVE = ("l.amount > 2", "r.id is null", "r.amount > 2", "l.id is not null")


@dataclass(frozen=True)
class Marks:
    """The delays of the watermarks of `l`, `r` and `c` in seconds; None: a stream has none."""

    delays: tuple[int | None, int | None, int | None]

    def of(self, side: str) -> int | None:
        return self.delays[SIDES.index(side)]


@dataclass(frozen=True)
class StreamJoin:
    """A join: its SQL over `l`, `r` and `c`, and which rows can be late in it.

    Attributes:
        sql: with the columns lid, rid, cid, lts, rts.
        timed: the sides whose event time the join has, with the length of the window that it is; 0: it is the time.
        evicts: whether it drops rows of its state as the watermark moves.
        held: by how much the watermark of the step above is behind, in milliseconds; None: there is no such step.
    """

    sql: str
    timed: dict[str, int]
    evicts: bool
    held: int | None = None


def marks(chance: random.Random) -> Marks:
    """Watermarks of both sides mostly, of one, or of none."""
    left, right, third = (chance.choice(DELAYS) for _ in SIDES)
    form = chance.random()
    if form < 0.75:
        return Marks((left, right, third))
    if form < 0.85:
        return Marks((left, None, third))
    return Marks((None, right, third)) if form < 0.95 else Marks((None, None, third))


def stream_join(chance: random.Random, given: Marks) -> StreamJoin:
    """A join of a random form."""
    if chance.random() < 0.12 and None not in given.delays:
        return _chain(chance)
    return _windows(chance) if chance.random() < 0.1 else _pair(chance)


def errors(sql: str, given: Marks) -> list[str]:
    """Codes of the errors that compile finds in a join."""
    facts = {side: relation(COLUMNS, "ts" if given.of(side) is not None else "") for side in SIDES}
    return [finding.code for finding in check_text(sql, facts, "append") if finding.is_error]


def evicts(sql: str, given: Marks) -> bool:
    """Whether rows of a side leave the state of a join: compile warns of both sides where none does."""
    facts = {side: relation(COLUMNS, "ts" if given.of(side) is not None else "") for side in SIDES}
    waiting = [f.message for f in check_text(sql, facts, "append") if f.code == "unbounded-join"]
    return not any("'l' and 'r'" in message for message in waiting)


def _pair(chance: random.Random) -> StreamJoin:
    kind = chance.choice(_KINDS)
    time, timed = _time(chance)
    conditions = [chance.choice(_KEYS), *([time] if time else [])]
    conditions += chance.sample(_ONE_SIDED, chance.choice((0, 0, 0, 1, 1, 2)))
    chance.shuffle(conditions)
    semi = kind == "left semi"
    using = not semi and time == "l.ts = r.ts" and chance.random() < 0.3
    on = "using (id, ts)" if using else f"on {' and '.join(conditions)}"
    shown = {"l": chance.random() < 0.85, "r": not semi and chance.random() < 0.85}
    columns = ["l.id as lid", "cast(null as int) as rid" if semi else "r.id as rid", "cast(null as int) as cid"]
    columns += [f"{f'{side}.ts' if seen else 'cast(null as timestamp)'} as {side}ts" for side, seen in shown.items()]
    above = chance.choice(_ABOVE) if chance.random() < 0.25 and not semi else ""
    sql = f"select {', '.join(columns)} from l {kind} join r {on}{f' where {above}' if above else ''}"
    sides = {side: 0 for side in ("l", "r") if shown[side] or side in timed or using}
    return StreamJoin(sql, sides, evicts=True)


def _time(chance: random.Random) -> tuple[str, set[str]]:
    """A condition on times, and the sides whose event time it has."""
    one, other = chance.choice(_LENGTHS), chance.choice(_LENGTHS)
    both = {"l", "r"}
    forms: list[tuple[str, set[str]]] = [
        (f"r.ts between l.ts and l.ts + {one}", both),
        (f"r.ts between l.ts - {other} and l.ts + {one}", both),
        (f"l.ts between r.ts - {other} and r.ts + {one}", both),
        (f"r.ts >= l.ts - {other} and r.ts <= l.ts + {one}", both),
        (f"r.ts > l.ts - {other} and l.ts > r.ts - {one}", both),
        (f"r.ts <= l.ts + {one}", both),
        (f"r.ts < l.ts + {one}", both),
        (f"r.ts >= l.ts - {one}", both),
        ("l.ts = r.ts", both),
        ("l.ts = r.ts", both),
        (f"l.ts = r.ts and r.ts <= l.ts + {one}", both),
        (f"l.ts = r.ts - {one}", both),
        ("l.ts = r.created", {"l"}),
        ("l.created = r.ts", {"r"}),
        ("l.created = r.created", set()),
        (f"r.ts <= l.created + {one}", {"r"}),
        (f"r.ts between l.created and l.created + {one}", {"r"}),
        (f"r.ts between l.ts and l.ts + {one} and r.created <= l.ts + {other}", both),
        (f"r.ts <= l.ts + {one} + {one} and r.ts >= l.ts - {one} - {one}", both),
        (f"r.ts + {one} between l.ts and l.ts + {other}", both),
        ("cast(r.ts as long) between cast(l.ts as long) - 600 and cast(l.ts as long) + 600", both),
        ("cast(r.ts as double) >= cast(l.ts as double) - 600.5 and cast(r.ts as double) <= cast(l.ts as double) + 0.5", both),
        (f"not (r.ts > l.ts + {one} or r.ts < l.ts - {other})", both),
        ("unix_millis(r.ts) <= unix_millis(l.ts) + 600000", both),
        ("", set()),
    ]  # fmt: skip
    return chance.choice(forms)


def _windows(chance: random.Random) -> StreamJoin:
    """Equal windows of both event times."""
    size = chance.choice((10, 30))
    kind = chance.choice(_KINDS)
    sides = [f"(select id, k, amount, window(ts, '{size} minutes') as w from {side}) {side}" for side in ("l", "r")]
    right = "cast(null as int) as rid" if kind == "left semi" else "r.id as rid"
    times = "l.w.start as lts, cast(null as timestamp) as rts"
    sql = (
        f"select l.id as lid, {right}, cast(null as int) as cid, {times} "
        f"from {sides[0]} {kind} join {sides[1]} on {chance.choice(_KEYS[:6])} and l.w = r.w"
    )
    return StreamJoin(sql, {"l": size * 60_000, "r": size * 60_000}, evicts=True)


def _chain(chance: random.Random) -> StreamJoin:
    """A join of a join: one event time of the first goes on."""
    first, second = (chance.choice(("inner", "left", "right", "full")) for _ in range(2))
    before, behind = (chance.choice((0, 10, 25)) for _ in range(2))
    keys = chance.choice(("l.id = r.id", "nullif(l.k, '') = nullif(r.k, '')"))
    by = chance.choice(("l", "r"))
    inner = (
        f"select l.id as lid, r.id as rid, {by}.ts as ts, {by}.k as k from l {first} join r on {keys} "
        f"and r.ts between l.ts - interval {before} minutes and l.ts + interval {behind} minutes"
    )
    time = chance.choice(("x.ts = c.ts", "c.ts between x.ts - interval 10 minutes and x.ts + interval 10 minutes"))
    sql = (
        "select x.lid, x.rid, c.id as cid, x.ts as lts, c.ts as rts "
        f"from ({inner}) x {second} join c on {chance.choice(('x.k = c.k', 'x.lid = c.id'))} and {time}"
    )
    return StreamJoin(sql, {"l": 0, "r": 0, "c": 0}, evicts=True, held=max(before, behind) * 60_000 + 1)
