"""Types of Iceberg as Spark has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lake.quoted_names import quoted

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_PLAIN = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
    "unknown": "void",
}


def spark_type(kind: IcebergType) -> str:
    """The type as Spark DDL."""
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
    return _PLAIN.get(text, text)


def _quoted(name: str) -> str:
    return name if name.isidentifier() else quoted(name)
