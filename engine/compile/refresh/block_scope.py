"""Whose columns the expressions of a SELECT name, by the ids that the binder gave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.compile.columns.column_scope import NameRef
from engine.compile.columns.walk import Walk
from engine.compile.refresh.query_block import BlockSource, NotFollowedError
from engine.compile.refresh.truncated_times import TruncatedTime, unit_of
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.dialect import spark


@dataclass(frozen=True, slots=True)
class BlockScope:
    """The sources of a SELECT."""

    sources: tuple[BlockSource, ...]
    bound: Walk

    def place(self, column: exp.Column) -> tuple[BlockSource, NameRef]:
        """Return the source of a column, and what its name refers to; raise NotFollowedError if that is not certain."""
        ref = self.bound.refs.get(id(column))
        ids = ref.ids if ref is not None and len(ref.ids) == 1 else ()
        # An alias of the SELECT may be the same column by another name, which FROM does not have.
        owners = [one for one in self.sources for number in ids if ref and one.columns.get(number) == ref.name]
        if not owners or ref is None:
            column_text = column.sql(spark())
            raise NotFollowedError(f"the input of '{column_text}' is not known", "Qualify it with an alias.")
        return owners[0], ref

    def may_be_null(self, node: exp.Expr) -> bool:
        """Return whether an expression names a column of an outer side; raise NotFollowedError if that is uncertain."""
        places = [self.place(column) for column in node.find_all(exp.Column)]
        return any(source.outer for source, _ in places)

    def starred(self, number: int) -> exp.Column | None:
        """The column that a star gives, by its id; None: no source has it."""
        owner = next((one for one in self.sources if number in one.columns), None)
        if owner is None:
            return None
        column = exp.column(owner.columns[number], table=owner.alias, quoted=True)
        self.bound.refs[id(column)] = NameRef((number,), owner.columns[number])
        return column

    def key_of(self, node: exp.Expr) -> str:
        """Return a text that is equal for equal expressions; raise NotFollowedError if a source is not certain."""
        for column in node.find_all(exp.Column):
            self.place(column)
        return self.bound.key_of(node)

    def cut(self, value: exp.Expr) -> TruncatedTime | None:
        """Return what a value is cut from; None: it is something else, or the input is read twice.

        Raises:
            NotFollowedError: the source of a column is not certain.
        """
        unit, column = unit_of(value), value.this
        if unit is None or not isinstance(column, exp.Column):
            return None
        source, ref = self.place(column)
        read = [source.view in one.inner.views if one.inner else one.view == source.view for one in self.sources]
        whole = not (ref.path or source.inner or source.outer) and sum(read) == 1
        return TruncatedTime(source.view, column.name, unit) if whole else None

    def decided(self, value: exp.Expr, grain: Sequence[str] | None) -> bool:
        """Return whether an output value follows from what rows of the sources belong together by.

        `grain` has the keys of expressions; None: each row is on its own.

        Raises:
            NotFollowedError: the source of a column is not certain.
        """
        if any(is_aggregate(node) or isinstance(node, exp.Window) for node in value.walk()):
            return False
        columns = [self.place(column)[1].text for column in value.find_all(exp.Column)]
        return grain is None or self.key_of(value) in grain or (bool(columns) and all(one in grain for one in columns))
