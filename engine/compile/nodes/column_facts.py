"""What is known about the columns of a query: frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from engine.compile.nodes.query_finding import QueryFinding


class Origin(Struct, frozen=True):
    """A column of a model or source from which something comes; a field of a struct has its path (data.origin).

    `kind`: direct for values; else what the column decides: filter, join, group, having, sort, window.
    """

    node: str
    column: str
    kind: str = "direct"


class Derivation(StrEnum):
    COPY = "copy"
    EXPRESSION = "expression"
    AGGREGATE = "aggregate"


class ColumnFacts(Struct, frozen=True):
    """A column that a query gives.

    `type` is as Spark prints it, None if not known. `sql` is the user's text without the alias; `*` for what a star
    gives; empty if there is none. `named`: whether the name is sure. `window`: the declared window whose start or end
    it is (`hour.start`).
    """

    name: str
    type: str | None
    origins: tuple[Origin, ...] = ()
    sql: str = ""
    named: bool = True
    derivation: Derivation = Derivation.EXPRESSION
    window: str = ""
    certain: bool = False


@dataclass(frozen=True, slots=True)
class InputColumns:
    """The columns of something that a query reads.

    `columns` None: not known. `added`: name and SQL of columns that a watermark adds (`data.scheduled_at as
    scheduled_at`). `hidden`: columns that a star leaves out (`_metadata`). `complete`: there are no others.
    `event_time`: the column of a watermark, which is there even if the others are not known. `dedup`: repeats are
    dropped within the watermark's delay.
    """

    node: str
    columns: tuple[tuple[str, str | None], ...] | None
    added: tuple[tuple[str, str], ...] = ()
    hidden: tuple[tuple[str, str | None], ...] = ()
    complete: bool = True
    event_time: str = ""
    streaming: bool = False
    dedup: bool = False


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A name that no input has; `visible_names`: some of those that could be there."""

    name: str
    near: tuple[str, ...]
    offset: int
    visible_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryColumns:
    """What a query gives; `columns` None: a star stands for unknown ones; `unresolved` has only what is certain."""

    columns: tuple[ColumnFacts, ...] | None
    indirect: tuple[Origin, ...] = ()
    unknown: tuple[str, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    faults: tuple[QueryFinding, ...] = ()

    def as_input(self, node: str, *, in_table: bool) -> InputColumns:
        """The columns as a query sees them that reads this node; `in_table` as an Iceberg table, or a view."""
        from engine.compile.types import spark_types

        if self.columns is None:
            return InputColumns(node, None)
        column_types = (
            (c.name, spark_types.type_in_table(c.type) if in_table else c.type) for c in self.columns if c.named
        )
        return InputColumns(node, tuple(column_types), complete=all(c.named for c in self.columns))

    @property
    def duplicates(self) -> tuple[str, ...]:
        names: set[str] = set()
        twice: dict[str, str] = {}
        for column in self.columns or ():
            name = column.name.lower()
            if name in names:
                twice.setdefault(name, column.name)
            names.add(name)
        return tuple(twice.values())
