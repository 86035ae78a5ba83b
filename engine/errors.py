"""Every error a user can meet: one tree; its codes are explained in engine/diagnostics/.

The tree (what happened decides the branch, the code says exactly what)::

    EngineError
    ├── UsageError      the command line is wrong; exit code 2
    ├── ProjectError    a file of the project is wrong; found without Java
    ├── SetupError      Java, jars, the catalog or the session cannot be had
    ├── StateError      state, lock or table do not agree; nothing was written
    └── RunError        a query or a test failed while running

A stage does not raise for a user's error: it carries `Diagnostic` records in its result, so that all faults of a
project are shown at once. `EngineError` carries the same records across a boundary where nothing more can be collected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from engine.diagnostics.codes import CODES
from engine.secrets.scrubber import scrub


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, the innermost last; the chain may be a ring (`raise e from e`)."""
    visited: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


# How to fix most of what is wrong with a table and its state; it takes the model's name.
REBUILD = "rebuild the table from the first row: engine build -f -s {0}"


class Level(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Location:
    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what happened, where, and how to fix it; `hint` is empty if the message says it all."""

    code: str
    message: str
    hint: str = ""
    level: Level = Level.ERROR
    node: str | None = None
    location: Location | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(self.code)

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.level.value}: {self.message} [{self.code}]" + (f"\n    {self.hint}" if self.hint else "")

    @property
    def is_error(self) -> bool:
        return self.level is Level.ERROR

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level.value,
            "code": self.code,
            "node": self.node,
            "file": self.location.file if self.location else None,
            "line": self.location.line if self.location else None,
            "column": self.location.column if self.location else None,
            "message": self.message,
            "hint": self.hint,
        }

    def at(self, location: Location | None, node: str | None = None) -> Diagnostic:
        return replace(self, location=self.location or location, node=self.node or node)


class EngineError(Exception):
    """Base of all errors meant for users; mostly one finding."""

    diagnostics: tuple[Diagnostic, ...]

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        location: Location | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(message)
        self.diagnostics = (Diagnostic(code, message, hint, node=node, location=location),)

    @classmethod
    def from_diagnostics(cls, diagnostics: Iterable[Diagnostic]) -> Self:
        """Create an error with several findings; with none if the cause is already reported."""
        error = cls.__new__(cls)
        error.diagnostics = tuple(diagnostics)
        return error

    def __str__(self) -> str:
        return scrub("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error with all its findings."""
        return type(self).from_diagnostics, (self.diagnostics,)

    @property
    def diagnostic(self) -> Diagnostic:
        return self.diagnostics[0]


class UsageError(EngineError):
    pass


class ProjectError(EngineError):
    pass


class SetupError(EngineError):
    pass


class StateError(EngineError):
    """State, lock or table do not agree; nothing was written."""


class RunError(EngineError):
    pass


@contextmanager
def errors_at(location: Location | None) -> Iterator[None]:
    """Set the location of errors raised in the block that have none."""
    try:
        yield
    except EngineError as error:
        error.diagnostics = tuple(diagnostic.at(location) for diagnostic in error.diagnostics)
        raise


def near(name: str, candidates: Iterable[str]) -> str:
    """Return a hint with the names nearest to a misspelled one, or else the first few; empty if there are none."""
    names = sorted(set(candidates))
    matches = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if matches:
        return "Did you mean " + " or ".join(f"'{c}'" for c in matches) + "?"
    if not names:
        return ""
    listed = ", ".join(names[:8]) + (", ..." if len(names) > len(names[:8]) else "")
    return f"Known: {listed}."
