"""Values of unit tests as the JSON that Spark reads with a column's type; errors are reported at the value."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from engine.compile.types import spark_types
from engine.errors import near
from engine.project.yaml_section import UNKNOWN, Section, quote_text

# More than any whole number of Spark has.
_DIGITS = 40
_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_SPECIAL = {"nan": "NaN", "inf": "Infinity", "infinity": "Infinity", "-inf": "-Infinity", "-infinity": "-Infinity"}
_SQL = 'Write the rows as SQL: {sql: "select ..."}.'


def coerce_value(part: Section, type_: str | None) -> Any:  # noqa: PLR0911 - one for each kind of type
    """The value of a column or field, as JSON has it; None for one that does not fit, which is reported."""
    if part.value is None or part.value is UNKNOWN:
        return None
    if type_ is None:
        return _untyped_value(part)
    if (inner := spark_types.element(type_)) is not None:
        return _list(part, inner)
    if (members := spark_types.fields(type_)) is not None:
        return _struct(part, members)
    if type_.startswith("map<"):
        return _map(part, type_)
    if type_ == "variant":
        return part.value
    return _scalar(part, type_)


def natural_type(value: Any) -> str | None:
    """The type of a value whose column has none that is known; None if it has several."""
    if isinstance(value, bool):
        return "boolean"
    return {int: "bigint", float: "double", str: "string"}.get(type(value))


def _untyped_value(part: Section) -> Any:
    if natural_type(part.value) is None:
        part.report("unit-test-value", f"the type of '{part.name}' is unknown until the source is read", _SQL)
        return None
    return part.value


def _report_misfit(part: Section, type_: str, hint: str = "") -> None:
    value = part.value if isinstance(part.value, str) else json.dumps(part.value, default=str)
    part.report("unit-test-value", f"{quote_text(value)} is not a value of type {type_}", hint)


def _scalar(part: Section, type_: str) -> Any:
    if isinstance(part.value, (list, dict)):
        return _report_misfit(part, type_)
    text = str(part.value).lower() if isinstance(part.value, bool) else part.text()
    kind = type_.partition("(")[0].partition(" ")[0]
    if kind not in _READERS:
        return _report_misfit(part, type_, _SQL)
    try:
        return _READERS[kind](text, type_)
    except (ValueError, InvalidOperation) as error:
        return _report_misfit(part, type_, _HINTS.get(kind, str(error) if str(error).endswith(".") else ""))


def _boolean(text: str, _: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


def _whole(text: str, type_: str) -> int:
    number, bits = int(text[: _DIGITS + 1]), _WHOLE[type_]
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"The range is {-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}.")
    return number


def _float(text: str, _: str) -> float | str:
    special = _SPECIAL.get(text.lower())
    return special or float(text)


def _decimal(text: str, type_: str) -> str:
    precision, scale = map(int, re.findall(r"\d+", type_))
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > scale or number.adjusted() >= precision - scale:
        raise ValueError(f"It has {precision - scale} digits before the decimal point and {scale} after it.")
    return f"{number:f}"


def _date(text: str, _: str) -> str:
    return date.fromisoformat(text).isoformat()


def _timestamp(text: str, _: str) -> str:
    return timestamp(text)


def timestamp(text: str) -> str:
    """Return a time in ISO form as UTC without a zone (2013-01-01 10:05:00); raise ValueError if it is none."""
    at = datetime.fromisoformat(text.strip())
    if at.tzinfo is not None:
        try:
            at = at.astimezone(UTC).replace(tzinfo=None)
        except OverflowError as error:
            raise ValueError("In UTC it is outside the years 1 to 9999.") from error
    return at.isoformat(" ")


def _binary(text: str, _: str) -> str:
    return base64.b64encode(text.encode()).decode()


_READERS: dict[str, Callable[[str, str], Any]] = {
    "string": lambda text, _: text,
    "boolean": _boolean,
    **dict.fromkeys(_WHOLE, _whole),
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
    "binary": _binary,
}
_HINTS = {
    "boolean": "Write true or false.",
    "date": "Write it as 2013-01-31.",
    "timestamp": "Write it as 2013-01-31 10:05:00; times are UTC.",
    "timestamp_ntz": "Write it as 2013-01-31 10:05:00.",
}


def _parsed_text(part: Section) -> Section:
    """A list or mapping; in CSV it is as JSON."""
    if isinstance(part.value, str) and part.value.lstrip()[:1] in {"{", "["}:
        try:
            return part.holding(json.loads(part.value))
        except (ValueError, RecursionError):
            return part
    return part


def _list(part: Section, inner: str) -> Any:
    part = _parsed_text(part)
    if not isinstance(part.value, list):
        return _report_misfit(part, spark_types.array(inner) or "array", "Write a list: [1, 2].")
    return [coerce_value(item, inner) for item in part.items()]


def _struct(part: Section, members: tuple[tuple[str, str], ...]) -> Any:
    part = _parsed_text(part)
    if not isinstance(part.value, dict):
        return _report_misfit(part, "struct", "Write a mapping of its fields: {a: 1, b: x}.")
    by_name = {name.lower(): (name, type_) for name, type_ in members}
    fields: dict[str, Any] = {}
    for key, item in part.mapping():
        if key.lower() not in by_name:
            hint = near(key, [name for name, _ in members])
            item.report("unknown-column", f"'{part.name}' has no field '{key}'", hint, at_key=True)
            continue
        name, type_ = by_name[key.lower()]
        fields[name] = coerce_value(item, type_)
    return fields


def _map(part: Section, type_: str) -> Any:
    part = _parsed_text(part)
    key_type, value_type = spark_types.entry(type_)
    if key_type != "string":
        return _report_misfit(part, type_, _SQL)
    if not isinstance(part.value, dict):
        return _report_misfit(part, type_, "Write a mapping: {a: 1}.")
    return {key: coerce_value(item, value_type) for key, item in part.mapping()}


def fit_row(item: Section, columns: Mapping[str, tuple[str, str | None]] | None, owner: str) -> dict[str, Any]:
    """A row by declared names, found whatever their letter case; `columns` None: they are not known."""
    row: dict[str, Any] = {}
    for key, part in item.mapping():
        if columns is not None and key.lower() not in columns:
            hint = near(key, [name for name, _ in columns.values()])
            part.report("unknown-column", f"{owner} has no column '{key}'", hint, at_key=True)
            continue
        name, type_ = columns[key.lower()] if columns is not None else (key, None)
        row[name] = coerce_value(part, type_)
    return row
