"""How each format of files becomes columns, `_metadata` and `__bad`.

Which of the declared columns a folder's name gives, as Hive writes them (`dt=2024-05-01/hour=01/a.json`), is read in
Java with each file, with the value (`FolderValues.java`). Here are its two numbers, and the columns that some files
have, which is known without reading.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from engine.relations import quoted
from engine.sources import listing
from engine.sources.spec import BAD, ORIGIN, RAW, Place, SourceSpec, SpecFault, reader_faults
from engine.sources.values import debezium_values, declared_value, json_values, plain_values
from engine.spark.internals.handles import column_of, java_column, jvm_of
from engine.spark_options import OF_FILES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType


# Hive's name for the folder of rows without a value.
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


def depths(spec: SourceSpec, place: Place) -> tuple[int, int]:
    """How many folders of a file's path are above the source's, and how many behind them are the source's own path."""
    path = str(spec.settings.get("path", ""))
    exact = not listing.is_uri(path) and (place.root / path).exists()
    own = path if exact else listing.base(path)
    if listing.is_uri(path) or path.startswith("/"):
        return 0, len(_parts(own))
    above = len(_parts(str(place.root)))
    return above, len(_parts(posixpath.normpath(f"{place.root}/{own}"))) - above


def _parts(location: str) -> list[str]:
    address = _ADDRESS.match(location)
    path = posixpath.normpath("/" + location[address.end() if address else 0 :].lstrip("/"))
    return [part for part in path.split("/") if part]


def values_in(uris: Iterable[str], spec: SourceSpec, place: Place) -> Mapping[str, list[str | None]]:
    """The values in names of folders, by column; None is NULL.

    Args:
        uris: of files, as Hadoop prints them.
        spec: their source.
        place: where it is read.
    """
    above, _ = depths(spec, place)
    values: dict[str, list[str | None]] = {}
    for folder in dict.fromkeys(uri.rpartition("/")[0] for uri in uris):
        for part in _parts(folder)[above:]:
            name, sign, value = part.partition("=")
            if name and sign:
                values.setdefault(unquote(name), []).append(None if value == NULL_FOLDER else unquote(value))
    return values


def declared_in(uris: Iterable[str], spec: SourceSpec, place: Place) -> tuple[str, ...]:
    from pyspark.sql.types import StructType

    folder_names = {name.lower() for name in values_in(uris, spec, place)}
    declared: Any = StructType.fromDDL(spec.schema)
    return tuple(name for name in declared.fieldNames() if name.lower() in folder_names)


def zone_of(session: SparkSession, spec: SourceSpec) -> str:
    return spec.timezone or str(session.conf.get("spark.sql.session.timeZone"))


