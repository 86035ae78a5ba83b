"""The lexemes of a text, where Spark's lexer has them (SqlBaseLexer.g4, 4.1).

Peculiar to it: a backslash at the end of a `--` comment continues it, `/*+` begins a hint anywhere but in a comment,
comments nest, `*/` is one sign everywhere, a word may begin with a digit, and `>>` is two signs behind `array`, `map`
or `struct` until each has met its `>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, TypeAlias


class Kind(Enum):
    """Kinds of lexemes."""

    WORD = auto()
    SIGN = auto()
    NUMBER = auto()
    STRING = auto()
    RAW_STRING = auto()
    QUOTED_NAME = auto()
    COMMENT = auto()
    # A character that begins nothing; a quote or comment without end.
    UNKNOWN = auto()
    UNCLOSED = auto()


# Its kind and place; the end is exclusive.
Lexeme: TypeAlias = tuple[Kind, int, int]

BLANKS: Final = " \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000"
_SUFFIX = r"(?:[fFdD]|[bB][dD])"
# Two letters are S and I in capitals, as which the lexer reads them.
_NOT_BEHIND_NUMBER = r"(?![A-Za-z0-9_\u0131\u017f])"
_LEXEME: Final = re.compile(
    rf"""[{BLANKS}]*+(?:
      (?P<RAW_STRING>[rR](?:'[^']*'|"[^"]*"))
    | (?P<NUMBER>
          (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?{_SUFFIX}?{_NOT_BEHIND_NUMBER}
        | [0-9]+[eE][+-][0-9]+{_SUFFIX}?
        | [0-9]+(?:[eE][0-9]+{_SUFFIX}?|[lLsSyY]|{_SUFFIX})?{_NOT_BEHIND_NUMBER}
      )
    | (?P<WORD>[A-Za-z0-9_]++)
    | (?P<COMMENT>--(?:\\\n|[^\r\n])*+|/\*(?!\+))
    | (?P<SIGN><=>|>>>|>>|<<|<=|<>|>=|==|!=|!>|!<|\|\||\|>|::|->|=>|/\*\+|\*/|[-;(),.\[\]!=<>+*/%~&|^:?])
    | (?P<STRING>'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*'|"[^"\\]*+(?:(?:""|\\.)[^"\\]*+)*")
    | (?P<QUOTED_NAME>`[^`]*+(?:``[^`]*+)*`)
    | (?P<UNKNOWN>.)
    )""",
    re.DOTALL | re.VERBOSE,
)
_KINDS: Final = [Kind.UNKNOWN, *(Kind[name] for name in _LEXEME.groupindex)]
_CONTINUED: Final = re.compile(rf"\\\n(?![{BLANKS}]*(?:--|$))")
_BRACKETS: Final = re.compile(r"/\*(?!\+)|\*/")
_ADDRESS: Final = re.compile(r"[A-Za-z]+://[A-Za-z0-9_/.?=&#%-]+")
_TYPES: Final = {"ARRAY", "MAP", "STRUCT"}


def lexemes(text: str) -> Iterator[Lexeme]:  # noqa: C901 - one loop, as it turns once for each word of a project
    """Yield the lexemes of a text, comments among them, up to the first that is unknown or has no end."""
    addresses, at = "://" in text, 0
    # How many types may still be open, if that counts.
    shifts = [0] if ">>" in text else None
    # Python 3.11 takes long for a member of an Enum.
    kinds, word, sign, comment, unknown = _KINDS, Kind.WORD, Kind.SIGN, Kind.COMMENT, Kind.UNKNOWN
    while at >= 0:
        begin, at = at, -1
        for match in _LEXEME.finditer(text, begin):
            group = match.lastindex
            kind = kinds[group]  # type: ignore[index]
            start, end = match.span(group)  # type: ignore[arg-type]
            if kind is word:
                if addresses and (address := _ADDRESS.match(text, start)) is not None:
                    # A name by its rule, and then rejected for its signs.
                    yield unknown, start, address.end()
                    break
                if shifts and text[start:end].upper() in _TYPES:
                    shifts[0] += 1
            elif kind is sign:
                if shifts and text[start] == ">" and shifts[0]:
                    if end > start + 1 and text[start + 1] == ">":
                        shifts[0] -= 1
                        at = start + 1
                        yield kind, start, at
                        break
                    shifts[0] -= end == start + 1
            elif kind is comment:
                if text[start] == "/":
                    # A regular expression cannot delimit it.
                    at = comment_end(text, start)
                    yield kind if at >= 0 else Kind.UNCLOSED, start, at
                    break
            elif kind is unknown:
                yield Kind.UNCLOSED if text[start] in "'\"`" else kind, start, end
                break
            yield kind, start, end


def has_comment(text: str) -> bool:
    """Whether there is a comment in a text."""
    return ("--" in text or "/*" in text) and any(kind is Kind.COMMENT for kind, _, _ in lexemes(text))


def continued_comments(text: str) -> Iterator[int]:
    """Yield where comments end in a backslash that takes in a line of something else."""
    for kind, start, end in lexemes(text) if "\\\n" in text else ():
        if kind is Kind.COMMENT and text[start] == "-":
            yield from (start + match.start() for match in _CONTINUED.finditer(text[start:end]))


def comment_end(text: str, start: int) -> int:
    """Where a comment in brackets ends, with those inside it; -1: nowhere."""
    depth = 1
    for bracket in _BRACKETS.finditer(text, start + 2):
        depth += 1 if bracket[0] == "/*" else -1
        if not depth:
            return bracket.end()
    return -1
