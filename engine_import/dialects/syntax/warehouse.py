"""What a warehouse's SQL means where Spark's differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

# What a call becomes: a template (`{0}` is an argument, `{*}` all of them), or a function that returns the text, or
# None where it cannot say. A function's argument is a `Call`.
Rule: TypeAlias = "str | Noted | Callable[[Any], str | Noted | None]"


@dataclass(frozen=True, slots=True)
class Noted:
    """A text, or a rule, whose rows may differ from the warehouse's.

    Attributes:
        text: SQL; as a rule, a template.
        note: what differs, after the name of the function.
    """

    text: str
    note: str


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A dialect.

    Attributes:
        dialect: sqlglot's name, for reading tokens.
        functions: rules by name in lower case; `name/2` is for that number of arguments.
        types: Spark's type by the word of the warehouse in lower case, where it differs.
        kept: functions that are written alike and compute something else: what to know, by name.
        escapes: a backslash in a string takes the meaning from what follows.
        nulls: how NULLs are ordered: as the lowest value (Spark), as the highest, or always last.
        first_index: of an array: 0, 1; None: says so itself (BigQuery).
        caret: `^` is a power.
        whole_slash: `/` of two integers is an integer.
        tilde: what `~` is: a regular expression that matches a part, or the whole; None: no such operator.
        rounds: how a cast to an integer rounds, which Spark's does not: halves away from zero, or to the even number.
        colon_paths: `column:path` reads a part of a variant.
    """

    dialect: str
    functions: Mapping[str, Rule]
    types: Mapping[str, str]
    kept: Mapping[str, str] = field(default_factory=dict)
    escapes: bool = False
    nulls: Literal["low", "high", "last"] = "low"
    first_index: int | None = None
    caret: bool = False
    whole_slash: bool = False
    tilde: Literal["part", "whole"] | None = None
    rounds: Literal["round", "bround"] = "round"
    colon_paths: bool = False
