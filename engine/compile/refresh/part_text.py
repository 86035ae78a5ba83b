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

from engine.compile.sql.dialect import UNFORESEEN, parse_text, tokenize

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
