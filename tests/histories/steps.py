"""Random steps. Each says all that it does, so that any part of a history is a history."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.histories.kinds import CHANGES, EVENTS, FEED, KINDS, MORE, PROJECT_SETTINGS
from tests.histories.points import IN_BACKFILL, IN_REBUILD, IN_RENAME, IN_ROLLBACK, NAMES

# What a step does before its build or in it, and how often.
WEIGHTS = {
    "land": 30,
    "late": 8,
    "null": 4,
    "bad": 4,
    "duplicate": 6,
    "edit": 20,
    "kill": 14,
    "reset-now": 4,
    "reset-earliest": 3,
    "refresh": 4,
    "rename": 3,
    "rollback": 3,
    "rollback-in-build": 3,
    "compact": 3,
    "compact-in-build": 2,
    "expire": 2,
    "lost-state": 3,
    "lost-checkpoint": 2,
    "maintain": 2,
    "move": 2,
    "crash": 1,
    "odd-name": 4,
    "foreign-column": 3,
    "foreign-tag": 2,
    "accept": 3,
    "test": 3,
    "widen": 2,
    "go-back": 3,
    "backfill": 4,
    "rebuild": 4,
    "rename-table": 4,
}
OPERATIONS = tuple(WEIGHTS)
LANDING = ("land", "late", "null", "bad", "duplicate")
# Of files; Spark reads those that begin with `_` only if there is a `=`, and no hidden ones.
ODD_NAMES = ("a b", "_part=1", "_hidden", ".hidden", "50%", "%41", "zürich", "x#1", "{x}", "[ab]", "a,b")
WAYS = ("undo", "refresh", "reset")
_START = datetime(2024, 5, 1, tzinfo=UTC)
BROKEN = "{broken"
MODELS = ("plain", "both", "uniq", "hourly", "updates", "totals", "running", "current", "versions", "joined", "down",
           "counts", "sessions", "chained", "outer", "rollup", "daily", "vetted", "shown", "gated", "fed",
           "polled")  # fmt: skip
# What a model needs beside it.
NEEDS = {"down": "plain", "counts": "plain", "rollup": "plain", "gated": "plain", "shown": "vetted"}

File = list[dict[str, Any] | str]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a history.

    Attributes:
        operation: one of `OPERATIONS`.
        model: that it is about.
        files: that land before the build: source and rows.
        detail: of the operation: the setting and its value, the point and how often it is passed.
        way: what the user chooses if the build is rejected.
    """

    operation: str
    model: str = ""
    files: tuple[tuple[str, File], ...] = ()
    detail: tuple[Any, ...] = ()
    way: str = "undo"

    def __str__(self) -> str:
        files = ", ".join(f"{source}: {len(rows)}" for source, rows in self.files)
        detail = " ".join(map(repr, self.detail))
        return " ".join(filter(None, [self.operation, self.model, detail, f"[{files}]", f"({self.way})"]))


