"""Whether the schema that a Parquet or ORC file has of its own fits the declared one.

Spark finds columns by name. One that a file lacks is NULL there, which is right for a column that came later and
wrong for a file of another kind. Where types differ it mostly fails, and sometimes gives wrong values silently. All
measured on Spark 4.1.4: Parquet's INT32 as tinyint wraps (300 gives 44), its DECIMAL as double loses the point
(1.2345 gives 12345); ORC's text as int is NULL, its bigint as int NULL, its timestamp as timestamp_ntz another time.
So only types that hold every value are let through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import RunError
from engine.object_store.s3_settings import is_s3
from engine.sources.files import s3_files
from engine.sources.files.listing import listed
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

_FORMATS = ("parquet", "orc")
_SHOWN = 3
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Parquet's INT96, and every timestamp of ORC, say nothing of a zone and have one.
_ZONELESS = "timestamp without a zone"
# declared type -> other types of a file whose values it holds
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "smallint": ("tinyint",),
    "int": ("tinyint", "smallint"),
    "bigint": ("tinyint", "smallint", "int"),
    "double": ("tinyint", "smallint", "int", "float"),
    "char": ("string",),
    "varchar": ("string",),
    "timestamp": (_ZONELESS,),
}
_ACCEPTED_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    # Old writers do not mark text as such.
    "parquet": {"string": ("binary",), "timestamp_ntz": (_ZONELESS, "date")},
    "orc": {"string": (*_DIGITS, "boolean", "date"), "timestamp_ntz": ("bigint",)},
}
# Spark's names for what Arrow calls otherwise; unsigned numbers need the next larger type.
_NAMES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "uint8": "smallint", "uint16": "int",
    "uint32": "bigint", "uint64": "decimal(20,0)", "halffloat": "float", "float": "float", "double": "double",
    "bool": "boolean", "string": "string", "large_string": "string", "binary": "binary", "large_binary": "binary",
    "date32[day]": "date",
}  # fmt: skip


def is_in_files(spec: SourceSpec) -> bool:
    """Whether each file of a source says its schema."""
    return spec.format in _FORMATS


def check(session: SparkSession, spec: SourceSpec, place: Place) -> None:
    """Check the files that a batch is about to read.

    Raises:
        RunError: `source-unreadable`.
    """
    if not is_in_files(spec):
        return
    files = [(file.path or file.uri) for file in listed(session, spec, place)]
    if found := [f"{path}: {what}" for path in files for what in misfits(path, spec, place)]:
        raise unfit(found)


def misfits(path: Path | str, spec: SourceSpec, place: Place) -> list[str]:
    """What does not fit in a file, each in a few words; a file without content, or whose schema is not read, fits.

    Args:
        path: of a file on this machine, or an address: in an object store that the target names it is read as well.
        spec: its source.
        place: where sources are read.
    """
    from pyspark.sql.types import StructType

    schema = _of_file(path, spec.format, place) if is_in_files(spec) else None
    if schema is None:
        return []
    declared: Any = StructType.fromDDL(spec.schema)
    have = {name.lower(): schema.field(i).type for i, name in enumerate(schema.names)}
    if not any(field.name.lower() in have for field in declared.fields):
        return [f"it has none of the declared columns, but {', '.join(schema.names) or 'none'}"]
    return list(_struct(declared, have, spec.format, ()))


def unfit(found: Sequence[str]) -> RunError:
    """The error of files that do not fit; each fault with its file."""
    more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    message = f"the schema of a file does not match the declared one: {'; '.join(found[:_SHOWN])}{more}"
    hint = (
        "Spark would read NULLs or wrong values. Correct the source's schema, or replace the file (an empty file "
        "is skipped); the next build reads it again."
    )
    return RunError("source-unreadable", message, hint)


def _of_file(path: Path | str, format_: str, place: Place) -> Any:
    if isinstance(path, Path):
        return _schema(str(path), format_)
    if place.store is None or not is_s3(path):
        return None
    file = s3_files.opened(path, place.store())
    if file is None:
        return None
    with file:
        return _schema(file, format_)


def _schema(path: Any, format_: str) -> Any:
    import pyarrow as pa
    from pyarrow import orc, parquet

    try:
        if format_ == "orc":
            return orc.ORCFile(path).schema
        # INT96, in which Spark reads and writes times, would be nanoseconds to pyarrow, too.
        with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            return file.schema_arrow
    except (pa.ArrowException, OSError):
        # Spark says what is wrong with it, when it reads it.
        return None


def _struct(declared: StructType, have: dict[str, Any], format_: str, path: tuple[str, ...]) -> Iterator[str]:
    for field in declared.fields:
        if (found := have.get(field.name.lower())) is not None:
            yield from _type(field.dataType, found, format_, (*path, field.name))


def _type(declared: DataType, found: Any, format_: str, path: tuple[str, ...]) -> Iterator[str]:
    from pyarrow import types
    from pyspark.sql.types import ArrayType, MapType, StructType

    if types.is_dictionary(found):
        found = found.value_type
    if format_ == "parquet" and types.is_timestamp(found) and found.unit == "ns":
        # Spark reads none of them, whatever is declared.
        yield f"{'.'.join(path)} has times in nanoseconds, which cannot be read; write it in microseconds"
        return
    if isinstance(declared, StructType) and types.is_struct(found):
        inner = {found.field(i).name.lower(): found.field(i).type for i in range(found.num_fields)}
        yield from _struct(declared, inner, format_, path)
    elif isinstance(declared, ArrayType) and (types.is_list(found) or types.is_large_list(found)):
        yield from _type(declared.elementType, found.value_type, format_, (*path, "element"))
    elif isinstance(declared, MapType) and types.is_map(found):
        yield from _type(declared.keyType, found.key_type, format_, (*path, "key"))
        yield from _type(declared.valueType, found.item_type, format_, (*path, "value"))
    elif not _holds(declared.simpleString(), _name(found), format_):
        yield f"{'.'.join(path)} is {_name(found) or found} and not {declared.simpleString()}"


def _name(found: Any) -> str | None:
    """The type of a file as Spark calls it; None if that is not known here."""
    from pyarrow import types

    if types.is_decimal(found):
        return f"decimal({found.precision},{found.scale})"
    if types.is_timestamp(found):
        return "timestamp" if found.tz else _ZONELESS
    if types.is_nested(found):
        return "struct" if types.is_struct(found) else "map" if types.is_map(found) else "array"
    return _NAMES.get(str(found))


def _holds(declared: str, found: str | None, format_: str) -> bool:
    """Whether Spark reads every value of a file's type as the declared one."""
    kind = declared.partition("(")[0]
    if found is None or found in {declared, *_ACCEPTED.get(kind, ()), *_ACCEPTED_BY[format_].get(kind, ())}:
        return True
    return kind == "decimal" and _wide_enough(declared, found)


def _wide_enough(declared: str, found: str) -> bool:
    precision, scale = _decimal(declared)
    if found in _DIGITS:
        return precision - scale >= _DIGITS[found]
    if not found.startswith("decimal"):
        return False
    own_precision, own_scale = _decimal(found)
    return scale >= own_scale and precision - scale >= own_precision - own_scale


def _decimal(text: str) -> tuple[int, int]:
    precision, scale = text[len("decimal(") : -1].split(",")
    return int(precision), int(scale)
