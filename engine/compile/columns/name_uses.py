"""What each name in a query refers to, and where the names are that the query itself gives: for renaming them."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope, ColumnValue, ResolvedName


class UseKind(StrEnum):
    """What a name in a query is."""

    COLUMN = "column"
    CTE = "CTE"
    ALIAS = "alias"


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name in a query: begin and end (exclusive), and what it refers to.

    `named_at` as in `ColumnValue` and `ScopeRelation`; `origin`: node and column, where no alias gives the name.
    """

    start: int
    end: int
    kind: UseKind
    named_at: int | str = -1
    origin: tuple[str, str] | None = None


Uses = MutableMapping[int, NameUse]


def _note(
    uses: Uses,
    kind: UseKind,
    identifier: exp.Expr | None,
    named_at: int | str | None = None,
    origin: tuple[str, str] | None = None,
) -> None:
    start = identifier.meta.get("start") if isinstance(identifier, exp.Identifier) else None
    if identifier is not None and isinstance(start, int):
        at = start if named_at is None else named_at
        uses[start] = NameUse(start, identifier.meta["end"] + 1, kind, at, origin)


def place_of(identifier: object) -> int:
    """Where an identifier begins; -1: that is not known."""
    start = identifier.meta.get("start") if isinstance(identifier, exp.Identifier) else None
    return start if isinstance(start, int) else -1


def note_alias(uses: Uses | None, identifier: object, kind: UseKind = UseKind.ALIAS) -> None:
    if uses is not None and isinstance(identifier, exp.Identifier):
        _note(uses, kind, identifier)


def note_cte(uses: Uses | None, identifier: exp.Expr, named_at: int) -> None:
    if uses is not None:
        _note(uses, UseKind.CTE, identifier, named_at)


def note_qualifier(uses: Uses | None, identifier: exp.Expr, scope: ColumnScope) -> None:
    """Note the alias, CTE or input that is before `.*` or a column."""
    for around in (scope, scope.outer):
        relation = around.relation_named(identifier.name.lower()) if around is not None else None
        if relation is not None:
            if uses is not None:
                _note(uses, UseKind.ALIAS, identifier, relation.named_at)
            return


def note_result(uses: Uses | None, item: exp.Expr, value: ColumnValue) -> None:
    """Note a name in ORDER BY that means a column of the SELECT."""
    if uses is not None and isinstance(item, exp.Column):
        _note(uses, UseKind.COLUMN, item.this, value.named_at, _origin(value))


def note_column(uses: Uses, identifiers: list[exp.Identifier], scope: ColumnScope, resolved: ResolvedName) -> None:
    """Note a dotted name that was found: what qualifies it, and its column."""
    if resolved.parts_used > 1:
        note_qualifier(uses, identifiers[0], scope)
    if len(resolved.columns) == 1 and (resolved.unknown is None or resolved.parts_used > 1):
        at, (column,) = resolved.parts_used - 1, resolved.columns
        _note(uses, UseKind.COLUMN, identifiers[at], column.named_at, _origin(column, identifiers[at].name))


def _origin(value: ColumnValue, name: str | None = None) -> tuple[str, str] | None:
    if value.named_at != -1 or not value.exact or len(value.origins) != 1:
        return None
    node, column = value.origins[0]
    return (
        node,
        column.split(".", maxsplit=1)[0] if name and column.lower().startswith(f"{name.lower()}.") else column,
    )


def gives_names(select: exp.Expr) -> bool:
    """Whether the columns of a SELECT are those of the whole query, or of a set operation, by their names."""
    node, parent = select, select.parent
    while isinstance(parent, exp.Subquery) and not parent.alias:
        node, parent = parent, parent.parent
    return parent is None or (isinstance(parent, exp.SetOperation) and parent.this is node)


def last_identifier(projection: exp.Expr) -> exp.Identifier | None:
    """The identifier that names the output column of an item without an alias: `b` of `a.b`."""
    if isinstance(projection, exp.Dot):
        return projection.expression if isinstance(projection.expression, exp.Identifier) else None
    if isinstance(projection, exp.Column):
        return projection.this if isinstance(projection.this, exp.Identifier) else None
    return None