@dataclass(frozen=True, slots=True)
class Plan:
    """A project and what happens to it; `options` are the settings that its models begin with, where they differ."""

    models: tuple[str, ...]
    steps: tuple[Step, ...]
    options: tuple[tuple[str, str, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"    {', '.join(self.models)} {self.options or ''}"]
        for step in self.steps:
            lines += [f"    {step}", *(f"      {source}: {rows}" for source, rows in step.files)]
        return "\n".join(lines)


@dataclass(slots=True)
class _Rows:
    """Makes rows; time moves on with each file."""

    dice: random.Random
    sources: tuple[str, ...]
    now: int = 0
    serial: int = 0
    old: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def files(self, operation: str) -> Iterator[tuple[str, File]]:
        for source in self.sources:
            count = self.dice.choice((1, 1, 1, 2, 3)) if operation == "land" else 1
            if self.dice.random() < 0.2 and len(self.sources) > 1:
                continue
            for _ in range(count):
                yield source, self._file(source, operation)

    def _file(self, source: str, operation: str) -> File:
        self.now += self.dice.choice((5, 20, 40, 70, 130))
        rows: File = [self._row(source, operation) for _ in range(self.dice.randint(1, 4))]
        if operation == "bad":
            rows.insert(self.dice.randrange(len(rows) + 1), BROKEN)
        if operation == "null" and source != CHANGES:
            row = self._row(source, "land")
            rows.append({**row, "at": None})
        known = self.old.setdefault(source, [])
        if operation == "duplicate" and known:
            rows += [self.dice.choice(known) for _ in range(2)]
        known += [row for row in rows if isinstance(row, dict)]
        return rows

    def _row(self, source: str, operation: str) -> dict[str, Any]:
        behind = self.dice.choice((60, 150, 300)) if operation == "late" else 0
        second = self.now * 60 - behind * 60 + self.dice.randint(-1200, 600)
        at = (_START + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")
        amount = self.dice.choice((0.25, 0.75, 1.25, 2.5, 3.0, 4.75, 8.0))
        if source == CHANGES:
            # A sequence comes once, whatever the order.
            self.serial += 1
            seq = (_START + timedelta(seconds=second * 1000 + self.serial)).strftime("%Y-%m-%dT%H:%M:%SZ")
            return {
                "key": self.dice.randrange(5),
                "seq": seq,
                "op": self.dice.choice(("u", "u", "u", "d")),
                "val": amount,
            }
        return {"id": self.dice.randrange(8), "at": at, "kind": self.dice.choice("abc"), "amount": amount}


def plan(
    seed: int,
    index: int,
    length: int,
    operations: tuple[str, ...] = OPERATIONS,
    most: int = 3,
    names: tuple[str, ...] = MODELS,
) -> Plan:
    """The history of a seed and an index, of at most so many of some models beside those that they read."""
    dice = random.Random(f"{seed}/{index}")
    count = min(most, dice.choice((2, 3, 3)), len(names))
    models = tuple(sorted(dice.sample(names, count), key=MODELS.index))
    models = tuple(sorted({*models, *(NEEDS[name] for name in models if name in NEEDS)}, key=MODELS.index))
    sources = tuple(s for s in (EVENTS, MORE, CHANGES, FEED) if any(s in KINDS[m].sources for m in models))
    rows = _Rows(dice, sources)
    first = [(source, rows._file(source, "land")) for source in sources]
    options = [("plain", "onchange", "fail")] if dice.random() < 0.3 else []
    options += [("plain", "amount", "cast(amount as int)")] if dice.random() < 0.2 else []
    options += [("down", "columns", "*")] if dice.random() < 0.3 else []
    waiting = [name for name in models if KINDS[name].tested]
    options += [(name, "limit", KINDS[name].settings["limit"][1]) for name in waiting if dice.random() < 0.4]
    steps = [Step("land", files=tuple(first))]
    weights = [WEIGHTS[name] for name in operations]
    steps += [_step(dice, dice.choices(operations, weights)[0], models, rows) for _ in range(length)]
    return Plan(models, tuple(steps), tuple(options))


def _step(dice: random.Random, operation: str, models: tuple[str, ...], rows: _Rows) -> Step:
    model, way = dice.choice(models), dice.choice(WAYS)
    files = tuple(rows.files(operation if operation in LANDING else "land"))
    # Some operations are tried without new rows too.
    if (
        operation not in (*LANDING, "odd-name", "kill", "crash", "rollback-in-build", "compact-in-build")
        and dice.random() < 0.4
    ):
        files = ()
    detail: tuple[Any, ...] = ()
    if operation == "edit":
        settings = {("project", name): values for name, values in PROJECT_SETTINGS.items()}
        settings |= {("model", name): values for name, values in KINDS[model].settings.items() if values[1:]}
        (where, name) = dice.choice([*settings, *(s for s in settings if s[0] == "model")])
        first, *others = settings[where, name]
        detail = (where, name, dice.choice([first, *others, *others]))
    if operation in ("kill", "crash"):
        detail = (dice.choice(NAMES), dice.randrange(2))
    if operation == "go-back":
        detail = (dice.choice(("", *IN_ROLLBACK)), dice.random() < 0.7)
    if operation == "backfill":
        detail = (dice.choice(("", *IN_BACKFILL)),)
    if operation == "rebuild":
        detail = dice.choice((("", ""), *IN_REBUILD))
    if operation == "rename-table":
        detail = (dice.choice(("", *IN_RENAME)),)
    if operation == "rollback-in-build":
        detail = (dice.randrange(2),)
    if operation == "odd-name":
        detail = (dice.choice(ODD_NAMES),)
    if operation == "rename":
        detail = (dice.random(),)
    return Step(operation, model, files, detail, way)