def with_folder_columns(
    frame: DataFrame, names: Iterable[str], spec: SourceSpec, place: Place, file_path: str
) -> DataFrame:
    """A frame with `__folders`: a struct of the columns in `r`, and in `reason` what does not fit."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    session: Any = frame.sparkSession
    columns = StructType([frame.schema[name] for name in names])
    own = f.struct(*(f.col(quoted(name)) for name in columns.fieldNames()))
    read = jvm_of(session).headrace.FolderColumns.column(
        java_column(f.col(file_path)), java_column(own), columns.json(), zone_of(session, spec), *depths(spec, place)
    )
    return frame.withColumn("__folders", column_of(read))


# Options of Spark's JSON reader that would make something else of a line than one record.
_NO_LINES = {
    "multiline": "JSON files must have one object per line",
    "encoding": "files must be UTF-8",
    "charset": "files must be UTF-8",
    "singlevariantcolumn": "the columns are declared in the schema",
}
# Java's library would read what was written with these schemas by their units, whatever those of the file are: 2023 in
# milliseconds as 1970 in microseconds (measured).
_NO_SCHEMAS = dict.fromkeys(("avroschema", "avroschemaurl"), "the columns are declared in the schema")
_UNSUPPORTED = {"json": _NO_LINES, "avro": _NO_SCHEMAS}
_JSON_OPTIONS = {name.lower() for name in json_values.OPTIONS}
# What `CsvFormat.java` calls why a record is bad, and its option.
_REASON = "__reason"
_FOLDERS = "headraceFolders"
# Where a record came from.
_FILE = "struct(_metadata.file_path, _metadata.file_modification_time)"


def faults(spec: SourceSpec, reserved: Collection[str]) -> Iterator[SpecFault]:
    """What is wrong with the schema and options of a format; those in `reserved` are reported elsewhere."""
    if spec.format == "text" and spec.schema:
        message = "text files have one column, value string"
        yield SpecFault(("schema",), message, "Remove the schema.", "setting-conflict", at_key=True)
    unsupported = _UNSUPPORTED.get(spec.format, {})
    for key in spec.options:
        if why := unsupported.get(key.lower()):
            message = f"the option '{key}' is not supported in this version: {why}"
            yield SpecFault(("options", key), message, "Remove it.", "not-supported", at_key=True)
    handled_elsewhere = (*reserved, *unsupported)
    # A format that a plug-in reads as files has no list.
    if (known_options := OF_FILES.get(spec.format)) is not None:
        yield from reader_faults(
            spec, known_options, f"the {spec.format} reader", reserved=handled_elsewhere, hadoop=True
        )


def value_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    """Return what is wrong with `value:`: each line of JSON may be a change record."""
    if spec.format != "json":
        message = f"'value' is for files of JSON, not of {spec.format}"
        yield SpecFault(("value",), message, "Remove it, or set 'format: json'.", "setting-conflict", at_key=True)
        return
    yield from declared_value.value_faults(spec, ("debezium",))
    for name in spec.options if declared_value.value_of(spec)["format"] == "debezium" else ():
        if name.lower() in _JSON_OPTIONS:
            message = f"the option '{name}' does not apply to change records"
            yield SpecFault(("options", name), message, "Remove it.", "setting-conflict", at_key=True)


def read(session: SparkSession, reader: Any, spec: SourceSpec, path: str | list[str], place: Place) -> DataFrame:
    """A frame of the declared columns, `_metadata` and, where there are bad records, `__bad`."""
    if spec.format == "json":
        return _json(reader, spec, path, place)
    if spec.format == "text":
        lines = _lines(reader.options(**spec.options), path)
        return plain_values.decode(lines, spec, {"format": "string"}, place)
    if spec.format == "csv":
        return _csv(reader, spec, path, place)
    return _columns(session, reader, spec, path, place)


def script_options(spec: SourceSpec) -> dict[str, str]:
    if spec.format == "csv":
        return {**_csv_options(spec), "mode": "FAILFAST"}
    zone = {"timeZone": spec.timezone} if spec.timezone else {}
    strict = {"mode": "FAILFAST"} if spec.format == "json" else {}
    return {**zone, **spec.options, **strict}


def _lines(reader: Any, path: str | list[str]) -> DataFrame:
    frame: DataFrame = reader.format("text").schema("value string").load(path)
    return frame.selectExpr(f"cast(value as binary) as {RAW}", f"{_FILE} as {ORIGIN}")


def _json(reader: Any, spec: SourceSpec, path: str | list[str], place: Place) -> DataFrame:
    of_records = {key: value for key, value in spec.options.items() if key.lower() in _JSON_OPTIONS}
    of_files = {key: value for key, value in spec.options.items() if key not in of_records}
    lines = _lines(reader.options(**of_files), path)
    # An empty line is not a record, as for Spark's own reader.
    lines = lines.where(rf"length(ltrim(' \t\r\n\f\u000b', cast({RAW} as string))) > 0")
    if "value" in spec.settings:
        return debezium_values.changes(lines, spec, declared_value.value_of(spec), key=None)
    return json_values.objects(lines, spec, of_records, depths(spec, place))


def _csv_options(spec: SourceSpec) -> dict[str, str]:
    # Spark writes a quote inside a quoted field with a backslash; everyone else doubles it. And it takes columns by
    # their position, whatever the header says, unless enforceSchema is false.
    options = {"escape": '"', "header": "true", "enforceSchema": "false", **spec.options}
    return {**options, "timeZone": spec.timezone} if spec.timezone else options


def _csv(reader: Any, spec: SourceSpec, path: str | list[str], place: Place) -> DataFrame:
    """The engine's reader, which has Spark's options: it reads all columns, whichever a query uses."""
    from pyspark.sql.types import StringType, StructField, StructType

    declared = cast("StructType", StructType.fromDDL(spec.schema))
    above, of_path = depths(spec, place)
    options = {**_csv_options(spec), _FOLDERS: f"{above},{of_path}"}
    schema = StructType([*declared.fields, StructField(RAW, StringType()), StructField(_REASON, StringType())])
    frame = reader.format("headrace.CsvFormat").options(**options).schema(schema).load(path)
    return _with_bad(frame, declared.fieldNames(), _column(_REASON), _column(RAW))


def _columns(session: SparkSession, reader: Any, spec: SourceSpec, path: str | list[str], place: Place) -> DataFrame:
    """Formats with a schema of their own: a record is as it is; a file can be wrong, and the name of its folder."""
    from pyspark.sql import functions as f

    frame: DataFrame = reader.format(spec.format).options(**spec.options).schema(spec.schema).load(path)
    names = frame.columns
    folder_names = declared_in(_uris(session, spec, place, path), spec, place)
    place.folders[spec.name] = folder_names
    reasons = []
    if spec.format == "avro":
        # Columns that a file lacks are NULL; where it lacks all, it is another kind of file.
        reasons.append(f.when(_nothing(names), "it has none of the declared columns"))
    if folder_names:
        frame = with_folder_columns(frame, folder_names, spec, place, "_metadata.file_path")
        reasons.append(_column("__folders")["reason"])
    columns = [_column("__folders")["r"][name].alias(name) if name in folder_names else _column(name) for name in names]
    if not reasons:
        return frame.select(*columns, f.expr(f"{_FILE} as {ORIGIN}"))
    reason = f.coalesce(*reasons)
    bad = f.struct(reason.alias("reason"), f.lit(None).cast("binary").alias("raw"))
    return frame.select(*columns, f.expr(f"{_FILE} as {ORIGIN}"), f.when(reason.isNotNull(), bad).alias(BAD))


def _uris(session: SparkSession, spec: SourceSpec, place: Place, path: str | list[str]) -> list[str]:
    return path if isinstance(path, list) else [file.uri for file in listing.listed(session, spec, place)]


def _with_bad(frame: DataFrame, names: list[str], reason: Column, raw: Column) -> DataFrame:
    from pyspark.sql import functions as f

    bad = f.struct(reason.alias("reason"), raw.cast("binary").alias("raw"))
    return frame.select(
        *(_column(name) for name in names), f.expr(f"{_FILE} as {ORIGIN}"), f.when(reason.isNotNull(), bad).alias(BAD)
    )


def _column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))


def _nothing(names: list[str]) -> Column:
    from pyspark.sql import functions as f

    all_null = f.lit(True)
    for name in names:
        all_null &= _column(name).isNull()
    return all_null
