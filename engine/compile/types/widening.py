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


def widest_type(types: Iterable[str | None]) -> str | None:
    result: str | None = "void"
    for type_ in types:
        result = wider_type(result, type_)
    return result


@lru_cache(maxsize=4096)
def wider_type(left_type: str | None, right_type: str | None) -> str | None:
    """The type of what holds values of both (CASE, coalesce, UNION); None if unknown, or there is none."""
    if left_type == right_type or left_type is None or right_type is None:
        return left_type if left_type == right_type else None
    if "void" in {left_type, right_type}:
        return right_type if left_type == "void" else left_type
    if "string" in {left_type, right_type}:
        return _with_string(right_type if left_type == "string" else left_type)
    if is_numeric(left_type) and is_numeric(right_type):
        return _wider_number(left_type, right_type)
    return _wider_time(left_type, right_type) or _wider_nested(left_type, right_type)


def _wider_time(left_type: str, right_type: str) -> str | None:
    if left_type in _TIMES and right_type in _TIMES:
        return max(left_type, right_type, key=_TIMES.index)
    if left_type.startswith("interval") and right_type.startswith("interval"):
        return interval(*_ends(left_type), *_ends(right_type))
    return None


def _with_string(type_: str) -> str | None:
    if type_ in INTEGERS:
        return "bigint"
    if is_numeric(type_):
        return "double"
    return None if type_.startswith(_NO_STRING) else type_


def _wider_number(left_type: str, right_type: str) -> str:
    if "decimal" in left_type or "decimal" in right_type:
        if left_type in _FLOATS or right_type in _FLOATS:
            return "double"
        (p1, s1), (p2, s2) = digits(left_type), digits(right_type)
        scale = max(s1, s2)
        return _bounded_decimal(max(p1 - s1, p2 - s2) + scale, scale)
    result = max(left_type, right_type, key=_ORDER.index)
    return "double" if result == "float" else result


def _wider_nested(left_type: str, right_type: str) -> str | None:
    if left_type.startswith("array<") and right_type.startswith("array<"):
        return spark_types.array(wider_type(spark_types.element(left_type), spark_types.element(right_type)))
    if left_type.startswith("map<") and right_type.startswith("map<"):
        keys, values = zip(spark_types.entry(left_type), spark_types.entry(right_type), strict=True)
        return spark_types.map_of(wider_type(*keys), wider_type(*values))
    ours, theirs = spark_types.fields(left_type), spark_types.fields(right_type)
    if not ours or not theirs or [n.lower() for n, _ in ours] != [n.lower() for n, _ in theirs]:
        return None
    return spark_types.struct([(name, wider_type(a, b)) for (name, a), (_, b) in zip(ours, theirs, strict=True)])


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
    if type_ in INTEGERS:
        return INTEGERS[type_], 0
    precision, scale = re.findall(r"\d+", type_)
    return int(precision), int(scale)


def _bounded_decimal(precision: int, scale: int) -> str:
    """Digits before the point stay (DecimalType.boundedPreferIntegralDigits)."""
    if precision <= _LIMIT:
        return f"decimal({precision},{scale})"
    return f"decimal({_LIMIT},{max(_LIMIT - (precision - scale), 0)})"


def _adjusted_decimal(precision: int, scale: int) -> str:
    """Digits before the point are worth more than those behind it."""
    if precision <= _LIMIT:
        return f"decimal({precision},{scale})"
    new_scale = max(_LIMIT - (precision - scale), min(scale, _KEPT_SCALE))
    return f"decimal({_LIMIT},{new_scale})"


def _plus(p1: int, s1: int, p2: int, s2: int) -> str:
    scale = max(s1, s2)
    return _adjusted_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _times(p1: int, s1: int, p2: int, s2: int) -> str:
    return _adjusted_decimal(p1 + p2 + 1, s1 + s2)


def _divided_decimal(p1: int, s1: int, p2: int, s2: int) -> str:
    scale = max(_KEPT_SCALE, s1 + p2 + 1)
    return _adjusted_decimal(p1 - s1 + s2 + scale, scale)


def _rest(p1: int, s1: int, p2: int, s2: int) -> str:
    scale = max(s1, s2)
    return _adjusted_decimal(min(p1 - s1, p2 - s2) + scale, scale)


_DECIMAL: dict[str, Callable[[int, int, int, int], str]] = {
    "+": _plus, "-": _plus, "*": _times, "/": _divided_decimal, "%": _rest,
}  # fmt: skip


@lru_cache(maxsize=4096)
def arithmetic(sign: str, left_type: str | None, right_type: str | None) -> str | None:
    """The type of `left sign right` for + - * / % and div; None if unknown."""
    if sign == "div":
        return "bigint"
    if left_type is None or right_type is None:
        return None
    if "void" in {left_type, right_type}:
        left_type = right_type = right_type if left_type == "void" else left_type
    if is_numeric(left_type) and is_numeric(right_type):
        return _of_numbers(sign, left_type, right_type)
    if "string" in {left_type, right_type} and (is_numeric(left_type) or is_numeric(right_type)):
        return "double" if sign == "/" else wider_type(left_type, right_type)
    return _with_time(sign, left_type, right_type)


def _of_numbers(sign: str, left_type: str, right_type: str) -> str:
    exact = "decimal" in left_type or "decimal" in right_type
    if exact and left_type not in _FLOATS and right_type not in _FLOATS:
        return _DECIMAL[sign](*digits(left_type), *digits(right_type))
    return "double" if sign == "/" else left_type if left_type == right_type else _wider_number(left_type, right_type)


def _with_time(sign: str, left_type: str, right_type: str) -> str | None:
    if sign == "+" and (right_type in _TIMES or left_type in INTEGERS):
        left_type, right_type = right_type, left_type
    if sign in {"+", "-"}:
        if left_type == "date" and right_type in INTEGERS:
            return "date"
        if left_type in _TIMES and right_type.startswith("interval"):
            whole = _ends(right_type)[-1:] in {("year",), ("month",), ("day",)}
            return left_type if left_type != "date" or whole else "timestamp"
        if sign == "-" and left_type in _TIMES and (right_type in _TIMES or right_type == "string"):
            return (
                "interval day" if left_type == "date" and right_type in {"date", "string"} else "interval day to second"
            )
        if left_type.startswith("interval") and right_type.startswith("interval"):
            return interval(*_ends(left_type), *_ends(right_type))
    if sign == "*" and right_type.startswith("interval"):
        left_type, right_type = right_type, left_type
    if sign in {"*", "/"} and left_type.startswith("interval") and is_numeric(right_type):
        return interval("year", "month") if _ends(left_type)[0] in {"year", "month"} else interval("day", "second")
    return None
