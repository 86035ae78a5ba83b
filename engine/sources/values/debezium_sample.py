"""The declaration of a source of change records, from a sample of them, and what its connector may lose.

Names, types and the key are in the schemas that records carry. Of records without a schema only the kinds of JSON
values are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.relations import quoted

_MOST_DIGITS: Final = 38
_LOGICAL: Final = {
    **dict.fromkeys(("io.debezium.time.Date", "org.apache.kafka.connect.data.Date"), "date"),
    **dict.fromkeys(
        ("io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", "io.debezium.time.NanoTimestamp",
         "org.apache.kafka.connect.data.Timestamp"), "timestamp_ntz"),
    "io.debezium.time.ZonedTimestamp": "timestamp",
    **dict.fromkeys(
        ("io.debezium.time.Time", "io.debezium.time.MicroTime", "io.debezium.time.NanoTime",
         "org.apache.kafka.connect.data.Time", "io.debezium.data.VariableScaleDecimal"), "string"),
}  # fmt: skip
_PLAIN: Final = {
    "boolean": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float",
    "double": "double", "bytes": "binary", "string": "string",
}  # fmt: skip
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_VARIABLE: Final = "io.debezium.data.VariableScaleDecimal"


@dataclass(frozen=True, slots=True)
class ChangeSample:
    """What a sample shows: name and type of the columns, the key, and advice about the connector."""

    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    notes: tuple[str, ...]


def sample_of(records: Iterable[tuple[bytes | None, bytes | None]]) -> ChangeSample | None:
    """What records, each a key and a value, show; None: none of them is the change of a row."""
    columns: dict[str, str] = {}
    fields: dict[str, Mapping[str, Any]] = {}
    key: tuple[str, ...] = ()
    connector, has_truncate, sends_null, has_schema = "", False, False, True
    for raw_key, raw_value in records:
        value, schema = _part(raw_value)
        if not isinstance(value, dict) or not isinstance(value.get("source"), dict):
            continue
        connector = str(value["source"].get("connector", ""))
        has_truncate |= value.get("op") == "t"
        # The converter leaves out the default, "false", where it sends NULL as NULL.
        sends_null |= value["source"].get("snapshot", "") is None
        after = value.get("after")
        if not isinstance(after, dict):
            continue
        key_values, _ = _part(raw_key)
        key = tuple(key_values) if isinstance(key_values, dict) else ()
        rows = {f["field"]: f for f in _fields(schema) if "field" in f}.get("after")
        has_schema = rows is not None
        declared_fields = {str(f["field"]): f for f in _fields(rows) if "field" in f}
        fields |= declared_fields
        columns |= {name: _type(f) for name, f in declared_fields.items()} or {
            n: _type_of_value(v) for n, v in after.items()
        }
    if not columns:
        return None
    notes = _notes(fields, connector, has_truncate=has_truncate, sends_null=sends_null, has_schema=has_schema)
    return ChangeSample(tuple(columns.items()), key, tuple(notes))


def _part(raw: bytes | None) -> tuple[Any, Mapping[str, Any] | None]:
    """The payload of a key or value, and its schema; None where there is none."""
    try:
        document = json.loads(raw) if raw is not None else None
    except (ValueError, RecursionError):
        return None, None
    if isinstance(document, dict) and set(document) == {"schema", "payload"}:
        return document["payload"], document["schema"] if isinstance(document["schema"], dict) else None
    return document, None


def _fields(schema: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    declared_fields = (schema or {}).get("fields")
    return [field for field in declared_fields if isinstance(field, dict)] if isinstance(declared_fields, list) else []


def _type(schema: Mapping[str, Any]) -> str:
    name, kind = schema.get("name"), schema.get("type")
    if name == _DECIMAL:
        return _decimal(schema.get("parameters") or {})
    if name in _LOGICAL:
        return _LOGICAL[name]
    if kind == "array":
        return f"array<{_type(schema.get('items') or {})}>"
    if kind == "map":
        return f"map<string, {_type(schema.get('values') or {})}>"
    if kind == "struct":
        inner = ", ".join(f"{quoted(str(f['field']))}: {_type(f)}" for f in _fields(schema) if "field" in f)
        return f"struct<{inner}>" if inner else "string"
    return _PLAIN.get(str(kind), "string")


def _decimal(parameters: Mapping[str, Any]) -> str:
    scale = int(parameters.get("scale", 0))
    digits = int(parameters.get("connect.decimal.precision", _MOST_DIGITS))
    return f"decimal({digits}, {scale})" if 0 <= scale <= digits <= _MOST_DIGITS else "string"


def _type_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "bigint" if isinstance(value, int) else "double" if isinstance(value, float) else "string"


def _notes(
    fields: Mapping[str, Mapping[str, Any]], connector: str, *, has_truncate: bool, sends_null: bool, has_schema: bool
) -> Iterable[str]:
    if not has_schema:
        yield (
            "The records have no schema, so the types of decimals, dates, times and bytes are unknown. Set "
            "schemas.enable=true on the converters."
        )
    defaults = [name for name, f in fields.items() if f.get("optional") and f.get("default") is not None]
    if defaults and not sends_null:
        yield (
            f"NULL may arrive as the default of {', '.join(defaults)}. Set replace.null.with.default=false on both "
            "converters."
        )
    if not has_truncate:
        yield "By default the connector does not send TRUNCATE. Set skipped.operations=none on it."
    if variable := [name for name, f in fields.items() if f.get("name") == _VARIABLE]:
        yield f"{', '.join(variable)}: the scale differs from row to row. Declare decimal(p, s) if you know it."
    unsigned = [n for n, f in fields.items() if "UNSIGNED" in str(f.get("parameters", "")).upper() and _is_long(f)]
    if unsigned or (connector in {"mysql", "mariadb"} and any(map(_is_long, fields.values()))):
        names = ", ".join(unsigned or [name for name, f in fields.items() if _is_long(f)])
        yield (
            f"{names}: an unsigned bigint above 2^63 arrives as a negative number. Set "
            "bigint.unsigned.handling.mode=precise on the connector."
        )


def _is_long(field: Mapping[str, Any]) -> bool:
    return field.get("type") == "int64" and field.get("name") is None
