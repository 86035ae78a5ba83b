"""How each format of files becomes columns, `_metadata` and `__bad`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from engine.lake.quoted_names import quoted
from engine.sources.spec import BAD, ORIGIN, RAW, Place, SourceSpec, SpecFault, reader_faults
from engine.sources.values import json_values, plain_values
from engine.spark_options import OF_FILES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

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
# Options of the CSV reader that say how a record is split into fields.
_CSV_FIELDS = frozenset((
    "sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "comment", "nullvalue", "emptyvalue",
    "ignoreleadingwhitespace", "ignoretrailingwhitespace", "unescapedquotehandling",
))  # fmt: skip
# Letters of a field in a reason.
_SHOWN = 50
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
    others = (*reserved, *unsupported)
    # A format that a plug-in reads as files has no list.
    if (known := OF_FILES.get(spec.format)) is not None:
        yield from reader_faults(spec, known, f"the {spec.format} reader", reserved=others, hadoop=True)


def read(session: SparkSession, reader: Any, spec: SourceSpec, path: str | list[str], place: Place) -> DataFrame:
    """A frame of the declared columns, `_metadata` and, where there are bad records, `__bad`.

    Args:
        session: of the query.
        reader: of a batch or a stream, with the options that say which files.
        spec: the source.
        path: for Spark.
        place: where sources are read.
    """
    if spec.format == "json":
        return _json(reader, spec, path)
    if spec.format == "text":
        lines = _lines(reader.options(**spec.options), path)
        return plain_values.decode(lines, spec, {"format": "string"}, place)
    if spec.format == "csv":
        return _csv(session, reader, spec, path)
    return _columns(reader, spec, path)


def script_options(spec: SourceSpec) -> dict[str, str]:
    """The options by which a plain script reads the same, as far as Spark's own readers can."""
    if spec.format == "csv":
        return {**_csv_options(spec), "mode": "FAILFAST"}
    zone = {"timeZone": spec.timezone} if spec.timezone else {}
    strict = {"mode": "FAILFAST"} if spec.format == "json" else {}
    return {**zone, **spec.options, **strict}


def _lines(reader: Any, path: str | list[str]) -> DataFrame:
    frame: DataFrame = reader.format("text").schema("value string").load(path)
    return frame.selectExpr(f"cast(value as binary) as {RAW}", f"{_FILE} as {ORIGIN}")


def _json(reader: Any, spec: SourceSpec, path: str | list[str]) -> DataFrame:
    of_records = {key: value for key, value in spec.options.items() if key.lower() in _JSON_OPTIONS}
    of_files = {key: value for key, value in spec.options.items() if key not in of_records}
    lines = _lines(reader.options(**of_files), path)
    # An empty line is not a record, as for Spark's own reader.
    return json_values.objects(lines.where(rf"not cast({RAW} as string) rlike r'^\s*$'"), spec, of_records)


def _csv_options(spec: SourceSpec) -> dict[str, str]:
    # Spark writes a quote inside a quoted field with a backslash; everyone else doubles it. And it takes columns by
    # their position, whatever the header says, unless enforceSchema is false.
    options = {"escape": '"', "header": "true", "enforceSchema": "false", **spec.options}
    return {**options, "timeZone": spec.timezone} if spec.timezone else options


def _csv(session: SparkSession, reader: Any, spec: SourceSpec, path: str | list[str]) -> DataFrame:
    """Spark's reader, which keeps the text of a record that does not fit.

    It looks only at the columns that the query uses, filters pushed into it included; here `__bad` uses all.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    session.conf.set("spark.sql.csv.filterPushdown.enabled", "false")
    declared = cast("StructType", StructType.fromDDL(spec.schema))
    options = {**_csv_options(spec), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW}
    schema = StructType([*declared.fields, StructField(RAW, StringType())])
    frame = reader.format("csv").options(**options).schema(schema).load(path)
    names = [field.name for field in declared.fields]
    reason = f.when(f.col(RAW).isNotNull(), _csv_reason(declared, options)).when(
        _nothing(names), "it has no value in any column"
    )
    return _with_bad(frame, names, reason, f.col(RAW).cast("binary"))


def _csv_reason(declared: StructType, options: Mapping[str, str]) -> Column:
    """Which column a record does not match, and with which text: Spark leaves that one NULL and reads the others."""
    from pyspark.sql import functions as f

    texts = ", ".join(f"{quoted(field.name)} string" for field in declared.fields)
    of_fields = {key: value for key, value in options.items() if key.lower() in _CSV_FIELDS}
    read = f.from_csv(f.col(RAW), texts, of_fields)
    wrong = []
    for field in declared.fields:
        text = read[field.name]
        shown = f.when(f.length(text) > _SHOWN, f.concat(f.left(text, f.lit(_SHOWN)), f.lit("..."))).otherwise(text)
        said = f.concat(f.lit(f"'{field.name}' is not of type {field.dataType.simpleString()}: "), shown)
        wrong.append(f.when(_named(field.name).isNull() & text.isNotNull(), said))
    return f.coalesce(*wrong, f.lit("the number of fields does not match the declared columns"))


def _columns(reader: Any, spec: SourceSpec, path: str | list[str]) -> DataFrame:
    """Formats with a schema of their own: a record is as it is, and what can be wrong is a file."""
    from pyspark.sql import functions as f

    frame: DataFrame = reader.format(spec.format).options(**spec.options).schema(spec.schema).load(path)
    names = frame.columns
    if spec.format == "avro":
        # Columns that a file lacks are NULL; where it lacks all, it is another kind of file.
        return _with_bad(frame, names, f.when(_nothing(names), "it has none of the declared columns"), f.lit(None))
    return frame.select(*(_named(name) for name in names), f.expr(f"{_FILE} as {ORIGIN}"))


def _with_bad(frame: DataFrame, names: list[str], reason: Column, raw: Column) -> DataFrame:
    from pyspark.sql import functions as f

    bad = f.struct(reason.alias("reason"), raw.cast("binary").alias("raw"))
    return frame.select(
        *(_named(name) for name in names), f.expr(f"{_FILE} as {ORIGIN}"), f.when(reason.isNotNull(), bad).alias(BAD)
    )


def _named(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(quoted(name))


def _nothing(names: list[str]) -> Column:
    from pyspark.sql import functions as f

    found = f.lit(True)
    for name in names:
        found &= _named(name).isNull()
    return found
