"""Spark's lexemes as the tokens that sqlglot's parser reads; comments are left out.

`GROUP BY` and its like, `x'1F'`, and a hint with all that is in it are one token; a number with a suffix is three (`1
:: BIGINT`), a shift two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from sqlglot import Dialect
from sqlglot import tokens as of_sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.lexemes import Kind, Lexeme, lexemes
from engine.compile.sql.lexer.string_values import string_value

if TYPE_CHECKING:
    from sqlglot.tokens import TokenType  # type: ignore[attr-defined]
else:
    # Python 3.11 looks up a member of an Enum ten times as slowly as an attribute.
    TokenType = SimpleNamespace(**of_sqlglot.TokenType.__members__)

__all__ = ["TokenType", "tokenize", "tokens_of"]

_T = TokenType
_SIGNS: Final = {
    "(": (_T.L_PAREN,), ")": (_T.R_PAREN,), "[": (_T.L_BRACKET,), "]": (_T.R_BRACKET,), ",": (_T.COMMA,),
    ".": (_T.DOT,), ";": (_T.SEMICOLON,), ":": (_T.COLON,), "::": (_T.DCOLON,), "?": (_T.PLACEHOLDER,),
    "->": (_T.ARROW,), "=>": (_T.FARROW,), "|>": (_T.PIPE_GT,), "=": (_T.EQ,), "==": (_T.EQ,), "<=>": (_T.NULLSAFE_EQ,),
    "<>": (_T.NEQ,), "!=": (_T.NEQ,), "<": (_T.LT,), "<=": (_T.LTE,), "!>": (_T.LTE,), ">": (_T.GT,), ">=": (_T.GTE,),
    "!<": (_T.GTE,), "!": (_T.NOT,), "+": (_T.PLUS,), "-": (_T.DASH,), "*": (_T.STAR,), "/": (_T.SLASH,),
    "%": (_T.MOD,), "~": (_T.TILDE,), "&": (_T.AMP,), "|": (_T.PIPE,), "||": (_T.DPIPE,), "^": (_T.CARET,),
    "<<": (_T.LT, _T.LT), ">>": (_T.GT, _T.GT),
    # sqlglot has no `>>>`: an operator that Spark does not have stands for it (`precedence.mixed_operators`).
    ">>>": (_T.LR_ARROW,),
}  # fmt: skip
_SUFFIXES: Final = {
    "L": _T.BIGINT, "S": _T.SMALLINT, "Y": _T.TINYINT, "D": _T.DOUBLE, "F": _T.FLOAT, "BD": _T.DECIMAL,
}  # fmt: skip
# By the second of two words.
_PAIRS: Final = {
    "BY": {
        "CLUSTER": _T.CLUSTER_BY, "DISTRIBUTE": _T.DISTRIBUTE_BY, "GROUP": _T.GROUP_BY, "ORDER": _T.ORDER_BY,
        "PARTITION": _T.PARTITION_BY, "SORT": _T.SORT_BY,
    },
    "SETS": {"GROUPING": _T.GROUPING_SETS},
    "TO": {"SIMILAR": _T.SIMILAR_TO},
}  # fmt: skip
_HINT: Final = "/*+"
# Functions that need brackets in Spark, and are names without (LiteralFunctionResolution).
_NAMES: Final = {"CURRENT_CATALOG", "CURRENT_SCHEMA", "LOCALTIME", "LOCALTIMESTAMP"}


@cache
def _keywords() -> dict[str, TokenType]:
    """Sqlglot's keywords that are one word."""
    keywords = Dialect.get_or_raise("spark").tokenizer_class.KEYWORDS
    return {word: kind for word, kind in keywords.items() if word.replace("_", "a").isalnum() and word not in _NAMES}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text; what Spark's lexer does not know is the last one, and UNKNOWN.

    Raises:
        sqlglot.errors.TokenError: a quote, comment or hint has no end; `start` is where it begins.
    """
    return [*tokens_of(text)]


# A text is read for several questions one after the other: in `plan` for all of an edit.
@lru_cache(maxsize=64)
def tokens_of(text: str) -> tuple[Token, ...]:
    reader = _Reader(text)
    stream = lexemes(text)
    keywords, tokens, var = _keywords(), reader.tokens, _T.VAR
    word_kind, sign_kind, comment_kind = Kind.WORD, Kind.SIGN, Kind.COMMENT
    # The line that the lexemes are in.
    number, begin, until = 1, 0, text.find("\n")
    for kind, start, end in stream:
        while 0 <= until < start:
            number, begin, until = number + 1, until + 1, text.find("\n", until + 1)
        raw = text[start:end]
        if kind is word_kind:
            word = raw.upper()
            if word not in _PAIRS or not reader.pair(word, raw, end):
                tokens.append(Token(keywords.get(word, var), raw, number, start - begin + 1, start, end - 1))
        elif kind is sign_kind and raw in _SIGNS:
            for one in _SIGNS[raw]:
                tokens.append(Token(one, raw, number, start - begin + 1, start, end - 1))
        elif kind is not comment_kind:
            reader.line, reader.column = number, start - begin + 1
            reader.take(kind, start, end, stream)
            if tokens[-1].token_type is _T.UNKNOWN:
                break
    return (*tokens,)


@dataclass(slots=True)
class _Reader:
    """Makes the tokens of a text; words and signs are made above, as they are the most."""

    text: str
    tokens: list[Token] = field(default_factory=list)
    line: int = 1
    column: int = 1

    def take(self, kind: Kind, start: int, end: int, behind: Iterator[Lexeme]) -> None:
        """Add the tokens of a lexeme; a hint takes those behind it, too."""
        raw = self.text[start:end]
        if raw == _HINT:
            self.hint(start, behind)
        elif kind is Kind.NUMBER:
            self.number(raw, start, end)
        elif kind is Kind.QUOTED_NAME:
            self.add(_T.IDENTIFIER, raw[1:-1].replace("``", "`"), start, end)
        elif kind is Kind.UNKNOWN or kind is Kind.SIGN:
            # The end of a hint where none begins is a sign, too.
            self.add(_T.UNKNOWN, raw, start, end)
        elif kind is Kind.UNCLOSED:
            raise TokenError("a quote or comment has no end", start=start)
        else:
            self.string(raw, start, end)

    def add(self, kind: TokenType, text: str, start: int, end: int, comments: list[str] | None = None) -> None:
        """Add a token of a place in the text."""
        self.tokens.append(Token(kind, text, self.line, self.column, start, end - 1, comments))

    def pair(self, word: str, raw: str, end: int) -> bool:
        """Whether the last word and this one are one token, which takes the place of the last."""
        before = self.tokens[-1] if self.tokens else None
        if before is None or before.end - before.start >= len(before.text):
            # It is in quotes.
            return False
        kind = _PAIRS[word].get(before.text.upper())
        if kind is None:
            return False
        text = f"{before.text} {raw}".upper()
        self.tokens[-1] = Token(kind, text, before.line, before.col, before.start, end - 1)
        return True

    def add_hint(self, inside: str, start: int, end: int) -> None:
        """Add a hint; one right behind another is a part of that, as the parser reads one."""
        before = self.tokens[-1] if self.tokens else None
        if before is not None and before.token_type is _T.HINT:
            inside = f"{before.comments[0]},{inside[len(before.comments[0]) + 1 :]}"
            start = before.start
            self.tokens.pop()
        self.add(_T.HINT, self.text[start:end], start, end, [inside])

    def number(self, raw: str, start: int, end: int) -> None:
        """A number; one with a suffix is a cast."""
        digits = raw.rstrip("LSYDFBlsydfb")
        self.add(_T.NUMBER, digits, start, end)
        if len(digits) < len(raw):
            self.add(_T.DCOLON, "::", start, end)
            self.add(_SUFFIXES[raw[len(digits) :].upper()], raw[len(digits) :], start, end)

    def string(self, raw: str, start: int, end: int) -> None:
        """A string with its value; behind the word X it is hexadecimal."""
        before = self.tokens[-1] if self.tokens else None
        if before is not None and before.token_type is _T.VAR and before.text in {"x", "X"}:
            self.tokens.pop()
            self.add(_T.HEX_STRING, string_value(raw), before.start, end)
        else:
            self.add(_T.STRING, string_value(raw), start, end)

    def hint(self, start: int, behind: Iterator[Lexeme]) -> None:
        """A hint; its text has blanks in front, so that places in it are those of the whole text."""
        at, parts = start + len(_HINT), [" " * (start + len(_HINT))]
        for kind, begin, end in behind:
            if kind is Kind.UNKNOWN or kind is Kind.UNCLOSED:
                break
            raw = self.text[begin:end]
            if raw == "*/":
                self.add_hint("".join(parts), start, end)
                return
            is_code = kind is not Kind.COMMENT
            inside = f"'{' ' * (len(raw) - 2)}'" if kind in {Kind.STRING, Kind.RAW_STRING} else raw
            parts += [" " * (begin - at), inside if is_code else " " * len(raw)]
            at = end
        raise TokenError("a hint has no end", start=start)
