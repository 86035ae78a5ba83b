"""Lengths of time as Spark writes them: '10 minutes', INTERVAL 10 MINUTES, INTERVAL '5' MINUTE."""

from __future__ import annotations

import re

from sqlglot import exp

from engine.times import SECONDS

_SECONDS = {"microsecond": 1e-6, "millisecond": 1e-3, **SECONDS}
_MONTHS = {"month", "year", "quarter"}
_SPAN_UNITS = ("day", "hour", "minute", "second")
_MONTH_UNITS = ("year", "month")
_PART = re.compile(r"(?<!\d)([+-]?\d++(?:\.\d++)?)\s*+([a-z]+)")


def seconds(node: exp.Expr) -> float | None:
    """The length of a literal; None if it is not a literal, or its months have no fixed length."""
    parts = _parts(node)
    if parts is None or any(unit in _MONTHS for _, unit in parts):
        return None
    return sum(number * _SECONDS[unit] for number, unit in parts)


def has_months(node: exp.Expr) -> bool:
    """Whether a literal counts months or years."""
    return any(unit in _MONTHS for _, unit in _parts(node) or ())


def is_no_interval(node: exp.Expr) -> bool:
    """Whether a literal text certainly is not a length: it has a word that is not a unit, or no number."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        return False
    words = re.findall(r"[a-z]+", node.name.lower())
    are_units = all(_unit(word) or word in {"interval", "nanosecond", "nanoseconds"} for word in words)
    return not are_units or not words or not re.search(r"\d", node.name)


def adds_dates(node: exp.Expr) -> bool:
    """Whether a part of a query holds dateadd() or its like."""
    return node.find(exp.TimestampAdd, exp.TsOrDsAdd, exp.DateAdd) is not None


def is_interval(node: exp.Expr) -> bool:
    """Whether a node is an interval that can be read."""
    return isinstance(node, exp.Interval) and _parts(node) is not None


def _parts(node: exp.Expr) -> list[tuple[float, str]] | None:
    if isinstance(node, exp.Interval):
        value, unit = node.this, node.args.get("unit")
        sign = -1.0 if isinstance(value, exp.Neg) else 1.0
        value = value.this if isinstance(value, exp.Neg) else value
        if not isinstance(value, exp.Literal):
            return None
        if unit is None:
            return _text(value.this)
        if isinstance(unit, exp.IntervalSpan):
            return _span(value.this, unit.this.name, unit.expression.name, sign)
        name = _unit(unit.name)
        try:
            return [(sign * float(value.this), name)] if name else None
        except ValueError:
            return None
    return _text(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _span(text: str, first: str, last: str, sign: float) -> list[tuple[float, str]] | None:
    """Read `'1 02:03:04' DAY TO SECOND`: numbers from the first unit to the last."""
    units = [_unit(first), _unit(last)]
    units_of_length = _MONTH_UNITS if units[0] in _MONTH_UNITS else _SPAN_UNITS
    if any(unit not in units_of_length for unit in units):
        return None
    between = units_of_length[units_of_length.index(units[0]) : units_of_length.index(units[1]) + 1]
    text = text.strip()
    sign = -sign if text.startswith("-") else sign
    numbers = re.split(r"[-: ]+", text.lstrip("+-"))
    try:
        return [(sign * float(number), unit) for number, unit in zip(numbers, between, strict=True)]
    except ValueError:
        return None


def _text(text: str) -> list[tuple[float, str]] | None:
    text = text.strip().lower().removeprefix("interval").strip()
    matches = _PART.findall(text)
    if not matches or _PART.sub("", text).strip():
        return None
    parts = [(float(number), _unit(unit)) for number, unit in matches]
    return parts if all(unit for _, unit in parts) else None


def _unit(word: str) -> str:
    word = word.lower()
    name = word[:-1] if word.endswith("s") and word[:-1] in {*_SECONDS, *_MONTHS} else word
    return name if name in _SECONDS or name in _MONTHS else ""
