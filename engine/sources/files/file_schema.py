"""Whether the schema that a Parquet or ORC file has of its own fits the declared one.

A missing column is NULL, right for one that came later and wrong for a file of another kind. Other types mostly fail,
and sometimes give wrong values silently (measured on Spark 4.1.4: Parquet's INT32 as tinyint wraps, its DECIMAL as
double loses the point; ORC's text or bigint as int is NULL, its timestamp as timestamp_ntz another time). So only types
that hold every value are let through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import RunError
from engine.object_store.s3_settings import is_s3
from engine.sources.files import s3_files
from engine.sources.listing import listed
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

_FORMATS = ("parquet", "orc")
_SHOWN = 3
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Parquet's INT96, and every timestamp of ORC, say nothing of a zone and have one.
_ZONELESS = "timestamp without a zone"
_FIXED = "binary of a fixed length"
# declared type -> other types of a file whose values it holds
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "smallint": ("tinyint",),
    "int": ("tinyint", "smallint"),
    "bigint": ("tinyint", "smallint", "int"),
    "double": ("tinyint", "smallint", "int", "float"),
    "char": ("string",),
    "varchar": ("string",),
    "timestamp": (_ZONELESS,),
    "binary": (_FIXED,),
}
_OF_ORC: Mapping[str, tuple[str, ...]] = {"string": (*_DIGITS, "boolean", "date"), "timestamp_ntz": ("bigint",)}
# Of ORC's C++ library, by which pyarrow and pandas write: their times with a zone end Spark's reader.
_ORC_OF_CPP, _WRITER = "orc of C++", "writer"
_ACCEPTED_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    # Old writers do not mark text as such.
    "parquet": {"string": ("binary",), "timestamp_ntz": (_ZONELESS, "date")},
    "orc": _OF_ORC,
    _ORC_OF_CPP: _OF_ORC,
}
# Unsigned numbers of Parquet need the next larger type; Spark reads no decimal of them but one of its own (measured,
# Spark 4.1.4). Arrow's name -> how they are called, and the types that hold them.
_UNSIGNED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "uint8": ("an unsigned integer of 8 bits", ("smallint", "int", "bigint", "double")),
    "uint16": ("an unsigned integer of 16 bits", ("int", "bigint", "double")),
    "uint32": ("an unsigned integer of 32 bits", ("bigint",)),
    "uint64": ("an unsigned integer of 64 bits", ("decimal(20,0)",)),
}
# What Spark reads as no type at all ends with this.
_NEVER = "which Spark cannot read"
# Spark's names for what Arrow calls otherwise.
_NAMES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
    "float": "float", "double": "double",
    "bool": "boolean", "string": "string", "large_string": "string", "binary": "binary", "large_binary": "binary",
    "date32[day]": "date",
}  # fmt: skip


def is_in_files(spec: SourceSpec) -> bool:
    return spec.format in _FORMATS


def check(session: SparkSession, spec: SourceSpec, place: Place) -> None:
    """Check the files that a batch is about to read. Raises RunError: `source-unreadable`."""
    if not is_in_files(spec):
        return
    files = [(file.path or file.uri) for file in listed(session, spec, place)]
    if faults := [f"{path}: {misfit}" for path in files for misfit in misfits(path, spec, place)]:
        raise unfit(faults)


def misfits(path: Path | str, spec: SourceSpec, place: Place) -> list[str]:
    """What does not fit in a file, each in a few words; a file without content, or whose schema is not read, fits."""
    from pyspark.sql.types import StructType

    schema = _of_file(path, spec.format, place) if is_in_files(spec) else None
    if schema is None:
        return []
    declared: Any = StructType.fromDDL(spec.schema)
    return schema_faults(declared, schema, spec.format)


def schema_faults(declared: StructType, schema: Any, format_: str) -> list[str]:
    have = {name.lower(): schema.field(i).type for i, name in enumerate(schema.names)}
    if not any(field.name.lower() in have for field in declared.fields):
        return [f"it has none of the declared columns, but {', '.join(schema.names) or 'none'}"]
    return list(_struct(declared, have, _form(format_, schema), ()))


def unfit(faults: Sequence[str]) -> RunError:
    more = f"; and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
    message = f"the schema of a file does not match the declared one: {'; '.join(faults[:_SHOWN])}{more}"
    hint = (
        "Spark would read NULLs or wrong values. Correct the source's schema, or replace the file (an empty file "
        "is skipped); the next build reads it again."
    )
    if all(_NEVER in one for one in faults):
        hint = "Replace the file by one without such values (an empty file is skipped); the next build reads it again."
        message = f"a file cannot be read: {'; '.join(faults[:_SHOWN])}{more}"
    return RunError("source-unreadable", message, hint)


def _of_file(path: Path | str, format_: str, place: Place) -> Any:
    if isinstance(path, Path):
        return schema_of(str(path), format_)
    if place.store is None or not is_s3(path):
        return None
    file = s3_files.opened(path, place.store())
    if file is None:
        return None
    with file:
        return schema_of(file, format_)


def schema_of(path: Any, format_: str) -> Any:
    """Return Arrow's schema of a file, by its path or opened; None: it cannot be read."""
    import pyarrow as pa
    from pyarrow import orc, parquet

    try:
        if format_ == "orc":
            file = orc.ORCFile(path)
            return file.schema.with_metadata({_WRITER: str(file.writer)})
        # INT96, in which Spark reads and writes times, would be nanoseconds to pyarrow, too.
        with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            return file.schema_arrow
    except (pa.ArrowException, OSError):
        # Spark says what is wrong with it, when it reads it.
        return None


