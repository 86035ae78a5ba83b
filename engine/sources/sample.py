"""The columns of a source as they are found: asked of a registry or of files, or seen in a sample of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from engine.errors import RunError, SetupError
from engine.sources import avro, iceberg, kafka, kind_of
from engine.sources.files import file_source, listing
from engine.sources.inferred_types import as_strings, kept
from engine.sources.spec import BAD, Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

# Records that are looked at; files are looked at as a whole.
SAMPLE = 1000


def known_columns(spec: SourceSpec, place: Place) -> tuple[avro.AvroColumn, ...] | None:
    """The columns that can be had without looking at records, and without Java; None if they cannot.

    Raises:
        SetupError: a registry cannot be asked, or has no such schema; there is no such table.
    """
    if kind_of(spec.format) is iceberg:
        return tuple(avro.AvroColumn(c.name, c.type, c.doc) for c in iceberg.columns_now(spec, place))
    value = spec.settings.get("value")
    if kind_of(spec.format) is kafka and isinstance(value, Mapping) and value.get("format") == "avro":
        return avro.columns_now(replace(spec, schema=""), value, place)
    return None


def sampled(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    """The columns of a sample of records.

    Raises:
        SetupError: `sample-empty`, there are none.
        RunError: `source-unreadable`, a record of JSON is an array.
    """
    kind = kind_of(spec.format)
    if kind is file_source and spec.format != "text":
        found = _of_files(session, spec, place)
    elif kind is kafka and not kind.columns(spec):
        found = _of_json(session, spec, place)
    else:
        if kind is None:
            raise ValueError(spec.format)
        found = kind.read_batch(session, spec, place).drop(BAD).schema
    if not found.fields:
        message = f"the source '{spec.name}' has no records to infer columns from"
        raise SetupError("sample-empty", message, "Land or send records, and run the command again.")
    return found


def _of_files(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    spec = file_source.with_connection(spec, place)
    listing.check_listed(session, spec, place)
    path, options = listing.for_spark(spec, place), {"recursiveFileLookup": "true", **spec.options}
    if spec.format == "json":
        lines = session.read.options(recursiveFileLookup="true").format("text").load(path)
        _no_arrays(lines.selectExpr("value", "_metadata.file_path as place"), spec)
    if spec.format == "csv":
        options = {"header": "true", "escape": '"', **options}

    def read(**more: str) -> DataFrameReader:
        return session.read.format(spec.format).options(**{**options, **more})

    found = read(inferSchema="true", inferTimestamp="true").load(path).schema
    if spec.format not in {"csv", "json"}:
        return found
    texts = read(inferSchema="false").schema(cast("StructType", as_strings(found))).load(path)
    return kept(texts, found, json=spec.format == "json")


def _of_json(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    settings: dict[str, Any] = {**spec.settings, "value": {"format": "string"}}
    as_text = replace(spec, schema="", settings=settings)
    rows = kafka.read_batch(session, as_text, place).where(f"{BAD} is null").select("value").limit(SAMPLE).collect()
    frame = session.createDataFrame([(row[0], "a record") for row in rows], "value string, place string")
    _no_arrays(frame, spec)
    lines = session.sparkContext.parallelize([row[0] for row in rows], 1)
    reader = session.read.options(inferTimestamp="true", mode="DROPMALFORMED")
    found = reader.json(lines).schema
    return kept(reader.schema(cast("StructType", as_strings(found))).json(lines), found, json=True)


def _no_arrays(lines: DataFrame, spec: SourceSpec) -> None:
    """Raise the error of records that are arrays: Spark infers columns from their items, and a build reads objects."""
    if arrays := lines.where(r"value rlike '^\\s*\\['").select("place").take(1):
        where = listing.decoded(arrays[0][0])
        message = f"'{spec.name}' cannot be read: {where} is a JSON array, or has one in a line"
        hint = "Write one object per line, without brackets and commas around them: jq -c '.[]' x.json > y.json"
        raise RunError("source-unreadable", message, hint)
