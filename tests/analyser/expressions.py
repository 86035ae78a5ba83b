"""Random expressions of a wanted type over known columns, and now and then one of another type."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.analyser.tables import TYPES
from tests.fixtures import read_lists

Columns = Sequence[tuple[str, str]]
GROUPS = {
    "number": ("int", "bigint", "double", "decimal(10,2)", "float", "smallint"),
    "whole": ("int", "bigint"),
    "time": ("date", "timestamp", "timestamp_ntz"),
    "plain": ("int", "bigint", "double", "decimal(10,2)", "string", "boolean", "date", "timestamp"),
}


def _by_type(lines: list[str]) -> dict[str, tuple[str, ...]]:
    """The forms of each type: a type stands alone on a line, its forms are indented below it."""
    forms: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(" "):
            forms[next(reversed(forms))].append(line.strip())
        else:
            forms[line] = []
    return {type_: tuple(below) for type_, below in forms.items()}


EXPRESSIONS, AGGREGATES, OVER, LITERALS = map(_by_type, read_lists(Path(__file__).with_name("functions.txt")).values())
_HOLE = re.compile(r"\{([^{}]+)\}")
_MISSPELT = ("idd", "nope", "customer_id", "amuont", "o.nope", "x.id")
_UNHEARD_OF = ("lenght", "to_dat", "iff", "sum_of", "string_split", "getdate")


@dataclass(slots=True)
class Chance:
    """What is drawn: `faults` is how many deliberate mistakes are still to be made."""

    random: random.Random
    faults: int = 0
    names: int = field(default=0)

    def any(self, options: Sequence[str]) -> str:
        """One of them."""
        return self.random.choice(options)

    def maybe(self, share: float) -> bool:
        """True with this probability."""
        return self.random.random() < share

    def fault(self, share: float) -> bool:
        """Whether to make a mistake here."""
        if self.faults and self.maybe(share):
            self.faults -= 1
            return True
        return False

    def name(self, letter: str) -> str:
        """A name that nothing has yet."""
        self.names += 1
        return f"{letter}{self.names}"


def expression(chance: Chance, wanted: str, columns: Columns, depth: int = 2) -> str:
    """An expression of a type: a column, a literal, or a call of a function with such arguments."""
    if chance.fault(0.08):
        wanted = chance.any(TYPES)
    wrong = _wrong(chance, columns, depth)
    if wrong:
        return wrong
    fitting = [name for name, type_ in columns if type_ == wanted]
    roll = chance.random.random()
    if fitting and (depth <= 0 or roll < 0.5):
        return chance.any(fitting)
    if depth <= 0 or roll > 0.93:
        return chance.any(LITERALS[wanted])
    if roll > 0.88:
        return branched(chance, wanted, columns, depth - 1)
    return bracketed(_miscounted(chance, filled(chance, chance.any(EXPRESSIONS[wanted]), columns, depth - 1)))


def _miscounted(chance: Chance, call: str) -> str:
    """A plain call with an argument too many, or without its last one; mostly as it is."""
    plain = re.fullmatch(r"(\w+)\(([^()]*)\)", call)
    if plain is None or " " in plain[2].replace(", ", ",") or not chance.fault(0.03):
        return call
    given = plain[2].split(", ") if plain[2] else []
    given = given[:-1] if given and chance.maybe(0.5) else [*given, "1"]
    return f"{plain[1]}({', '.join(given)})"


def _wrong(chance: Chance, columns: Columns, depth: int) -> str:
    """A name or function that nobody has, or one that does not stand here; mostly nothing."""
    if chance.fault(0.04):
        return chance.any(_MISSPELT)
    if chance.fault(0.02):
        return f"{chance.any(_UNHEARD_OF)}({expression(chance, 'string', columns, 0)})"
    if depth and chance.fault(0.02):
        return filled(
            chance, chance.any([f for forms in (*AGGREGATES.values(), *OVER.values()) for f in forms]), columns
        )
    return ""


def branched(chance: Chance, wanted: str, columns: Columns, depth: int) -> str:
    """A CASE or IF."""
    condition = expression(chance, "boolean", columns, depth)
    one, two = (expression(chance, wanted, columns, depth) for _ in range(2))
    if chance.maybe(0.3):
        key = chance.any(GROUPS["plain"])
        value, label = (expression(chance, key, columns, depth) for _ in range(2))
        return f"case {value} when {label} then {one} else {two} end"
    return f"case when {condition} then {one} else {two} end"


def filled(chance: Chance, form: str, columns: Columns, depth: int = 0) -> str:
    """A form with its holes filled."""

    def fill(hole: re.Match[str]) -> str:
        kind = hole[1]
        if kind == "by":
            return partition(chance, columns)
        if kind == "sorted":
            return f"{partition(chance, columns)} order by {expression(chance, plain(chance), columns, 0)}".strip()
        return expression(chance, typed(chance, kind), columns, depth)

    return _HOLE.sub(fill, form)


def typed(chance: Chance, kind: str) -> str:
    """The type of an argument."""
    return chance.any(TYPES if kind == "any" else GROUPS.get(kind, (kind,)))


def plain(chance: Chance) -> str:
    """A type by which rows are sorted or grouped."""
    return chance.any(GROUPS["plain"])


def partition(chance: Chance, columns: Columns) -> str:
    """PARTITION BY, or nothing."""
    return f"partition by {expression(chance, plain(chance), columns, 0)}" if chance.maybe(0.6) else ""


def aggregate(chance: Chance, columns: Columns) -> tuple[str, str]:
    """A call of an aggregate, and its type as far as queries around it need it."""
    kind = chance.any(tuple(AGGREGATES))
    forms = [form for form in AGGREGATES[kind] if not form.startswith("grouping(")]
    return filled(chance, chance.any(forms), columns, 1 if chance.maybe(0.3) else 0), kind


def over(chance: Chance, columns: Columns) -> tuple[str, str]:
    """A function with OVER, and its type."""
    kind = chance.any(tuple(OVER))
    return filled(chance, chance.any(OVER[kind]), columns), kind


def bracketed(text: str) -> str:
    """In brackets if it is more than a call."""
    return text if re.fullmatch(r"[\w.]+|\w+\([^()]*\)", text) else f"({text})"
