"""Which type a column has in PostgreSQL, and which types of an existing table can hold it without loss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PLAIN: Final = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}
_NESTED: Final = ("struct<", "array<", "map<")
_JSON: Final = "jsonb"
_TEXTS: Final = ("text", "character varying", "citext", "uuid", "json", "jsonb")
_WHOLE: Final = ("smallint", "integer", "bigint")
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_NUMERIC: Final = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_LENGTH: Final = re.compile(r"\(\d+\)")
# Types inside a struct, array or map that JSON has no form for.
_UNNAMED: Final = re.compile(r"\b(?:variant|void|interval\b[^,>]*|geometry|geography)")
_DIGITS: Final = {"smallint": 5, "integer": 10, "bigint": 19}


def postgres_type(spark_type: str) -> str | None:
    """Return the type of a created column; None: PostgreSQL cannot hold the type."""
    if (simple_type := _PLAIN.get(spark_type)) is not None:
        return simple_type
    if (decimal := _DECIMAL.fullmatch(spark_type)) is not None:
        return f"numeric({decimal[1]},{decimal[2]})"
    if spark_type.startswith(_NESTED) and not _UNNAMED.search(spark_type):
        return _JSON
    return None


def holds(existing: str, spark_type: str) -> bool:
    """Whether a column of an existing table holds each value of a type; `existing` is as format_type() prints it."""
    return any(_matches(existing, allowed) for allowed in _allowed(spark_type))


def _allowed(spark_type: str) -> Iterator[str]:
    created_type = postgres_type(spark_type)
    if created_type is None:
        return
    yield created_type
    if created_type in _WHOLE:
        yield from _WHOLE[_WHOLE.index(created_type) :]
        yield f"numeric({_DIGITS[created_type]},0)"
    elif spark_type == "float":
        yield "double precision"
    elif spark_type == "string":
        yield from _TEXTS
    elif created_type == _JSON:
        yield from ("json", "text")


def _matches(existing: str, allowed: str) -> bool:
    allowed_number, present = _NUMERIC.fullmatch(allowed), _NUMERIC.fullmatch(existing)
    if allowed_number is not None and present is not None:
        if present[1] is None:
            return True
        precision, scale = int(allowed_number[1]), int(allowed_number[2])
        return int(present[2]) >= scale and int(present[1]) - int(present[2]) >= precision - scale
    # A text that is too long for `character varying(10)` is rejected by the database, not cut.
    return existing == allowed or (allowed == "character varying" and _LENGTH.sub("", existing) == allowed)
