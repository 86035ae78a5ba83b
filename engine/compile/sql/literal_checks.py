"""Literals that sqlglot reads and Spark does not: their types, their size, the units of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.lexer.tokens import TokenType

Found = tuple[str, str, int]

_T = TokenType
# Types without literals: Spark has those that AstBuilder.visitTypeConstructor lists.
_NOT_BEFORE_STRING: Final = frozenset({
    "ARRAY", "BIGINT", "BINARY", "BOOLEAN", "BYTE", "CHAR", "DEC", "DECIMAL", "DOUBLE", "FLOAT", "INT", "INTEGER",
    "LONG", "MAP", "NUMERIC", "REAL", "SHORT", "SMALLINT", "STRING", "TINYINT", "VARCHAR", "VARIANT",
})  # fmt: skip
_INTEGERS: Final = {_T.TINYINT: 7, _T.SMALLINT: 15, _T.BIGINT: 63}
_LARGEST: Final = {_T.FLOAT: Decimal("3.4028234663852886E+38"), _T.DOUBLE: Decimal("1.7976931348623157E+308")}
_DIGITS: Final = 38
# SqlBaseParser.g4: unitInMultiUnits.
INTERVAL_UNITS: Final = frozenset({
    "NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR",
})  # fmt: skip
# The same: datetimeUnit.
_MOMENT_UNITS: Final = frozenset({
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
})  # fmt: skip
UNITED: Final = {"DATE_ADD", "DATE_DIFF", "DATEADD", "DATEDIFF", "TIMEDIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}
_UNITED_COMMAS: Final = 2
_WORD_LIKE: Final = {_T.VAR}


def number_fault(tokens: Sequence[Token], at: int) -> Found | None:
    """A number that its type cannot hold."""
    token = tokens[at]
    if at and tokens[at - 1].token_type is _T.DOT:
        return "a number behind a dot", "Write a decimal without a suffix, or a name in backquotes.", token.start
    return _unfit(tokens, at)


def _unfit(tokens: Sequence[Token], at: int) -> Found | None:
    token = tokens[at]
    suffixed = at + 2 < len(tokens) and tokens[at + 1].start == token.start
    kind = tokens[at + 2].token_type if suffixed else None
    try:
        number = Decimal(token.text)
    except InvalidOperation:
        return None
    if kind is None:
        kind = _T.DOUBLE if "e" in token.text.lower() else None
    if kind in _INTEGERS:
        negative = at > 0 and tokens[at - 1].token_type is _T.DASH
        if number - negative < 2 ** _INTEGERS[kind]:
            return None
        return _too_large(token, kind.name.lower())
    if kind in _LARGEST:
        return _too_large(token, kind.name.lower()) if number > _LARGEST[kind] else None
    _, digits, exponent = number.as_tuple()
    if isinstance(exponent, int) and max(len(digits) + max(exponent, 0), -exponent) > _DIGITS:
        return f"a number of more than {_DIGITS} digits", "Write a double: 1e40.", token.start
    return None


def _too_large(token: Token, type_: str) -> Found:
    return f"{token.text} is too large for {type_}", "Write a smaller number, or another type.", token.start


def typed_literal(tokens: Sequence[Token], at: int) -> Found | None:
    """A string behind the name of a type that has no literals."""
    before = tokens[at - 1] if at else None
    if before is None or before.text.upper() not in _NOT_BEFORE_STRING or before.end - before.start >= len(before.text):
        return None
    type_ = before.text.lower()
    return f"Spark has no literals of the type {type_}", f"Write cast('{tokens[at].text}' as {type_}).", before.start


def interval_unit(tokens: Sequence[Token], at: int) -> Found | None:
    """The unit of `interval 1 decade`, which is none; `at` is the place of INTERVAL."""
    place = at + 1
    if place < len(tokens) and tokens[place].token_type in {_T.DASH, _T.PLUS}:
        place += 1
    if place >= len(tokens) or tokens[place].token_type not in {_T.NUMBER, _T.STRING}:
        return None
    behind = place + 1
    while behind < len(tokens) and tokens[behind].token_type is _T.STRING:
        behind += 1
    unit = tokens[behind] if behind < len(tokens) else None
    strings = behind - place
    if unit is not None and is_interval_unit(unit):
        return None
    if tokens[place].token_type is _T.STRING and strings == 1:
        # `interval '1 day' x`: the word is an alias (`misread_tokens`).
        return None
    if tokens[place].token_type is _T.STRING:
        return "an interval of several strings", "Write one string: interval '1 day 2 hours'.", tokens[place + 1].start
    if unit is None or unit.token_type not in _WORD_LIKE:
        return None
    hint = "Units are second, minute, hour, day, week, month, year, milliseconds and microseconds."
    return f"an interval has no unit '{unit.text}'", hint, unit.start


def is_interval_unit(token: Token) -> bool:
    """Whether a word is a unit of an interval, in the singular or plural."""
    return token.text.upper() in INTERVAL_UNITS or token.text.upper().removesuffix("S") in INTERVAL_UNITS


def moment_unit(tokens: Sequence[Token], at: int) -> Found | None:
    """The unit of `dateadd(days, 1, day)`, which to Spark is a column; `at` is the place of the function."""
    if at + 3 >= len(tokens) or tokens[at + 1].token_type is not _T.L_PAREN:
        return None
    unit, comma = tokens[at + 2], tokens[at + 3]
    name = tokens[at].text
    word = unit.end - unit.start + 1 == len(unit.text) and unit.text.replace("_", "a").isalnum()
    is_unit = unit.text.upper() in _MOMENT_UNITS or unit.token_type is _T.NULL
    if comma.token_type is not _T.COMMA or not word or is_unit or _commas(tokens, at + 2) != _UNITED_COMMAS:
        return None
    singular = unit.text.upper().removesuffix("S")
    unit_name = singular.lower() if singular in _MOMENT_UNITS else ""
    hint = (
        f"Write {unit_name}."
        if unit_name
        else f"Units are {', '.join(sorted(word.lower() for word in _MOMENT_UNITS))}."
    )
    return f"{name.lower()}() has no unit '{unit.text}'", hint, unit.start


def _commas(tokens: Sequence[Token], at: int) -> int:
    depth = commas = 0
    for token in tokens[at:]:
        depth += (token.token_type is _T.L_PAREN) - (token.token_type is _T.R_PAREN)
        if depth < 0:
            break
        commas += depth == 0 and token.token_type is _T.COMMA
    return commas
