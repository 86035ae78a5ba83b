"""What a target of a sink does: it says how far it has got, and takes changes together with the position they reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from engine.sinks.position import Position

if TYPE_CHECKING:
    import pyarrow as pa


class ChangeKind(StrEnum):
    UPSERT = "upsert"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that are added or replaced, or the keys of rows that are taken out; a later change of a key wins.

    Attributes:
        commit: a number that changes of one commit share in which no key may be added twice; 0: one may.
    """

    kind: ChangeKind
    rows: pa.RecordBatch
    commit: int = 0


@dataclass(frozen=True, slots=True)
class SinkColumn:
    """A delivered column with its type as Spark has it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """What is delivered.

    Attributes:
        identity: of project, target and sink; the position is stored under it.
        key: columns that identify a row in the target; empty: rows are only added.
        unique: no two rows of the table have the same key, by how it is written.
        create: the target's table is made if it does not exist.
    """

    name: str
    identity: str
    columns: tuple[SinkColumn, ...]
    key: tuple[str, ...] = ()
    unique: bool = False
    create: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(slots=True)
class Transaction:
    """Changes taken in one transaction: from the position `before` to `after`, once `changes` is exhausted."""

    before: Position
    changes: Iterator[Change]
    after: Position


@dataclass(frozen=True, slots=True)
class Written:
    """What a transaction did to the target; rows that were there already count as upserted, too."""

    upserted: int = 0
    deleted: int = 0

    def plus(self, other: Written) -> Written:
        return Written(self.upserted + other.upserted, self.deleted + other.deleted)


class SinkTarget(Protocol):
    """A place that rows are delivered to; each method raises EngineError where it cannot be done."""

    def check(self) -> None:
        """Make sure that the place can take each column; it is made here if the sink creates it."""

    def position(self) -> Position | None:
        """How far it has got; None: nothing was delivered."""

    def deliver(self, transaction: Transaction) -> Written:
        """Write changes and their position in one transaction, unless another process has moved the position."""

    def begin(self, position: Position) -> None:
        """Write the first position, unless another process has."""

    def reset(self, position: Position) -> None:
        """Write a position, whatever there is."""

    def close(self) -> None: ...
