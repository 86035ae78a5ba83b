"""Something that is wrong with a query, at a place in its text."""

from __future__ import annotations

from dataclasses import dataclass

from engine.diagnostics.codes import CODES
from engine.errors import Level


@dataclass(frozen=True, slots=True)
class QueryFinding:
    """What Spark rejects of a query (errors), or what runs and is not what it seems (warnings)."""

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
