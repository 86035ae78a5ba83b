"""A unit test as the compiler knows it: steps, rows that fit their columns, and what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.errors import Location


class StepKind(StrEnum):
    GIVEN = "given"
    RESTART = "restart"
    FLUSH = "flush"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an input, or rows that are expected.

    `columns` are the named ones with Spark types, None: not known. `values`: each row as the JSON that Spark reads with
    these; a column that a row leaves out is NULL. `deterministic`: the same rows each time, whatever tables there are.
    """

    columns: tuple[tuple[str, str | None], ...] = ()
    values: tuple[Mapping[str, Any], ...] = ()
    sql: str | None = None
    deterministic: bool = True


@dataclass(frozen=True, slots=True)
class GivenRows:
    input: str
    view: str
    rows: Rows
    location: Location


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """What must hold after a step, or at the end of the test; None: it is not looked at.

    `ordered`: the order of rows counts, for a table that of the columns' values. `late` and `duplicates` are counted as
    Spark does: in the step, at the end in all. `watermark`: the one with which the next step begins, UTC.
    """

    location: Location
    rows: Rows | None = None
    ordered: bool = False
    late: int | None = None
    duplicates: int | None = None
    quarantined: int | None = None
    watermark: str | None = None
    state_rows: int | None = None


@dataclass(frozen=True, slots=True)
class UnitTestStep:
    """One step; `now` is the clock from here on, UTC."""

    kind: StepKind
    location: Location
    given: tuple[GivenRows, ...] = ()
    now: str | None = None
    expect: ExpectedResult | None = None


@dataclass(frozen=True, slots=True)
class UnitTest:
    """A unit test; `static`: rows of inputs read in full, from the beginning on; `broken`: it cannot run."""

    id: str
    name: str
    model: str
    steps: tuple[UnitTestStep, ...] = ()
    expect: ExpectedResult | None = None
    static: tuple[GivenRows, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    location: Location | None = None
    broken: bool = False

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.model,)
