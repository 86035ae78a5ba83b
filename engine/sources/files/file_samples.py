"""A part of the files of a source: the newest of them, and the columns that are seen in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.sources import listing
from engine.sources.files import file_formats, folder_columns
from engine.sources.inferred_types import as_strings, fit_types, no_arrays, of_texts
from engine.sources.spec import Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

# Of so many files the newest time is looked for, by modification time. Late rows may come in a newer file than the
# newest row; not in so many.
NEWEST = 100
# Of so many lines the columns of change records are looked for.
_LINES = 1000


def newest(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame | None:
    """The newest files of a source with its connection; those that were archived after reading count as well."""
    archive = spec.settings.get("archive_path")
    listed_files = listing.listed(session, spec, place)
    if archive and (place.root / str(archive)).exists():
        listed_files += listing.listed(session, replace(spec, settings={**spec.settings, "path": archive}), place)
    newest_first = sorted((file for file in listed_files if file.size), key=lambda file: file.modified, reverse=True)
    if not newest_first:
        return None
    paths = [_for_spark(file) for file in newest_first[:NEWEST]]
    return file_formats.read(session, session.read, spec, paths, place)


def _for_spark(file: listing.Listed) -> str:
    return listing.exactly(file.path) if isinstance(file.path, Path) else file.uri


def change_records(session: SparkSession, spec: SourceSpec, place: Place) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of some lines of a source with its connection; lines of another form are left out."""
    listing.check_listed(session, spec, place)
    reader = session.read.options(recursiveFileLookup="true").format("text")
    records: list[tuple[bytes | None, bytes | None]] = []
    for row in reader.load(listing.for_spark(spec, place)).select("value").limit(_LINES).collect():
        try:
            line = json.loads(row[0])
        except ValueError:
            continue
        if isinstance(line, dict) and {"key", "value"} <= set(line):
            records.append((json.dumps(line["key"]).encode(), json.dumps(line["value"]).encode()))
    return records


def sampled(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    """The columns of the files of a source with its connection, which are looked at as a whole.

    Raises:
        RunError: `source-unreadable`, a record of JSON is an array.
    """
    listing.check_listed(session, spec, place)
    path, options = listing.for_spark(spec, place), {"recursiveFileLookup": "true", **spec.options}
    if spec.format == "json":
        lines = session.read.options(recursiveFileLookup="true").format("text").load(path)
        no_arrays(lines.selectExpr("value", "_metadata.file_path as place"), spec.name)
    if spec.format == "csv":
        options = {"header": "true", "escape": '"', **options}

    def read(**more: str) -> DataFrameReader:
        return session.read.format(spec.format).options(**{**options, **more})

    inferred = read(inferSchema="true", inferTimestamp="true").load(path).schema
    if spec.format in {"csv", "json"}:
        texts = read(inferSchema="false").schema(cast("StructType", as_strings(inferred))).load(path)
        inferred = fit_types(texts, inferred, json=spec.format == "json")
    return _with_folders(inferred, folder_columns.values_in(_uris(session, spec, place), spec, place))


def _uris(session: SparkSession, spec: SourceSpec, place: Place) -> list[str]:
    return [file.uri for file in listing.listed(session, spec, place)]


def _with_folders(columns: StructType, values: Mapping[str, list[str | None]]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    own = {name.lower() for name in columns.fieldNames()}
    of_folders = [StructField(name, of_texts(texts)) for name, texts in values.items() if name.lower() not in own]
    return StructType([*columns.fields, *of_folders])
