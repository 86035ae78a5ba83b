"""Patterns of times of other warehouses as Spark's, which are Java's."""

from __future__ import annotations

import re
from typing import Final

# strftime: BigQuery, DuckDB.
_PERCENT: Final = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "H": "HH", "I": "hh", "M": "mm", "S": "ss", "p": "a", "b": "MMM",
    "h": "MMM", "B": "MMMM", "a": "EEE", "A": "EEEE", "j": "DDD", "F": "yyyy-MM-dd", "T": "HH:mm:ss", "f": "SSSSSS",
    "z": "Z", "R": "HH:mm", "D": "MM/dd/yy", "%": "'%'",
}  # fmt: skip
# to_char: Postgres, Redshift, Snowflake, Oracle. What they pad with spaces (Month, Day) is not among them.
_WORDS: Final = {
    "YYYY": "yyyy", "YY": "yy", "MM": "MM", "DD": "dd", "HH24": "HH", "HH12": "hh", "HH": "hh", "MI": "mm", "SS": "ss",
    "MON": "MMM", "DY": "EEE", "AM": "a", "PM": "a", "FF3": "SSS", "FF6": "SSSSSS", "FF": "SSSSSSSSS", "MS": "SSS",
    "US": "SSSSSS", "DDD": "DDD", "Q": "Q", "T": "'T'", "FMMM": "M", "FMDD": "d",
}  # fmt: skip
_STRFTIME = re.compile(r"%E(\d)S|%E\*S|%-([mdHI])|%(.)|([A-Za-z]+)|(')|(.)", re.DOTALL)
_TO_CHAR = re.compile(
    rf"({'|'.join(sorted(_WORDS, key=len, reverse=True))})|\"([^\"]*)\"|([A-Za-z]+)|(')|(.)", re.IGNORECASE | re.DOTALL
)
# A single letter reads one digit or two, as strptime does; without a sign in between the width must be certain.
_NARROW: Final = {"MM": "M", "dd": "d", "HH": "H", "hh": "h"}


def from_strftime(pattern: str, *, reads: bool = False) -> str | None:
    """A pattern of strftime or strptime in Spark's letters; None if a part has no counterpart.

    Args:
        pattern: as `%Y-%m-%d`.
        reads: it is for reading a text, where one digit is enough for `%m`, `%d` and `%H`.
    """
    made: list[str] = []
    for match in _STRFTIME.finditer(pattern):
        fraction, narrow, letter, word, quote, sign = match.groups()
        if match[0].startswith("%E"):
            part = f"ss.{'S' * int(fraction)}" if fraction and fraction != "0" else None
        elif narrow:
            part = _NARROW.get(_PERCENT[narrow])
        elif letter:
            part = _PERCENT.get(letter)
        else:
            part = f"'{word}'" if word else "''" if quote else sign
        if part is None:
            return None
        made.append(part)
    return _joined(made, reads=reads)


def from_to_char(pattern: str, *, reads: bool = False) -> str | None:
    """A pattern of to_char or to_date in Spark's letters; None if it is one of numbers, or has no counterpart."""
    made: list[str] = []
    found = False
    for match in _TO_CHAR.finditer(pattern):
        known, quoted, word, quote, sign = match.groups()
        if word or (sign and sign in "9#"):
            return None
        found = found or bool(known)
        made.append(
            _WORDS[known.upper()] if known else f"'{quoted}'" if quoted is not None else "''" if quote else sign
        )
    return _joined(made, reads=reads) if found else None


def _joined(parts: list[str], *, reads: bool) -> str:
    if not reads:
        return "".join(parts)
    return "".join(
        _NARROW[part] if part in _NARROW and not _beside_digits(parts, at) else part for at, part in enumerate(parts)
    )


def _beside_digits(parts: list[str], at: int) -> bool:
    near = parts[at - 1 : at] if at else []
    return any(part[0].isalpha() and part not in ("a", "EEE", "EEEE") for part in (*near, *parts[at + 1 : at + 2]))
