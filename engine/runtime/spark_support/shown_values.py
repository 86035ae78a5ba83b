"""Values of Spark as they are shown: times as texts in UTC; PySpark would give them in the zone of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class CollectedRows:
    names: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


def collect_rows(frame: DataFrame) -> CollectedRows:
    """The rows of a frame whose session is in UTC.

    Times and dates come as texts: Python has no year 0 and none after 9999, and PySpark gives a timestamp in the zone
    of the machine.
    """
    from pyspark.sql import functions as f

    fields = frame.schema.fields
    # By position: a query may give one name twice.
    numbered = frame.toDF(*(str(index) for index in range(len(fields))))
    texts = [
        column if (kind := _as_text(field.dataType)) == field.dataType else column.cast(kind)
        for column, field in zip((f.col(f"`{index}`") for index in range(len(fields))), fields, strict=True)
    ]
    rows = [tuple(row) for row in numbered.select(*texts).collect()]
    return CollectedRows([field.name for field in fields], [field.dataType.simpleString() for field in fields], rows)


def _as_text(kind: DataType) -> DataType:
    from pyspark.sql import types as t

    texts = (t.TimestampType, t.TimestampNTZType, t.DateType, t.DayTimeIntervalType, t.YearMonthIntervalType)
    if isinstance(kind, texts):
        return t.StringType()
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_as_text(kind.elementType), kind.containsNull)
    if isinstance(kind, t.MapType):
        return t.MapType(_as_text(kind.keyType), _as_text(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, t.StructType):
        return t.StructType([t.StructField(p.name, _as_text(p.dataType), p.nullable) for p in kind.fields])
    return kind
