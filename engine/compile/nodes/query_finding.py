"""Something that is wrong with a query, at a place in its text."""

from __future__ import annotations

from dataclasses import dataclass

from engine.diagnostics.codes import CODES
from engine.errors import Level


@dataclass(frozen=True, slots=True)
class QueryFinding:
    """What Spark rejects of a query, or what runs and is not what it seems.

    Attributes:
        code: one of `engine.diagnostics.codes.CODES`.
        level: errors are what Spark rejects; warnings are what runs and grows, or is not what it seems.
    """

    code: str
    message: str
    hint: str
    offset: int = 0
    level: Level = Level.ERROR

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(self.code)

    @property
    def is_error(self) -> bool:
        return self.level is Level.ERROR