def _form(format_: str, schema: Any) -> str:
    return _ORC_OF_CPP if format_ == "orc" and (schema.metadata or {}).get(_WRITER.encode()) == b"ORC_CPP" else format_


def _struct(declared: StructType, have: dict[str, Any], format_: str, path: tuple[str, ...]) -> Iterator[str]:
    for field in declared.fields:
        if (file_type := have.get(field.name.lower())) is not None:
            yield from _type(field.dataType, file_type, format_, (*path, field.name))


def _type(declared: DataType, file_type: Any, format_: str, path: tuple[str, ...]) -> Iterator[str]:
    from pyarrow import types
    from pyspark.sql.types import ArrayType, MapType, StructType

    if types.is_dictionary(file_type):
        file_type = file_type.value_type
    if unread := _never_read(file_type, format_):
        yield f"{'.'.join(path)} has {unread}"
        return
    if isinstance(declared, StructType) and types.is_struct(file_type):
        inner = {file_type.field(i).name.lower(): file_type.field(i).type for i in range(file_type.num_fields)}
        yield from _struct(declared, inner, format_, path)
    elif isinstance(declared, ArrayType) and (types.is_list(file_type) or types.is_large_list(file_type)):
        yield from _type(declared.elementType, file_type.value_type, format_, (*path, "element"))
    elif isinstance(declared, MapType) and types.is_map(file_type):
        yield from _type(declared.keyType, file_type.key_type, format_, (*path, "key"))
        yield from _type(declared.valueType, file_type.item_type, format_, (*path, "value"))
    elif fault := _misfit(declared.simpleString(), file_type, format_):
        yield f"{'.'.join(path)} is {fault}"


def _never_read(file_type: Any, format_: str) -> str:
    """What a column has that no declared type reads, and how to write it; empty: it is another column."""
    from pyarrow import types

    if format_ == "parquet" and types.is_timestamp(file_type) and file_type.unit == "ns":
        return f"times in nanoseconds, {_NEVER}: write them in microseconds"
    if format_ == "parquet" and types.is_float16(file_type):
        return f"floating-point numbers of 16 bits, {_NEVER}: write them as float"
    if format_ == _ORC_OF_CPP and types.is_timestamp(file_type) and file_type.tz:
        return f"times with a zone as ORC's C++ library writes them, {_NEVER}: write them in UTC, without a zone"
    return ""


def _misfit(declared: str, file_type: Any, format_: str) -> str:
    """Why a declared type does not hold the values of a file's type; empty: it does."""
    if format_ == "parquet" and (unsigned := _UNSIGNED.get(str(file_type))) is not None:
        called, holds = unsigned
        return "" if declared in holds else f"{called} and not {declared}: declare it as {' or '.join(holds)}"
    name = _name(file_type)
    if _holds(declared, name, format_):
        return ""
    if format_ != "parquet" and declared == "timestamp_ntz" and name in {"timestamp", _ZONELESS}:
        return "a timestamp of ORC, which Spark reads in a time zone: declare it as timestamp"
    return f"{name or file_type} and not {declared}"


def _name(file_type: Any) -> str | None:
    """The type of a file as Spark calls it; None if that is not known here."""
    from pyarrow import types

    if types.is_decimal(file_type):
        return f"decimal({file_type.precision},{file_type.scale})"
    if types.is_timestamp(file_type):
        return "timestamp" if file_type.tz else _ZONELESS
    if types.is_fixed_size_binary(file_type):
        return _FIXED
    if types.is_nested(file_type):
        return "struct" if types.is_struct(file_type) else "map" if types.is_map(file_type) else "array"
    return _NAMES.get(str(file_type))


def _holds(declared: str, file_type: str | None, format_: str) -> bool:
    kind = declared.partition("(")[0]
    if file_type is None or file_type in {declared, *_ACCEPTED.get(kind, ()), *_ACCEPTED_BY[format_].get(kind, ())}:
        return True
    return kind == "decimal" and _wide_enough(declared, file_type)


def _wide_enough(declared: str, file_type: str) -> bool:
    precision, scale = _decimal(declared)
    if file_type in _DIGITS:
        return precision - scale >= _DIGITS[file_type]
    if not file_type.startswith("decimal"):
        return False
    own_precision, own_scale = _decimal(file_type)
    return scale >= own_scale and precision - scale >= own_precision - own_scale


def _decimal(text: str) -> tuple[int, int]:
    precision, scale = text[len("decimal(") : -1].split(",")
    return int(precision), int(scale)
