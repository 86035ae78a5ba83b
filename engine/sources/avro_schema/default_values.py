"""Defaults of a reader's fields in Avro's binary form."""

from __future__ import annotations

import json
import struct
from typing import Any

from engine.sources.avro_schema.avro_types import (  # fmt: skip
    Array,
    AvroError,
    AvroUnion,
    Enum,
    Field,
    Fixed,
    Map,
    Path,
    Primitive,
    Record,
    Schema,
    Type,
)
from engine.sources.avro_schema.binary_encoding import write_long

_SHOWN = 100
_RANGES = {"int": 31, "long": 63}


def default_bytes(schema: Schema, field: Field, path: Path = ()) -> bytes:
    """A field's default as a value of its type. Raises AvroError: it is none; `path` leads to the field."""
    try:
        return _encoded(schema, field.type, field.default[0])
    except (ValueError, OverflowError, RecursionError) as error:
        text = json.dumps(field.default[0], ensure_ascii=False)
        short_text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."
        raise AvroError(
            f"the default of '{field.name}' does not fit its type: {short_text}", (*path, "default")
        ) from error


def _encoded(schema: Schema, type_: Type, data: Any) -> bytes:
    followed_type = schema.follow(type_)
    if isinstance(followed_type, AvroUnion):
        return _of_union(schema, followed_type, data)
    if isinstance(followed_type, Record):
        return b"".join(_of_field(schema, field, _mapping(data)) for field in followed_type.fields)
    if isinstance(followed_type, Array):
        if not isinstance(data, list):
            raise ValueError  # noqa: TRY004 - all faults of defaults are one
        return _blocks([_encoded(schema, followed_type.items, item) for item in data])
    if isinstance(followed_type, Map):
        items = _mapping(data).items()
        return _blocks([_sized(key.encode()) + _encoded(schema, followed_type.values, item) for key, item in items])
    return _of_name(followed_type, data) if isinstance(followed_type, Enum | Fixed) else _primitive(followed_type, data)


def _of_name(named_type: Enum | Fixed, data: Any) -> bytes:
    if isinstance(named_type, Enum):
        return write_long(named_type.symbols.index(data))
    raw = _text(data).encode("latin-1")
    if len(raw) != named_type.size:
        raise ValueError
    return raw


def _of_union(schema: Schema, union: AvroUnion, data: Any) -> bytes:
    for index, branch in enumerate(union.branches):
        try:
            return write_long(index) + _encoded(schema, branch, data)
        except ValueError:
            continue
    raise ValueError


def _of_field(schema: Schema, field: Field, data: dict[str, Any]) -> bytes:
    if field.name in data:
        return _encoded(schema, field.type, data[field.name])
    if not field.default:
        raise ValueError
    return _encoded(schema, field.type, field.default[0])


def _primitive(type_: Primitive, data: Any) -> bytes:
    kind = type_.kind
    if kind == "null" and data is None:
        return b""
    if kind == "boolean" and isinstance(data, bool):
        return bytes([data])
    if kind == "string":
        return _sized(_text(data).encode())
    if kind == "bytes":
        return _sized(_text(data).encode("latin-1"))
    if isinstance(data, bool):
        raise ValueError  # noqa: TRY004
    if kind in _RANGES and isinstance(data, int) and -(2 ** _RANGES[kind]) <= data < 2 ** _RANGES[kind]:
        return write_long(data)
    if kind in {"float", "double"} and (isinstance(data, int | float) or data in ("NaN", "Infinity", "-Infinity")):
        return struct.pack("<f" if kind == "float" else "<d", float(data))
    raise ValueError


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise ValueError  # noqa: TRY004
    return data


def _mapping(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError  # noqa: TRY004
    return data


def _sized(raw: bytes) -> bytes:
    return write_long(len(raw)) + raw


def _blocks(items: list[bytes]) -> bytes:
    return (write_long(len(items)) if items else b"") + b"".join(items) + b"\0"
