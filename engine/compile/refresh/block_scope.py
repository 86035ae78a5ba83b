"""Whose columns the expressions of a SELECT name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.refresh.query_block import BlockSource, NotFollowedError
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.dialect import spark


@dataclass(frozen=True, slots=True)
class BlockScope:
    """The sources of a SELECT."""

    sources: tuple[BlockSource, ...]

    @property
    def outer(self) -> frozenset[str]:
        """The sources whose columns may be NULL because nothing matches."""
        return frozenset(one.alias for one in self.sources if one.outer)

    def aliases(self, node: exp.Expr) -> set[str]:
        """The sources whose columns an expression names.

        Raises:
            NotFollowedError: of one of its names that is not certain.
        """
        return {self.place(column)[0] for column in node.find_all(exp.Column)}

    def place(self, column: exp.Column) -> tuple[str, tuple[str, ...]]:
        """The source of a column, and its name there with the fields of structs behind it, in lower case.

        Raises:
            NotFollowedError: the source is not certain.
        """
        first, *rest = (part.name.lower() for part in column.parts)
        found = [one for one in self.sources if rest and one.alias == first and rest[0] in one.columns]
        names = tuple(rest)
        if not found:
            found, names = [one for one in self.sources if first in one.columns], (first, *rest)
        if len(found) != 1:
            shown = column.sql(spark())
            raise NotFollowedError(f"the input of '{shown}' is not known", "Qualify it with an alias.")
        return found[0].alias, names

    def starred(self, star: exp.Expr, name: str) -> exp.Column | None:
        """The column that a star gives under a name; None: it is not certain, or no column of a source."""
        node = star.this if isinstance(star, exp.Column) else star
        if node.args.get("replace") or node.args.get("rename"):
            return None
        qualifiers = [part.name.lower() for part in star.parts[:-1]] if isinstance(star, exp.Column) else []
        among = [one for one in self.sources if not qualifiers or qualifiers == [one.alias]]
        found = [one for one in among if name in one.columns]
        return exp.column(name, table=found[0].alias, quoted=True) if len(found) == 1 else None

    def canonical(self, node: exp.Expr) -> exp.Expr:
        """An expression without brackets, with each column under one name, so that equal ones are found.

        Raises:
            NotFollowedError: the source of a column is not certain.
        """
        root = exp.Paren(this=node.copy())
        for paren in list(root.find_all(exp.Paren))[1:]:
            paren.replace(paren.this)
        for column in list(root.find_all(exp.Column)):
            alias, names = self.place(column)
            column.replace(exp.Column(this=exp.to_identifier(".".join(map(repr, (alias, *names))), quoted=True)))
        found: exp.Expr = root.this
        return found

    def decided(self, value: exp.Expr, grain: Sequence[exp.Expr] | None) -> bool:
        """Whether an output value follows from what rows of the sources belong together by.

        Args:
            value: of the SELECT.
            grain: in the canonical form; None: each row is on its own.

        Raises:
            NotFollowedError: the source of a column is not certain.
        """
        if any(is_aggregate(node) or isinstance(node, exp.Window) for node in value.walk()):
            return False
        if grain is None:
            return True
        value = self.canonical(value)
        columns = list(value.find_all(exp.Column))
        return value in grain or (bool(columns) and all(column in grain for column in columns))
