"""Decoded values as the columns that a source declares: by name, and never with a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

_WIDER: Final = {
    "int": ("bigint", "double"), "float": ("double",), "date": ("timestamp", "timestamp_ntz"),
}  # fmt: skip
_DIGITS: Final = {"int": 10, "bigint": 19}


def fitted(column: Column, have: StructType, want: StructType, at: str = "") -> list[Column]:
    """The fields of a struct that are wanted, named and typed as they are wanted.

    Raises:
        SetupError: `avro-columns`, a field is missing, or its values do not all fit.
    """
    there = {field.name.lower(): field for field in have.fields}
    made = []
    for field in want.fields:
        path = f"{at}.{field.name}" if at else field.name
        found = there.get(field.name.lower())
        if found is None:
            hint = f"It has: {', '.join(have.fieldNames())}."
            raise SetupError("avro-columns", f"the Avro schema of the values has no '{path}'", hint)
        made.append(_value(column[found.name], found.dataType, field.dataType, path).alias(field.name))
    return made


def _value(column: Column, have: DataType, want: DataType, at: str) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    if have.simpleString() == want.simpleString():
        return column
    if isinstance(have, StructType) and isinstance(want, StructType):
        return f.when(column.isNotNull(), f.struct(*fitted(column, have, want, at)))
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return f.transform(column, lambda item: _value(item, have.elementType, want.elementType, f"{at}[]"))
    if isinstance(have, MapType) and isinstance(want, MapType) and have.keyType == want.keyType:
        return f.transform_values(column, lambda _, item: _value(item, have.valueType, want.valueType, f"{at}[]"))
    if not _holds(want, have):
        message = f"'{at}' is {have.simpleString()} in the Avro schema and {want.simpleString()} in 'schema:'"
        raise SetupError("avro-columns", message, f"Declare it as {have.simpleString()}, and cast it in a model.")
    return column.cast(want)


def _holds(want: DataType, have: DataType) -> bool:
    from pyspark.sql.types import DecimalType

    name = have.simpleString()
    if not isinstance(want, DecimalType):
        return want.simpleString() in _WIDER.get(name, ())
    if isinstance(have, DecimalType):
        return want.scale >= have.scale and want.precision - want.scale >= have.precision - have.scale
    return name in _DIGITS and want.precision - want.scale >= _DIGITS[name]
