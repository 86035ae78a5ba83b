"""The units of `date_trunc` and `trunc` (`DateTimeUtils.parseTruncLevel`): any other text gives NULL without error."""

from __future__ import annotations

from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.errors import near

_LONG = ("week", "month", "mon", "mm", "quarter", "year", "yyyy", "yy")
_SHORT = ("microsecond", "millisecond", "second", "minute", "hour", "day", "dd")
# By function: the place of the unit among its arguments, and what it may be.
UNITS = {"date_trunc": (0, (*_SHORT, *_LONG)), "trunc": (1, _LONG)}
_SHOWN = {
    "y": "year", "yr": "year", "years": "year", "q": "quarter", "qtr": "quarter", "m": "month", "months": "month",
    "w": "week", "weeks": "week", "d": "day", "days": "day", "h": "hour", "hr": "hour", "hours": "hour",
    "min": "minute", "minutes": "minute", "s": "second", "sec": "second", "seconds": "second", "ms": "millisecond",
    "us": "microsecond",
}  # fmt: skip


def unknown_unit(name: str, text: str) -> tuple[str, str] | None:
    """Return the unit of a call that Spark does not know, and what to write; None: it is known, or no literal."""
    place, units = UNITS[name]
    unit = _literal(text, place)
    if unit is None or unit.lower() in units:
        return None
    if name == "trunc" and (unit_name := _SHOWN.get(unit.lower(), unit.lower())) in _SHORT:
        return unit, f"trunc() gives dates: write date_trunc('{unit_name}', ..)."
    unit_name = _SHOWN.get(unit.lower(), "")
    return unit, f"Write '{unit_name}'." if unit_name else near(unit.lower(), units)


def _literal(text: str, place: int) -> str | None:
    """The argument at a place of the call with which a text begins, if it is one string."""
    depth, at = 0, 0
    argument = []
    for token in tokenize(text):
        if token.token_type is TokenType.R_PAREN and depth == 1:
            break
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.COMMA and depth == 1:
            at += 1
        elif depth and at == place and not (token.token_type is TokenType.L_PAREN and depth == 1):
            argument.append(token)
    return argument[0].text if len(argument) == 1 and argument[0].token_type is TokenType.STRING else None
