"""The values of Spark's string literals (SparkParserUtils.unescapeSQLString, 4.1.4)."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(r"''|\"\"|\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_SURROGATES: Final = re.compile(r"([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
_UNITS: Final = 0x10000
_NAMED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def string_value(literal: str) -> str:
    """Return the value of one literal, with its quotes; half a surrogate pair becomes `?`, as in UTF-8."""
    if literal[0] in "rR":
        return literal[2:-1]
    quote, inner = literal[0], literal[1:-1]
    if "\\" not in inner and quote not in inner:
        return inner

    def unescaped(match: re.Match[str]) -> str:
        if match[0][0] != "\\":
            return quote if match[0][0] == quote else match[0]
        short, long, octal, other = match.groups()
        if short:
            return chr(int(short, 16))
        if long:
            return _of_code_point(int(long, 16))
        return chr(int(octal, 8)) if octal else _NAMED.get(other, other)

    return _joined_surrogates(_ESCAPE.sub(unescaped, inner))


def _of_code_point(number: int) -> str:
    """Java's characters of a number of 32 bits, which need not be a code point."""
    above = number - _UNITS
    if above < 0:
        return chr(number)
    return chr((above // 0x400 + 0xD800) & 0xFFFF) + chr(above % 0x400 + 0xDC00)


def _joined_surrogates(text: str) -> str:
    return _SURROGATES.sub(lambda match: _code_point(*match.groups()), text)


def _code_point(high: str | None, low: str | None) -> str:
    return chr(_UNITS + (ord(high) - 0xD800) * 0x400 + ord(low) - 0xDC00) if high and low else "?"
