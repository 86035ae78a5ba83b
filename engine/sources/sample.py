"""The columns of a source as they are found: asked of a registry or of files, or seen in a sample of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError
from engine.sources import avro, iceberg, kafka, kind_of
from engine.sources.files import file_source, listing
from engine.sources.spec import BAD, Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
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
    """
    kind = kind_of(spec.format)
    if kind is file_source and spec.format != "text":
        found: DataFrame = _of_files(session, spec, place)
    elif kind is kafka and not kind.columns(spec):
        found = _of_json(session, spec, place)
    else:
        if kind is None:
            raise ValueError(spec.format)
        frame = kind.read_batch(session, spec, place)
        found = frame.drop(BAD)
    if not found.columns:
        message = f"the source '{spec.name}' has no records to infer columns from"
        raise SetupError("sample-empty", message, "Land or send records, and run the command again.")
    return found.schema


def _of_files(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    spec = file_source.with_connection(spec, place)
    options = {"recursiveFileLookup": "true", "inferTimestamp": "true", **spec.options}
    if spec.format == "csv":
        options = {"header": "true", "inferSchema": "true", "escape": '"', **options}
    return session.read.format(spec.format).options(**options).load(listing.for_spark(spec, place))


def _of_json(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    settings: dict[str, Any] = {**spec.settings, "value": {"format": "string"}}
    as_text = replace(spec, schema="", settings=settings)
    rows = kafka.read_batch(session, as_text, place).where(f"{BAD} is null").select("value").limit(SAMPLE).collect()
    texts = session.sparkContext.parallelize([row[0] for row in rows], 1)
    return session.read.options(inferTimestamp="true", mode="DROPMALFORMED").json(texts)
