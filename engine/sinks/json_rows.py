"""Rows as JSON objects, a text per row, by Arrow's functions on whole columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from engine.sinks.column_values import json_text

if TYPE_CHECKING:
    import pyarrow as pa

_CONTROL: Final = r"[\x00-\x1f]"
# Decimals with more digits behind the point may be printed with an exponent.
_PLAIN_SCALE: Final = 6


def json_rows(rows: pa.RecordBatch, names: Sequence[str]) -> list[str]:
    """Return some columns of each row as a JSON object; values are those of `column_values.json_value`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not names or not rows.num_rows:
        return ["{}"] * rows.num_rows
    parts: list[pa.Array | str] = []
    for index, name in enumerate(names):
        label = json.dumps(name, ensure_ascii=False)
        parts.append(f"{',' if index else '{'}{label}:")
        parts.append(_texts(rows.column(rows.schema.get_field_index(name))))
    parts.append("}")
    texts: list[str] = pc.binary_join_element_wise(*parts, "").cast(pa.string()).to_pylist()
    return texts


def _texts(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _encoder(column.type)(column)
    return pc.fill_null(pc.cast(texts, pa.string()), "null")


def _encoder(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return lambda column: pc.cast(column, pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _strings
    if pa.types.is_floating(kind):
        return _floats
    if pa.types.is_timestamp(kind):
        return _timestamps
    if pa.types.is_date(kind) or (pa.types.is_decimal(kind) and 0 <= kind.scale <= _PLAIN_SCALE):
        return lambda column: _quoted(pc.cast(column, pa.string()))
    return _one_by_one


def _strings(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.cast(column, pa.string())
    if pc.any(pc.match_substring_regex(column, _CONTROL)).as_py():
        return _one_by_one(column)
    column = pc.replace_substring(column, "\\", "\\\\")
    return _quoted(pc.replace_substring(column, '"', '\\"'))


def _floats(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.all(pc.is_finite(column)).as_py():
        return _one_by_one(column)
    return pc.cast(column, pa.string())


def _timestamps(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.cast(column, pa.string())
    return _quoted(pc.replace_substring(texts, " ", "T", max_replacements=1))


def _one_by_one(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return pa.array(
        [None if value is None else json_text(value, column.type) for value in column.to_pylist()], pa.string()
    )


def _quoted(texts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise('"', texts, '"', "")
