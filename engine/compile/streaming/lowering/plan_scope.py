"""The columns of the plan that the names of one SELECT refer to, as the binder found them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct
from sqlglot import exp

from engine.compile.columns.column_scope import NameRef
from engine.compile.streaming.query_plan.logical_plan import PlanColumn
from engine.compile.types import spark_types

# Spark reads these without brackets, and every file source has _metadata.
_WORDS = {
    "current_date", "current_timestamp", "current_time", "current_user", "user", "session_user", "localtimestamp",
    "grouping__id", "current_catalog", "current_schema", "current_database", "_metadata",
}  # fmt: skip


class Found(Struct, frozen=True):
    """What a name refers to: a column, and a field of it where `path` is not empty.

    `path` is as it is written, as a part of it may be the key of a map. `alias`: it is an alias further left in the
    same SELECT.
    """

    column: PlanColumn
    path: tuple[str, ...] = ()
    alias: bool = False


@dataclass(slots=True)
class PlanScope:
    """The columns of one SELECT by the ids that the binder gave them.

    Attributes:
        columns: what FROM reads, and what the step made itself: windows, aliases further left in the SELECT.
        refs: what each name refers to.
        outer: of the query around a correlated subquery.
        read: the ids of what FROM reads.
        hits: ids of its columns that subqueries used.
        aliases: ids of the aliases.
    """

    columns: dict[int, PlanColumn]
    refs: Mapping[int, NameRef]
    outer: PlanScope | None = None
    read: frozenset[int] = frozenset()
    hits: set[int] = field(default_factory=set)
    aliases: set[int] = field(default_factory=set)

    def made(self) -> set[int]:
        """The ids of the columns that the step made itself."""
        return {column.id for number, column in self.columns.items() if number not in self.read}

    def resolve(self, node: exp.Column) -> Found | None:
        """What a column refers to; None if there is nothing of this name, or several things."""
        ref = self.refs.get(id(node))
        if ref is None or (not ref.ids and ref.name in _WORDS):
            return Found(PlanColumn(-1, node.name.lower(), known=False))
        if len(ref.ids) != 1:
            return None
        (number,) = ref.ids
        column = self.column(number) or self._unknown(ref, number)
        return Found(column, ref.path, alias=number in self.aliases)

    def column(self, number: int) -> PlanColumn | None:
        """The column of an id, here or in the query around."""
        column = self.columns.get(number)
        if column is None and self.outer is not None:
            column = self.outer.column(number)
            if column is not None:
                self.outer.hits.add(column.id)
        return column

    def _unknown(self, ref: NameRef, number: int) -> PlanColumn:
        """A column that a relation may have."""
        if ref.outer and self.outer is not None:
            self.outer.hits.add(number)
        return PlanColumn(number, ref.name, known=False)


def path_of(found: Found, *, certain: bool = False) -> Iterator[str]:
    """Yield the path into a column: a field of a struct as it is declared, the key of a map as it is written.

    Args:
        found: the column, and the path as it is written.
        certain: what is of no known type counts as it is written, not in any letter case.
    """
    type_ = spark_types.normal(found.column.type)
    for name in found.path:
        inside = spark_types.fields(spark_types.element(type_) or type_) or ()
        named = [part for part in inside if part[0].lower() == name.lower()]
        is_key = spark_types.entry(type_) != (None, None) or (certain and not found.column.window)
        yield named[0][0] if named else name if is_key else name.lower()
        type_ = named[0][1] if len(named) == 1 else spark_types.entry(type_)[1]
