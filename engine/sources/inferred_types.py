"""The types of columns that were inferred from a sample, as far as each value comes back as it was written.

Spark infers what a text can be read as (measured on 4.1.4): `0042` and `+1` as int, `1e5` as double, `TRUE` as boolean,
"94107" in JSON as a timestamp: two texts become one value, and keys merge. So every text must have the type's one form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, cast

from engine import local_paths
from engine.errors import RunError
from engine.relations import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_WHOLE: Final = "-?(0|[1-9][0-9]*)"
# Without a zero at the end, so that no two of them are one number.
_FRACTION: Final = "-?(0|[1-9][0-9]*)[.][0-9]{0,17}[1-9]"
_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = f"{_DAY}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?"
_FORMS: Final = {
    **dict.fromkeys(("int", "bigint", "decimal"), _WHOLE),
    "double": f"{_WHOLE}|{_FRACTION}",
    "boolean": "true|false",
    "date": _DAY,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _TIME),
}
# A string of JSON is inferred as a time; a number of JSON is one, however it is written, unless it has too many digits.
_OF_JSON: Final = ("timestamp", "timestamp_ntz", "double")
_MOST_DIGITS: Final = 38
# Room for values that the sample does not have.
_DIGITS: Final = 18
_ITEM: Final = "[]"

Path = tuple[str, ...]


def fit_types(texts: DataFrame, inferred: StructType, *, json: bool = False) -> StructType:
    """Return the inferred columns, with strings where values would not come back as they were written."""
    leaves = {path: type_ for path, type_ in _leaves(inferred, ()) if _is_checked(type_, json=json)}
    if not leaves:
        return inferred
    checks = [_each(path, type_, json=json) for path, type_ in leaves.items()]
    checks += [_digits(path) for path in leaves] if not json else []
    row = texts.selectExpr(*(f"{sql} as f{i}" for i, sql in enumerate(checks))).collect()[0]
    digits = row[len(leaves) :] or [None] * len(leaves)
    fitting_types = {
        path: _fitting_type(*facts) for path, *facts in zip(leaves, leaves.values(), row, digits, strict=False)
    }
    fitted: Any = _fitted(inferred, fitting_types, ())
    return cast("StructType", fitted)


def of_texts(texts: Iterable[str | None]) -> DataType:
    from pyspark.sql.types import DataType, StringType

    written = [text for text in texts if text is not None]
    for name, fits in _OF_TEXTS.items():
        if written and all(re.fullmatch(_FORMS[name], text) and fits(text) for text in written):
            return DataType.fromDDL(name)
    return StringType()


def _is_whole(text: str, bits: int) -> bool:
    return text != "-0" and -(1 << bits) <= int(text) < 1 << bits


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


_OF_TEXTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "int": lambda text: _is_whole(text, 31),
    "bigint": lambda text: _is_whole(text, 63),
    "date": _is_day,
}


def as_strings(type_: DataType) -> DataType:
    return _fitted(type_, None, ())


def _leaves(type_: DataType, path: Path) -> Iterator[tuple[Path, DataType]]:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(type_, StructType):
        for field in type_.fields:
            yield from _leaves(field.dataType, (*path, field.name))
    elif isinstance(type_, ArrayType):
        yield from _leaves(type_.elementType, (*path, _ITEM))
    else:
        yield path, type_


def _is_checked(type_: DataType, *, json: bool) -> bool:
    name = type_.simpleString().partition("(")[0]
    return name in (_OF_JSON if json else _FORMS)


def _each(path: Path, type_: DataType, *, json: bool) -> str:
    """SQL: whether each text at a path comes back; NULL if there is none."""
    name = type_.simpleString().partition("(")[0]
    rules = [] if json and name == "double" else [f"@ rlike '^({_FORMS[name]})$' and @ <> '-0'"]
    if name == "double":
        decimal = f"decimal({_MOST_DIGITS}, {_DIGITS})"
        same = f"try_cast(@ as {decimal}) = try_cast(try_cast(@ as double) as {decimal})"
        rules.append(f"coalesce({same}, {str(json).lower()})")
    return f"bool_and({_all(path, ' and '.join(rules))})"


def _all(path: Path, rule: str, at: str = "") -> str:
    """SQL: whether a rule, in which `@` is the text, holds for all texts at a path."""
    if not path:
        return f"({at} is null or ({rule.replace('@', at)}))"
    step, *rest = path
    if step == _ITEM:
        item = f"x{len(rest)}"
        return f"coalesce(forall({at}, {item} -> {_all(tuple(rest), rule, item)}), true)"
    return _all(tuple(rest), rule, f"{at}.{quoted(step)}" if at else quoted(step))


def _digits(path: Path) -> str:
    """SQL: the digits before and behind the point, if all numbers have as many behind it, and at least one."""
    column = quoted(path[0])
    before, behind = (f"length(split_part(ltrim('-', {column}), '.', {part}))" for part in (1, 2))
    right = f"{column} rlike '^-?(0|[1-9][0-9]*)[.][0-9]+$' and not {column} rlike '^-0[.]0+$'"
    same = f"bool_and({right}) and min({behind}) = max({behind})"
    return f"if({same}, array(max({before}), max({behind})), null)"


def _fitting_type(inferred: DataType, comes_back: bool | None, digits: Sequence[int] | None) -> DataType:
    from pyspark.sql.types import DecimalType, StringType

    if comes_back is not False:
        return inferred
    if digits and sum(digits) <= _MOST_DIGITS:
        return DecimalType(max(_DIGITS, sum(digits)), digits[1])
    return StringType()


def _fitted(type_: DataType, fitting_types: Mapping[Path, DataType] | None, path: Path) -> DataType:
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    if isinstance(type_, StructType):
        inner = [(field.name, _fitted(field.dataType, fitting_types, (*path, field.name))) for field in type_.fields]
        return StructType([StructField(name, fitted) for name, fitted in inner])
    if isinstance(type_, ArrayType):
        return ArrayType(_fitted(type_.elementType, fitting_types, (*path, _ITEM)))
    return StringType() if fitting_types is None else fitting_types.get(path, type_)


def no_arrays(lines: DataFrame, source: str) -> None:
    """Check that no record is an array: Spark infers columns from its items, and a build reads objects.

    Raises RunError: `source-unreadable`.
    """
    if arrays := lines.where(r"value rlike '^\\s*\\['").select("place").take(1):
        where = local_paths.decoded(arrays[0][0])
        message = f"'{source}' cannot be read: {where} is a JSON array, or contains arrays in its lines"
        hint = "Write one object per line, without brackets and commas around them: jq -c '.[]' x.json > y.json"
        raise RunError("source-unreadable", message, hint)
