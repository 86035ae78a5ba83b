"""Names: what a column of the SQL refers to, by Spark's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct
from sqlglot import exp

from engine.compile.streaming.query_plan.logical_plan import PlanColumn
from engine.compile.types import spark_types

# Spark reads these without brackets, and every file source has _metadata.
_WORDS = {
    "current_date", "current_timestamp", "current_time", "current_user", "user", "session_user", "localtimestamp",
    "grouping__id", "current_catalog", "current_schema", "current_database", "_metadata",
}  # fmt: skip


class NamedRelation(Struct, frozen=True):
    """A relation in a FROM: the name its columns are qualified by, and its columns."""

    alias: str
    columns: tuple[PlanColumn, ...]
    open: bool = False


class Found(Struct, frozen=True):
    """What a name refers to: a column, and a field of it where `path` is not empty.

    `path` is as it is written, as a part of it may be the key of a map. `alias`: it is an alias further left in the
    same SELECT.
    """

    column: PlanColumn
    path: tuple[str, ...] = ()
    alias: bool = False


class AmbiguousError(LookupError):
    """A name that two relations have, or one twice: then `relation` is its name."""

    def __init__(self, name: str, relation: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.relation = relation


@dataclass(slots=True)
class PlanScope:
    """What the names of one SELECT can refer to.

    Attributes:
        relations: of the FROM.
        visible: the columns without qualifier (USING shows one of two), in the order of `*`.
        number: makes ids.
        outer: of the query around a correlated subquery.
        extra: columns that the step made itself: `window`, and aliases further left in the SELECT.
        hits: ids of its columns that subqueries used.
        aliases: ids of the columns in `extra` that are aliases.
    """

    relations: list[NamedRelation]
    visible: tuple[PlanColumn, ...]
    number: Callable[[], int]
    outer: PlanScope | None = None
    extra: dict[str, PlanColumn] = field(default_factory=dict)
    hits: set[int] = field(default_factory=set)
    aliases: set[int] = field(default_factory=set)
    _unknown: dict[tuple[str, str], PlanColumn] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether a relation may have columns that are not known."""
        return any(relation.open for relation in self.relations)

    def resolve(self, node: exp.Column) -> Found | None:
        """What a column refers to; None if there is nothing of this name.

        Raises:
            AmbiguousError: two relations have it, or one has it twice.
        """
        column = self._here([part.name for part in node.parts])
        if column is not None or self.outer is None:
            return column
        column = self.outer.resolve(node)
        if column is not None:
            self.outer.hits.add(column.column.id)
        return column

    def shared(self, name: str) -> bool:
        """Whether several relations have a column of this name."""
        return sum(any(column.name == name for column in relation.columns) for relation in self.relations) > 1

    def _here(self, written: list[str]) -> Found | None:
        parts = [part.lower() for part in written]
        for cut in range(len(parts) - 1, 0, -1):
            relation = self._relation(".".join(parts[:cut]))
            column = self._of(relation, parts[cut]) if relation is not None else None
            if column is not None:
                return Found(column, tuple(written[cut + 1 :]))
        column = self._bare(parts[0])
        if column is not None:
            return Found(column, tuple(written[1:]), alias=column.id in self.aliases)
        return None

    def _relation(self, alias: str) -> NamedRelation | None:
        for relation in self.relations:
            if alias == relation.alias or relation.alias.endswith(f".{alias}"):
                return relation
        return None

    def _of(self, relation: NamedRelation, name: str) -> PlanColumn | None:
        matching = {column.id: column for column in relation.columns if column.name == name}
        if len(matching) > 1:
            raise AmbiguousError(name, relation.alias)
        if matching:
            return next(iter(matching.values()))
        return self._guess(relation.alias, name) if relation.open else None

    def _bare(self, name: str) -> PlanColumn | None:
        matching = {column.id: column for column in self.visible if column.name == name}
        if len(matching) > 1:
            raise AmbiguousError(name)
        if matching:
            return next(iter(matching.values()))
        if name in self.extra:
            return self.extra[name]
        if name in _WORDS or self.open:
            return self._guess("", name)
        return None

    def _guess(self, alias: str, name: str) -> PlanColumn:
        """A column that a relation of unknown columns may have."""
        return self._unknown.setdefault((alias, name), PlanColumn(self.number(), name, known=False))


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


def own_names(select: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, without those of subqueries in it."""
    for node in select.walk(prune=lambda n: isinstance(n, exp.Query)):
        if isinstance(node, exp.Column):
            yield node
