"""The rows of the inputs, which of them are late in a join, and the watermark as Spark moves it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.joins.forms import SIDES, Marks, StreamJoin

MINUTE = 60_000
BEGIN = int(datetime(2024, 5, 1, 10, tzinfo=UTC).timestamp() * 1000)
# Ids from here on are those of clock rows: one in each input and build, the newest, which matches no other.
CLOCK = 1000
_STEP = 35 * MINUTE
_FAR = 20_000 * MINUTE


@dataclass(frozen=True)
class Row:
    """A row of an input; times are milliseconds since 1970."""

    id: int | None
    k: str | None
    ts: int | None
    created: int | None
    amount: int | None

    @property
    def plain(self) -> bool:
        """No condition on its side alone leaves it out."""
        whole = None not in {self.id, self.k, self.ts, self.created, self.amount}
        return whole and self.k not in {"", "b"} and (self.amount or 0) > 6 and self.id not in {2, 3}

    def record(self) -> dict[str, object]:
        times = {"ts": _text(self.ts), "created": _text(self.created)}
        return {"id": self.id, "k": self.k, **times, "amount": self.amount}


def landing(chance: random.Random, number: int, given: Marks, *, last: bool) -> dict[str, list[Row]]:
    """What lands before a build; a row of the last one moves the watermark past all others."""
    begin = BEGIN + number * _STEP
    found: dict[str, list[Row]] = {}
    for index, side in enumerate(SIDES):
        newest = begin + chance.choice((20, 30, 40)) * MINUTE
        rows = [_row(chance, begin, newest, timed=given.of(side) is not None) for _ in range(chance.randint(3, 8))]
        clock, at = CLOCK + number * len(SIDES) + index, newest + (_FAR if last else 0)
        found[side] = [*rows, Row(clock, f"clock{clock}", at, at, CLOCK)]
    return found


def _row(chance: random.Random, begin: int, newest: int, *, timed: bool) -> Row:
    at = begin + chance.choice((-90, -45, -25, -20, -10, -10, 0, 0, 0, 10, 10, 20)) * MINUTE
    at = min(at + chance.choice((0, 0, 0, 300, 700, 30_000)), newest)
    created = None if chance.random() < 0.1 else at + chance.choice((-600, -1, 0, 0, 0, 1, 600, 3600)) * 1000
    ts = at if timed or chance.random() > 0.1 else None
    key = chance.choice((None, "", "", "a", "a", "A", "b"))
    return Row(chance.choice((None, None, 1, 1, 2, 3)), key, ts, created, chance.choice((None, 1, 3, 4, 5, 7, 9)))


@dataclass
class Watermark:
    """The watermark of a query that reads what is there and ends, build after build.

    Attributes:
        value: with which the next micro-batch begins, in milliseconds; 0: there is none yet.
        before: with which the last one began: rows behind it are late in the next.
        kept: the rows of each input that were not late in each join.
        late: how many rows were late, of those that no condition on one side leaves out, and of all.
    """

    given: Marks
    joins: Sequence[StreamJoin]
    value: int = 0
    before: int = 0
    kept: list[dict[str, list[Row]]] = field(default_factory=list)
    late: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.kept = [{side: [] for side in SIDES} for _ in self.joins]

    def build(self, landed: Mapping[str, Sequence[Row]], *, evicts: bool) -> tuple[int, int]:
        """Read what landed; returns how many rows were late, at least and at most."""
        least = most = 0
        for kept, join in zip(self.kept, self.joins, strict=True):
            for side, rows in landed.items():
                behind = [row for row in rows if self._is_late(row, side, join)]
                kept[side] += [row for row in rows if row not in behind]
                used = side in join.timed
                least += sum(row.plain for row in behind) if used and join.held is None else 0
                most += len(behind)
        self.before = self.value
        marked = [side for side in self._read() if self.given.of(side) is not None]
        newest = [self._newest(landed[side], side) for side in marked]
        if newest:
            self.value = max(self.value, *([min(newest)]))
        if evicts and self.value > self.before:
            # The micro-batch without rows.
            self.before = self.value
        return least, most

    def _read(self) -> Iterator[str]:
        yield from ("l", "r")
        if any(join.held is not None for join in self.joins):
            yield "c"

    def _newest(self, rows: Sequence[Row], side: str) -> int:
        return max(row.ts for row in rows if row.ts is not None) - 1000 * (self.given.of(side) or 0)

    def _is_late(self, row: Row, side: str, join: StreamJoin) -> bool:
        if self.given.of(side) is None or side not in join.timed or row.ts is None:
            return False
        size = join.timed[side]
        time = row.ts - row.ts % size + size if size else row.ts
        behind = max(self.before - (join.held or 0), 0) if side == "c" else self.before
        return time <= behind


def _text(time: int | None) -> str | None:
    if time is None:
        return None
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time % 1000:03}Z"
