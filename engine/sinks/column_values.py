"""Values of Arrow as texts of other systems: CSV for COPY, JSON for structs, arrays and maps."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with columns that Arrow writes as CSV and COPY reads as the same values."""
    import pyarrow as pa

    columns = [_copied(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def csv(rows: pa.RecordBatch) -> bytes:
    """Rows as COPY reads them with NULL '': an empty text has quotes, NULL is nothing."""
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    out = pa.BufferOutputStream()
    write_csv(copied(rows), out, WriteOptions(include_header=False))
    return bytes(out.getvalue())


def _copied(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_nested(kind):
        return pa.array(
            [None if value is None else json_text(value, kind) for value in column.to_pylist()], pa.string()
        )
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        return pc.cast(column, pa.string())
    return column


def json_text(value: Any, kind: pa.DataType) -> str:
    return json.dumps(json_value(value, kind), ensure_ascii=False, separators=(",", ":"))


def json_value(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON has it: decimals and times are texts, keys of maps too, binary values are base64."""
    import pyarrow as pa

    if value is None or not pa.types.is_nested(kind):
        return _json_scalar(value)
    if pa.types.is_struct(kind):
        return {field.name: json_value(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {_key(json_value(key, kind.key_type)): json_value(inner, kind.item_type) for key, inner in value}
    return [json_value(inner, kind.value_type) for inner in value]


def _json_scalar(value: Any) -> Any:
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            # JSON has no such numbers; they are what Spark's to_json writes.
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
