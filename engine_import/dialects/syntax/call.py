"""A call of a function: its arguments as nodes and as text in Spark's dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine_import.dialects.syntax.literals import string_value
from engine_import.dialects.syntax.sql_tree import Node

_FIELD = re.compile(r"\{(\*|\d|[a-z]+)\}")
# Strings and fields of a template, whose letters stay as they are.
_FIXED = re.compile(r"('(?:[^'\\]|\\.)*'|\{(?:\*|\d|[a-z]+)\})")
# Units of time by all their spellings; what is not here has no counterpart.
UNITS: Final = {
    alias: unit
    for unit, aliases in {
        "year": "years y yy yyyy yr", "quarter": "quarters q qtr", "month": "months mon mons mm", "week": "weeks w wk",
        "day": "days d dd", "hour": "hours h hh hr", "minute": "minutes mi min mins", "second": "seconds s ss sec secs",
        "millisecond": "milliseconds ms", "microsecond": "microseconds us",
    }.items()
    for alias in (unit, *aliases.split())
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call.

    Attributes:
        value: of a string without Jinja; None for all else.
    """

    nodes: Sequence[Node]
    text: str
    value: str | None = None

    @property
    def word(self) -> str:
        """Return the argument in lower case if it is one word, or a string; else empty."""
        if self.value is not None:
            return self.value.lower()
        return self.nodes[0].word if len(self.nodes) == 1 else ""

    @property
    def unit(self) -> str:
        """The unit of time that it names, in capitals; empty if it names none."""
        return UNITS.get(self.word, "").upper()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function.

    Attributes:
        name: as written.
        arguments: those between the commas.
        write: writes nodes in Spark's dialect.
    """

    name: str
    arguments: tuple[Argument, ...]
    write: Callable[[Sequence[Node]], str]

    def __getitem__(self, at: int) -> Argument:
        return self.arguments[at]

    def __len__(self) -> int:
        return len(self.arguments)

    def fill(self, template: str, **values: str) -> str:
        """Fill a template: `{0}` is an argument, `{*}` all of them, `{name}` a value that is given here.

        The template's words are in capitals if the function's name is written in them.
        """
        parts = {str(at): argument.text for at, argument in enumerate(self.arguments)} | values
        parts["*"] = ", ".join(argument.text for argument in self.arguments)
        return _FIELD.sub(lambda match: parts[match[1]], styled(template, self.name))

    def takes(self, template: str) -> bool:
        fields = {match[1] for match in _FIELD.finditer(template)}
        return "*" in fields or fields == {str(at) for at in range(len(self))}

    def interval(self, at: int) -> tuple[str, str] | None:
        """Return the amount and the unit of `INTERVAL 3 DAY`; None if the argument is not an interval."""
        nodes = self[at].nodes
        if len(nodes) < 3 or nodes[0].word != "interval" or nodes[-1].word not in UNITS:  # noqa: PLR2004 - word, amount, unit
            return None
        amount = nodes[1:-1]
        if len(amount) == 1 and amount[0].kind == "string":
            value = string_value(amount[0], escapes=False) or ""
            return (value, UNITS[nodes[-1].word].upper()) if re.fullmatch(r"-?\d+", value) else None
        return self.write(amount), UNITS[nodes[-1].word].upper()


def styled(template: str, name: str) -> str:
    """Return a template in capitals if the name is written in them; strings and fields stay."""
    if not name.isupper():
        return template
    return "".join(part if at % 2 else part.upper() for at, part in enumerate(_FIXED.split(template)))
