"""What the schema of a Parquet or ORC file says before Spark reads it: which declared types hold its values, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql import types
from pyspark.sql.types import DecimalType, StructField, StructType

from engine.sources.files.file_schema import schema_faults, schema_of, unfit

TYPES = (
    types.ByteType, types.ShortType, types.IntegerType, types.LongType, types.FloatType, types.DoubleType,
    types.StringType, types.BinaryType, types.TimestampType, types.TimestampNTZType,
)  # fmt: skip
UTC = pa.timestamp("us", "UTC")


def found(folder: Path, format_: str, kind: Any, declared: str, *, encoded: bool = False) -> list[str]:
    """The faults of a file with one column of a type."""
    column = pa.nulls(3, kind)
    path = folder / f"a.{format_}"
    table = pa.table({"a": column.dictionary_encode() if encoded else column})
    (parquet.write_table if format_ == "parquet" else orc.write_table)(table, path)
    simple = {one().simpleString(): one() for one in TYPES}
    of = simple.get(declared) or DecimalType(*map(int, declared[len("decimal(") : -1].split(",")))
    return schema_faults(StructType([StructField("a", of)]), schema_of(str(path), format_), format_)


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    ("kind", "holds", "rejects"),
    [
        (pa.uint8(), ("smallint", "int", "bigint", "double"), ("tinyint", "decimal(3,0)", "decimal(20,0)", "float")),
        (pa.uint16(), ("int", "bigint", "double"), ("smallint", "decimal(10,0)", "decimal(38,2)", "float")),
        (pa.uint32(), ("bigint",), ("int", "double", "decimal(10,0)", "decimal(20,0)")),
        (pa.uint64(), ("decimal(20,0)",), ("bigint", "double", "decimal(38,0)", "decimal(38,2)")),
    ],
)  # fmt: skip
def test_unsigned_integers_of_parquet(
    tmp_path: Path, kind: Any, holds: tuple[str, ...], rejects: tuple[str, ...], encoded: bool
) -> None:
    # Which of them Spark 4.1.4 reads was measured with files of each, with and without dictionaries.
    for declared in holds:
        assert found(tmp_path, "parquet", kind, declared, encoded=encoded) == []
    for declared in rejects:
        (fault,) = found(tmp_path, "parquet", kind, declared, encoded=encoded)
        width = kind.bit_width
        assert fault == (
            f"a is an unsigned integer of {width} bits and not {declared}: declare it as {' or '.join(holds)}"
        )


@pytest.mark.parametrize(
    ("format_", "kind", "fault"),
    [
        ("parquet", pa.timestamp("ns"), "a has times in nanoseconds, which Spark cannot read: write them in microseconds"),
        ("parquet", pa.timestamp("ns", "UTC"), "a has times in nanoseconds, which Spark cannot read: write them in microseconds"),
        ("parquet", pa.float16(), "a has floating-point numbers of 16 bits, which Spark cannot read: write them as float"),
        ("orc", UTC, "a has times with a zone as ORC's C++ library writes them, which Spark cannot read: write them in UTC, without a zone"),
    ],
)  # fmt: skip
def test_what_spark_never_reads_is_not_blamed_on_the_declared_schema(
    tmp_path: Path, format_: str, kind: Any, fault: str
) -> None:
    for declared in ("timestamp", "timestamp_ntz", "bigint", "float", "double"):
        assert found(tmp_path, format_, kind, declared) == [fault]
    error = unfit([f"a.{format_}: {fault}"]).diagnostic
    assert error.message == f"a file cannot be read: a.{format_}: {fault}"
    assert "schema" not in error.hint


@pytest.mark.parametrize(
    ("format_", "kind", "declared", "fault"),
    [
        ("orc", pa.timestamp("us"), "timestamp_ntz", "a is a timestamp of ORC, which Spark reads in a time zone: declare it as timestamp"),
        ("orc", pa.timestamp("us"), "timestamp", None),
        ("parquet", pa.timestamp("us"), "timestamp_ntz", None),
        ("parquet", pa.binary(2), "string", "a is binary of a fixed length and not string"),
        ("parquet", pa.binary(2), "binary", None),
        ("parquet", pa.binary(), "string", None),
        ("parquet", pa.int32(), "decimal(20,0)", None),
    ],
)  # fmt: skip
def test_other_types(tmp_path: Path, format_: str, kind: Any, declared: str, fault: str | None) -> None:
    assert found(tmp_path, format_, kind, declared) == ([fault] if fault else [])
