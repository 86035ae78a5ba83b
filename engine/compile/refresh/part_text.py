"""The user's text of a part of a query.

sqlglot writes some of what it reads in other words, and some of these mean something else to Spark. So a part is not
generated from the tree: it is the shortest text around the words that the tree places which is read as this part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from engine.compile.columns.column_scope import NameRef
from engine.compile.columns.walk import Walk
from engine.compile.refresh.query_block import BlockSource, NotFollowedError, TruncatedTime, unit_of
from engine.compile.sql.aggregates import is_aggregate
from engine.compile.sql.dialect import UNFORESEEN, parse_text, spark, tokenize


@dataclass(frozen=True, slots=True)
class BlockScope:
    """The sources of a SELECT."""

    sources: tuple[BlockSource, ...]
    bound: Walk

    def place(self, column: exp.Column) -> tuple[BlockSource, NameRef]:
        """The source of a column, and what its name refers to.

        Raises:
            NotFollowedError: the source is not certain.
        """
        ref = self.bound.refs.get(id(column))
        ids = ref.ids if ref is not None and len(ref.ids) == 1 else ()
        # An alias of the SELECT may be the same column by another name, which FROM does not have.
        owners = [one for one in self.sources for number in ids if ref and one.columns.get(number) == ref.name]
        if not owners or ref is None:
            column_text = column.sql(spark())
            raise NotFollowedError(f"the input of '{column_text}' is not known", "Qualify it with an alias.")
        return owners[0], ref

    def may_be_null(self, node: exp.Expr) -> bool:
        """Whether an expression names a column of an outer side, which is NULL where nothing matches.

        Raises:
            NotFollowedError: of one of its names that is not certain.
        """
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
        """A text that is equal for equal expressions.

        Raises:
            NotFollowedError: the source of a column is not certain.
        """
        for column in node.find_all(exp.Column):
            self.place(column)
        return self.bound.key_of(node)

    def cut(self, value: exp.Expr) -> TruncatedTime | None:
        """What a value is cut from; None: it is something else, or the input is read twice.

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
        """Whether an output value follows from what rows of the sources belong together by.

        Args:
            value: of the SELECT.
            grain: the keys of expressions; None: each row is on its own.

        Raises:
            NotFollowedError: the source of a column is not certain.
        """
        if any(is_aggregate(node) or isinstance(node, exp.Window) for node in value.walk()):
            return False
        columns = [self.place(column)[1].text for column in value.find_all(exp.Column)]
        return grain is None or self.key_of(value) in grain or (bool(columns) and all(one in grain for one in columns))


# The tree places most words. What is around them: `cast(` and `as decimal(10, 2))`, `case when`, `not (`.
_MOST_BEFORE, _MOST_BEHIND = 8, 24
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query, as it is written, with its tokens."""

    text: str
    tokens: Sequence[Token]

    @classmethod
    def of_sql(cls, text: str) -> QueryText:
        """Return the text with its tokens; raise sqlglot's TokenError if a quote or comment has no end."""
        return cls(text, tokenize(text))

    def of_part(self, node: exp.Expr) -> str | None:
        """The text of an expression or condition without queries inside; None: it is not found."""
        places = [(one.meta["start"], one.meta["end"]) for one in node.walk() if "start" in one.meta]
        if not places:
            return None
        first, last = self._at(min(start for start, _ in places)), self._at(max(end for _, end in places))
        for begin, end in self._windows(first, last):
            text = self.text[self.tokens[begin].start : self.tokens[end].end + 1]
            if _is_read_as(text, node):
                return text
        return None

    def _at(self, place: int) -> int:
        """The token that a place in the text is in."""
        return max(bisect_right(self.tokens, place, key=lambda token: int(token.start)) - 1, 0)

    def _windows(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last token of texts with some tokens in them, the shortest first."""
        for more in range(_MOST_BEFORE + _MOST_BEHIND + 1):
            for before in range(min(more, _MOST_BEFORE) + 1):
                begin, end = first - before, last + more - before
                inside = begin >= 0 and end < len(self.tokens) and more - before <= _MOST_BEHIND
                if inside and self._closed(begin, end):
                    yield begin, end

    def _closed(self, begin: int, end: int) -> bool:
        """Whether each bracket in a text has its other one there."""
        depth = 0
        for token in self.tokens[begin : end + 1]:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth < 0:
                return False
        return not depth


def _is_read_as(text: str, node: exp.Expr) -> bool:
    try:
        tree = parse_text(f"SELECT {text}")
    except (SqlglotError, RecursionError, *UNFORESEEN):
        return False
    whole = isinstance(tree, exp.Select) and not any(value for key, value in tree.args.items() if key != "expressions")
    return whole and len(tree.expressions) == 1 and tree.expressions[0] == node
