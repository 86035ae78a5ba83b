"""Types of warehouses in Spark's words."""

from __future__ import annotations

import re

_TYPES = {
    "text": "string", "varchar": "string", "char": "string", "character varying": "string", "nvarchar": "string",
    "string": "string", "uuid": "string", "json": "string", "character": "string", "bpchar": "string",
    "int": "int", "integer": "int", "int4": "int", "int32": "int", "smallint": "int", "int2": "int", "tinyint": "int",
    "bigint": "bigint", "int8": "bigint", "int64": "bigint", "long": "bigint", "hugeint": "decimal(38, 0)",
    "float": "double", "float8": "double", "float64": "double", "double": "double", "double precision": "double",
    "real": "float", "float4": "float", "number": "decimal(38, 0)", "numeric": "decimal(38, 9)",
    "decimal": "decimal(18, 3)", "bool": "boolean", "boolean": "boolean", "date": "date",
    "timestamp": "timestamp", "timestamptz": "timestamp", "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp_ntz", "timestamp_ntz": "timestamp_ntz", "timestamp_ltz": "timestamp",
    "timestamp_tz": "timestamp", "datetime": "timestamp_ntz", "bytes": "binary", "bytea": "binary", "blob": "binary",
    "binary": "binary", "varbinary": "binary", "variant": "variant",
}  # fmt: skip
_SIZED = re.compile(r"([a-z]++(?: ++[a-z]++)*)\s*+\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)")
_DECIMALS = ("decimal", "numeric", "number")


def spark_type(text: str) -> str:
    """Return a warehouse's type as Spark has it; an unknown one stays as it is, on one line."""
    plain = " ".join(text.casefold().split())[:200]
    if (sized := _SIZED.fullmatch(plain)) is not None:
        if sized[1] in _DECIMALS:
            return f"decimal({sized[2]}, {sized[3] or 0})"
        plain = sized[1]
    return _TYPES.get(plain, plain)
