"""Types of Iceberg as Spark has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.relations import quoted

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_SPARK_NAMES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
    "unknown": "void",
}

# Of types in the JSON of a table's metadata: the name in the JSON of Spark's types.
_OF_JSON = {
    "boolean": "boolean", "int": "integer", "long": "long", "float": "float", "double": "double", "date": "date",
    "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "string": "string", "uuid": "string",
    "binary": "binary", "unknown": "void", "variant": "variant",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED = re.compile(r"fixed\[\d+\]")


def spark_struct(fields: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return a schema's fields in a table's metadata as Spark's JSON has them; None: Spark lacks a type of them."""
    spark_fields = [{"name": str(field["name"]), "type": _spark_document(field["type"])} for field in fields]
    return None if any(field["type"] is None for field in spark_fields) else {"type": "struct", "fields": spark_fields}


def _spark_document(kind: Any) -> str | Mapping[str, Any] | None:
    if isinstance(kind, str):
        if (decimal := _DECIMAL.fullmatch(kind)) is not None:
            return f"decimal({decimal[1]},{decimal[2]})"
        return "binary" if _FIXED.fullmatch(kind) else _OF_JSON.get(kind)
    match kind["type"]:
        case "struct":
            return spark_struct(kind["fields"])
        case "list":
            element = _spark_document(kind["element"])
            return None if element is None else {"type": "array", "elementType": element}
        case "map":
            key, value = _spark_document(kind["key"]), _spark_document(kind["value"])
            return None if key is None or value is None else {"type": "map", "keyType": key, "valueType": value}
    return None


def spark_type(kind: IcebergType) -> str:
    from pyiceberg.types import FixedType, ListType, MapType, StructType

    match kind:
        case StructType():
            return f"struct<{', '.join(f'{_quoted(f.name)}: {spark_type(f.field_type)}' for f in kind.fields)}>"
        case ListType():
            return f"array<{spark_type(kind.element_type)}>"
        case MapType():
            return f"map<{spark_type(kind.key_type)}, {spark_type(kind.value_type)}>"
        case FixedType():
            return "binary"
    text = str(kind).replace(" ", "")
    return _SPARK_NAMES.get(text, text)


def _quoted(name: str) -> str:
    return name if name.isidentifier() else quoted(name)
