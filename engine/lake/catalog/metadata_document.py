"""Metadata files of tables and views, read as plain JSON: files or objects below the warehouse, of a bounded size."""

from __future__ import annotations

import gzip
import io
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.bounds.regular_file import MOST_BYTES, parse_json, read_regular
from engine.lake.catalog.locations import path_of
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.times import CYCLE_DAYS, CYCLE_YEARS, year_text

if TYPE_CHECKING:
    import pyarrow as pa


_DAY = 86_400_000_000


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(_column(column) for column in table.columns), strict=True))


def _column(column: pa.ChunkedArray) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = [_value(scalar) for scalar in column]
    return values


def _value(scalar: Any) -> Any:
    """Return a value of a column with times beyond the years 1 to 9999 or text that is not UTF-8, at any depth."""
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        pass
    if isinstance(scalar, pa.MapScalar):
        return [(_value(pair["key"]), _value(pair["value"])) for pair in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [_value(item) for item in scalar.values]
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(item) for name, item in scalar.items()}
    return _leaf(scalar)


def _leaf(scalar: Any) -> str:
    import pyarrow as pa

    kind = scalar.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Not UTF-8: Java, and so Spark, prints such bytes as U+FFFD, too.
        return str(scalar.as_buffer().to_pybytes(), "utf-8", "replace")
    number = scalar.value
    if pa.types.is_date32(kind):
        return day_text(number)
    if pa.types.is_timestamp(kind):
        return time_text(number if kind.unit == "us" else number // 1000)
    raise TypeError(kind)


def day_text(days: int) -> str:
    cycles, days_in_cycle = divmod(days, CYCLE_DAYS)
    day = date(1970, 1, 1) + timedelta(days=days_in_cycle)
    return f"{year_text(day.year + cycles * CYCLE_YEARS)}-{day.month:02}-{day.day:02}"


def time_text(micros: int) -> str:
    days, micros_of_day = divmod(micros, _DAY)
    return f"{day_text(days)} {clock_text(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros_of_day))}"


def clock_text(moment: datetime) -> str:
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%H:%M:%S}{fraction}"


# Of one metadata file, unpacked: ten thousand snapshots take some 10 MB.
METADATA_BYTES = MOST_BYTES


def read_document(warehouse: Path | ObjectWarehouse, location: str) -> dict[str, Any]:
    """Return the content of a metadata file of a table or view.

    Raises:
        OutsideError: it is not below the warehouse.
        OSError, EOFError, zlib.error: it cannot be read.
        ValueError: it does not hold the metadata of a table.
        SetupError: the object store denies it, or does not answer.
    """
    if isinstance(warehouse, ObjectWarehouse):
        content = warehouse.read(location, METADATA_BYTES + 1)
    else:
        content = read_regular(path_of(warehouse, location), METADATA_BYTES)
    if location.endswith(".gz.metadata.json"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as source:
            content = source.read(METADATA_BYTES + 1)
    if len(content) > METADATA_BYTES:
        message = f"{location} is too large"
        raise ValueError(message)
    document = parse_json(content)
    if not isinstance(document, dict):
        message = f"{location} is not the metadata of a table"
        raise ValueError(message)  # noqa: TRY004 - as the JSON reader says it
    return document
