"""Which type Spark gives two types that meet: its rules of ANSI mode, Spark's default."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from engine.compile.types import spark_types

INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_ORDER = ("tinyint", "smallint", "int", "bigint", "float", "double")
_FLOATS = ("float", "double")
_TIMES = ("date", "timestamp_ntz", "timestamp")
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_NO_STRING = ("array", "map", "struct", "interval", "variant", "void")
_LIMIT = 38
_KEPT_SCALE = 6


def is_numeric(type_: str) -> bool:
    return type_ in _ORDER or type_.startswith("decimal")


def widest(types: Iterable[str | None]) -> str | None:
    result: str | None = "void"
    for type_ in types:
        result = wider(result, type_)
    return result


@lru_cache(maxsize=4096)
def wider(left: str | None, right: str | None) -> str | None:
    """The type of what holds values of both (CASE, coalesce, UNION); None if unknown, or there is none."""
    if left == right or left is None or right is None:
        return left if left == right else None
    if "void" in {left, right}:
        return right if left == "void" else left
    if "string" in {left, right}:
        return _with_string(right if left == "string" else left)
    if is_numeric(left) and is_numeric(right):
        return _wider_number(left, right)
    return _wider_time(left, right) or _wider_nested(left, right)


def _wider_time(left: str, right: str) -> str | None:
    if left in _TIMES and right in _TIMES:
        return max(left, right, key=_TIMES.index)
    if left.startswith("interval") and right.startswith("interval"):
        return interval(*_ends(left), *_ends(right))
    return None


def _with_string(type_: str) -> str | None:
    if type_ in INTEGERS:
        return "bigint"
    if is_numeric(type_):
        return "double"
    return None if type_.startswith(_NO_STRING) else type_


def _wider_number(left: str, right: str) -> str:
    if "decimal" in left or "decimal" in right:
        if left in _FLOATS or right in _FLOATS:
            return "double"
        (p1, s1), (p2, s2) = digits(left), digits(right)
        scale = max(s1, s2)
        return _bounded(max(p1 - s1, p2 - s2) + scale, scale)
    result = max(left, right, key=_ORDER.index)
    return "double" if result == "float" else result


def _wider_nested(left: str, right: str) -> str | None:
    if left.startswith("array<") and right.startswith("array<"):
        return spark_types.array(wider(spark_types.element(left), spark_types.element(right)))
    if left.startswith("map<") and right.startswith("map<"):
        keys, values = zip(spark_types.entry(left), spark_types.entry(right), strict=True)
        return spark_types.map_of(wider(*keys), wider(*values))
    ours, theirs = spark_types.fields(left), spark_types.fields(right)
    if not ours or not theirs or [n.lower() for n, _ in ours] != [n.lower() for n, _ in theirs]:
        return None
    return spark_types.struct([(name, wider(a, b)) for (name, a), (_, b) in zip(ours, theirs, strict=True)])


def _ends(type_: str) -> tuple[str, ...]:
    return tuple(word for word in type_.split() if word in _UNITS)


def interval(*units: str) -> str | None:
    """The interval that holds all these units; None if months would be mixed with days."""
    places = sorted(_UNITS.index(unit) for unit in units)
    if not places or (places[0] <= 1 < places[-1]):
        return None
    first, last = _UNITS[places[0]], _UNITS[places[-1]]
    return f"interval {first}" if first == last else f"interval {first} to {last}"


def digits(type_: str) -> tuple[int, int]:
    """Precision and scale of a number that is not floating."""
    if type_ in INTEGERS:
        return INTEGERS[type_], 0
    precision, scale = re.findall(r"\d+", type_)
    return int(precision), int(scale)


def _bounded(precision: int, scale: int) -> str:
    """Digits before the point stay (DecimalType.boundedPreferIntegralDigits)."""
    if precision <= _LIMIT:
        return f"decimal({precision},{scale})"
    return f"decimal({_LIMIT},{max(_LIMIT - (precision - scale), 0)})"


def _adjusted(precision: int, scale: int) -> str:
    """Digits before the point are worth more than those behind it."""
    if precision <= _LIMIT:
        return f"decimal({precision},{scale})"
    kept = max(_LIMIT - (precision - scale), min(scale, _KEPT_SCALE))
    return f"decimal({_LIMIT},{kept})"


def _plus(p1: int, s1: int, p2: int, s2: int) -> str:
    scale = max(s1, s2)
    return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _times(p1: int, s1: int, p2: int, s2: int) -> str:
    return _adjusted(p1 + p2 + 1, s1 + s2)


def _divided(p1: int, s1: int, p2: int, s2: int) -> str:
    scale = max(_KEPT_SCALE, s1 + p2 + 1)
    return _adjusted(p1 - s1 + s2 + scale, scale)


def _rest(p1: int, s1: int, p2: int, s2: int) -> str:
    scale = max(s1, s2)
    return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)


_DECIMAL: dict[str, Callable[[int, int, int, int], str]] = {
    "+": _plus, "-": _plus, "*": _times, "/": _divided, "%": _rest,
}  # fmt: skip


@lru_cache(maxsize=4096)
def arithmetic(sign: str, left: str | None, right: str | None) -> str | None:
    """The type of `left sign right` for + - * / % and div; None if unknown."""
    if sign == "div":
        return "bigint"
    if left is None or right is None:
        return None
    if "void" in {left, right}:
        left = right = right if left == "void" else left
    if is_numeric(left) and is_numeric(right):
        return _of_numbers(sign, left, right)
    if "string" in {left, right} and (is_numeric(left) or is_numeric(right)):
        return "double" if sign == "/" else wider(left, right)
    return _with_time(sign, left, right)


def _of_numbers(sign: str, left: str, right: str) -> str:
    exact = "decimal" in left or "decimal" in right
    if exact and left not in _FLOATS and right not in _FLOATS:
        return _DECIMAL[sign](*digits(left), *digits(right))
    return "double" if sign == "/" else left if left == right else _wider_number(left, right)


def _with_time(sign: str, left: str, right: str) -> str | None:
    if sign == "+" and (right in _TIMES or left in INTEGERS):
        left, right = right, left
    if sign in {"+", "-"}:
        if left == "date" and right in INTEGERS:
            return "date"
        if left in _TIMES and right.startswith("interval"):
            whole = _ends(right)[-1:] in {("year",), ("month",), ("day",)}
            return left if left != "date" or whole else "timestamp"
        if sign == "-" and left in _TIMES and (right in _TIMES or right == "string"):
            return "interval day" if left == "date" and right in {"date", "string"} else "interval day to second"
        if left.startswith("interval") and right.startswith("interval"):
            return interval(*_ends(left), *_ends(right))
    if sign == "*" and right.startswith("interval"):
        left, right = right, left
    if sign in {"*", "/"} and left.startswith("interval") and is_numeric(right):
        return interval("year", "month") if _ends(left)[0] in {"year", "month"} else interval("day", "second")
    return None
