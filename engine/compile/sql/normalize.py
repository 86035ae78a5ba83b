"""One spelling for every way to write the same query.

The spelling is made from tokens, not from sqlglot's generated text: that text differs between versions of
sqlglot, and every running model would look changed after an upgrade. What the tokens cannot see (`n` and
`as n`) is compared by `same_meaning`, with both texts read by the same version.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

DIALECT = "spark"
_TEXTS = {TokenType.STRING: "", TokenType.RAW_STRING: "r", TokenType.HEX_STRING: "X"}


def spelling(tokens: Iterable[Token]) -> str:
    """The tokens of a query in one spelling: blanks, comments, letter case and needless quotes gone.

    The result is SQL again.
    """
    return " ".join(_token(token) for token in tokens)


def _token(token: Token) -> str:
    kind = token.token_type
    if kind in _TEXTS:
        quoted = token.text if kind is not TokenType.STRING else token.text.replace("\\", "\\\\").replace("'", "\\'")
        return f"{_TEXTS[kind]}'{quoted}'"
    if kind is TokenType.NEQ:
        return "<>"
    text = token.text.lower()
    if kind is TokenType.IDENTIFIER and not text.replace("_", "a").isalnum():
        return f"`{text}`"
    return text


def spelling_of(text: str) -> str:
    """The same for an expression of the header; text that cannot be read stays as it is."""
    try:
        return spelling(sqlglot.tokenize(text, dialect=DIALECT))
    except SqlglotError:
        return text


def same_meaning(one: str, other: str) -> bool:
    """Whether two spellings differ only in how they are written (`count(*) n` and `count(*) as n`)."""
    if one == other:
        return True
    try:
        if _literals(one) != _literals(other):
            # sqlglot rewrites some literals (patterns of dates), so they are compared as they are.
            return False
        return _generated(one) == _generated(other)
    except (SqlglotError, RecursionError):
        return False


def _literals(text: str) -> list[str]:
    kinds = {*_TEXTS, TokenType.NUMBER}
    return [token.text for token in sqlglot.tokenize(text, dialect=DIALECT) if token.token_type in kinds]


def _generated(text: str) -> list[str]:
    trees = sqlglot.parse(text, dialect=DIALECT)
    return [t.sql(dialect=DIALECT, unsupported_level=ErrorLevel.IGNORE) for t in trees if t is not None]
