"""Characters that Spark's lexer does not know, or that begin no lexeme where they are."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

Found = tuple[str, str]

_PARAMETER: Final = "a query parameter; models have none", "Write {{ var('name') }}."
_WORD: Final = re.compile(r"\w+")
_BY_TEXT: Final = {
    "{": ("a single brace is not valid SQL", "Jinja expressions have two braces: {{ ref('flights') }}."),
    "}": ("a single brace is not valid SQL", "Jinja expressions have two braces: {{ ref('flights') }}."),
    "@": _PARAMETER,
    "$": _PARAMETER,
    "*/": ("*/ ends no comment", "Remove it, or write a blank between * and /*."),
    "#": ("# begins no comment in Spark's SQL", "Write --."),
    "\\": ("a backslash outside a string", "Remove it."),
}
# Without a mark on the screen, or like a blank (those that are blanks to Spark, too, do not come here).
_INVISIBLE: Final = {"Cc", "Cf", "Zs", "Zl", "Zp"}


def unknown_character(token: Token, text: str) -> Found:
    """Return the message and hint for the token of type UNKNOWN that ends a text."""
    character = token.text
    if text.startswith("$$", token.start):
        return "Spark has no string literals between $$", "Write it in single quotes."
    if character in _BY_TEXT:
        return _BY_TEXT[character]
    if "://" in character:
        return f"'{character}' is not a name", "An address is a string: write it in single quotes."
    if unicodedata.category(character) in _INVISIBLE:
        return f"an invisible character (U+{ord(character):04X})", "Delete it, or replace it by a space."
    name = _name_around(token.start, text)
    if name is not None:
        return f"'{name}' has letters other than a to z", f"Write it in backquotes: `{name}`."
    return (
        f"'{character}' (U+{ord(character):04X}) is not a character of SQL",
        "Remove it, or write the text in quotes.",
    )


def is_unknown(token: Token) -> bool:
    return token.token_type is TokenType.UNKNOWN


def _name_around(place: int, text: str) -> str | None:
    """The word that a letter is in; None: it is not a letter."""
    if not text[place].isalnum():
        return None
    begin = place
    while begin and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
        begin -= 1
    match = _WORD.match(text, begin)
    return match[0] if match else None
