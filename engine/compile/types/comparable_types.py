"""Whether two types meet in a comparison, in CASE and its like, in a UNION; the types inside them count."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from engine.compile.types import spark_types
from engine.compile.types.accepted_types import NUMBERS, TIMES, family
from engine.compile.types.widening import digits

Where = Literal["compared", "joined", "united"]
_TEXT_AND = NUMBERS | TIMES | {"boolean", "binary", "string"}


def are_comparable(left_family: str, right_family: str) -> bool:
    if "string" in {left_family, right_family}:
        return {left_family, right_family} <= _TEXT_AND
    return left_family == right_family or {left_family, right_family} <= NUMBERS or {left_family, right_family} <= TIMES


@lru_cache(maxsize=4096)
def have_common_type(left_type: str | None, right_type: str | None, where: Where) -> bool:
    """Whether two types have a common one; what is not known does."""
    ours, theirs = family(left_type), family(right_type)
    if not ours or not theirs or left_type == right_type:
        return True
    if ours != theirs or ours not in {"array", "map", "struct"}:
        return are_comparable(ours, theirs) or (where != "compared" and {ours, theirs} == {"string", "variant"})
    return _same_shape(left_type, right_type) or _insides_meet(left_type, right_type, where)


def _insides_meet(left_type: str | None, right_type: str | None, where: Where) -> bool:
    a, b = spark_types.element(left_type), spark_types.element(right_type)
    if a is not None or b is not None:
        return _parts_meet(a, b, where)
    (key, value), (other, its) = spark_types.entry(left_type), spark_types.entry(right_type)
    if key is not None or other is not None:
        keys = _parts_meet(key, other, where) and ("string" in {key, other}) == (key == other == "string")
        return keys and _parts_meet(value, its, where)
    ours, theirs = spark_types.fields(left_type) or (), spark_types.fields(right_type) or ()
    if len(ours) != len(theirs):
        return False
    same_names = where == "united" or [n.lower() for n, _ in ours] == [n.lower() for n, _ in theirs]
    return same_names and all(_parts_meet(x, y, where) for (_, x), (_, y) in zip(ours, theirs, strict=True))


def _parts_meet(left_type: str | None, right_type: str | None, where: Where) -> bool:
    """The same for a type inside another: a comparison reads no text there as a number, and no decimal as a double."""
    ours, theirs = family(left_type), family(right_type)
    if where == "compared" and ours and theirs and ours != theirs:
        if "decimal" in {ours, theirs}:
            return ours != "float" and theirs != "float" and _wide_enough(left_type, right_type)
        return "string" not in {ours, theirs} and are_comparable(ours, theirs)
    return have_common_type(left_type, right_type, where)


def _wide_enough(left_type: str | None, right_type: str | None) -> bool:
    number, decimal = (right_type, left_type) if family(left_type) == "decimal" else (left_type, right_type)
    if family(number) not in {"small", "bigint"} or decimal is None or number is None:
        return False
    precision, scale = digits(decimal)
    return precision - scale >= digits(number)[0]


def _same_shape(left_type: str | None, right_type: str | None) -> bool:
    """Whether two types differ in the names of fields only."""
    if left_type == right_type or left_type is None or right_type is None:
        return left_type == right_type
    a, b = spark_types.element(left_type), spark_types.element(right_type)
    if a is not None and b is not None:
        return _same_shape(a, b)
    if spark_types.entry(left_type)[0] is not None and spark_types.entry(right_type)[0] is not None:
        return all(
            _same_shape(x, y) for x, y in zip(spark_types.entry(left_type), spark_types.entry(right_type), strict=True)
        )
    ours, theirs = spark_types.fields(left_type), spark_types.fields(right_type)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return False
    return all(_same_shape(x, y) for (_, x), (_, y) in zip(ours, theirs, strict=True))
