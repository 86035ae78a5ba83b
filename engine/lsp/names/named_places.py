"""A name of the project, and a place where it is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NameKind(StrEnum):
    MODEL = "model"
    SOURCE = "source"
    TABLE = "source table"
    WINDOW = "window"
    COLUMN = "column"
    EVENT_TIME = "watermark column"
    CTE = "CTE"
    ALIAS = "alias"
    INNER = "column alias"
    MACRO = "macro"
    TEST_KIND = "generic test"
    VARIABLE = "variable"
    TEST = "test"
    EXPECTATION = "expectation"


@dataclass(frozen=True, slots=True)
class Name:
    """A name.

    `name`: as it is declared; columns in lower case. `owner`: what it is unique in: the node of a column, the source of
    a table, the file of a window, CTE or alias. `at`: the offset of the alias in the query, of names of which a query
    may have several; else -1.
    """

    kind: NameKind
    name: str
    owner: str = ""
    at: int = -1

    def __str__(self) -> str:
        owner_name = self.owner.partition(".")[2] if self.kind is NameKind.COLUMN else self.owner
        return f"{self.kind} '{self.name}'" + (f" of '{owner_name}'" if owner_name else "")


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place where a name is written, or has to be when it changes.

    Attributes:
        start: the offset of the name.
        length: of what is replaced; 0: nothing is there yet.
        before: what the new name needs before it.
        after: what it needs behind it.
        blocked: why nothing can be written there; empty: it can.
    """

    file: str
    start: int
    length: int
    name: Name
    before: str = ""
    after: str = ""
    blocked: str = ""
