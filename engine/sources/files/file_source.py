"""Files as sources: JSON lines, CSV, text, Parquet, ORC and Avro; a stream reads each file once, by modification time.

Spark silently skips files seven days older than the newest (maxFileAge, measured); here only `max_file_age` does, and
they are counted. What is not a record as declared is a bad record, not a row of NULLs as by Spark's default.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engine import local_paths
from engine.errors import SetupError
from engine.object_store.s3_settings import is_s3
from engine.schema import ValueForm
from engine.schema.format_keys import FILE_KEYS
from engine.sources import listing
from engine.sources.credentials import identified, masked, masked_options
from engine.sources.files import file_formats, file_schema, local_files, s3_files
from engine.sources.inferred_types import as_strings, fit_types, no_arrays, of_texts
from engine.sources.spec import (
    Place,
    Resumption,
    SourceSpec,
    SpecFault,
    connection_leads,
    connection_line,
    with_connection_options,
)  # fmt: skip
from engine.sources.traits import ColumnsBy, FileTraits, KnownNow, SourceTraits, normalized
from engine.sources.values.declared_value import change_feed

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

    Raises RunError: `source-unreadable`, a record of JSON is an array.
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
    return _with_folders(inferred, file_formats.values_in(_uris(session, spec, place), spec, place))


def _uris(session: SparkSession, spec: SourceSpec, place: Place) -> list[str]:
    return [file.uri for file in listing.listed(session, spec, place)]


def _with_folders(columns: StructType, values: Mapping[str, list[str | None]]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    own = {name.lower() for name in columns.fieldNames()}
    of_folders = [StructField(name, of_texts(texts)) for name, texts in values.items() if name.lower() not in own]
    return StructType([*columns.fields, *of_folders])


FORMATS: tuple[str, ...] = ("json", "csv", "parquet", "avro", "orc", "text")
KEYS: Mapping[str, ValueForm] = FILE_KEYS.forms
ONE_OF: tuple[tuple[str, ...], ...] = ()
MEANING: tuple[str, ...] = ("path", "value")
REPLAYABLE = True
LISTED = False
_NO_AGE_LIMIT = "36500d"
_OWN_OPTIONS = {
    "mode", "path", "maxfilespertrigger", "latestfirst", "maxfileage", "timezone", "cleansource", "sourcearchivedir",
    "columnnameofcorruptrecord", "ignorecorruptfiles", "ignoremissingfiles", "filenameonly",
}  # fmt: skip
_KEYS_OF = {
    "path": "Write 'path:' next to 'format:'.",
    "maxfilespertrigger": "Write 'max_files_per_trigger:' next to 'format:'.",
    "maxfileage": "Write 'max_file_age:' next to 'format:'.",
    "timezone": "Write 'timezone:' next to 'format:'.",
    "cleansource": "Write 'after_reading: archive' or 'after_reading: delete' next to 'format:'.",
    "sourcearchivedir": "Write 'archive_path:' next to 'format:'.",
    "mode": "Write 'on_bad_record:' next to 'format:'.",
}
_CHOICES = {key.name: key.choices for key in FILE_KEYS.keys if key.choices}
_OF_STREAMS = ("max_files_per_trigger", "max_file_age", "on_changed_file", "after_reading")


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    if "path" not in spec.settings:
        hint = "Add 'path: <folder>', relative to the project."
        yield SpecFault(("path",), f"source '{spec.name}' has no 'path'", hint, "missing-key")
    for key in spec.options:
        if key.lower() in _OWN_OPTIONS:
            message = f"the option '{key}' is set by Headrace"
            yield SpecFault(("options", key), message, _KEYS_OF.get(key.lower(), "Remove it."), at_key=True)
    yield from file_formats.faults(spec, _OWN_OPTIONS)
    if "value" in spec.settings:
        yield from file_formats.value_faults(spec)
    for key, allowed in _CHOICES.items():
        if spec.settings.get(key, allowed[0]) not in allowed:
            message = f"'{key}' cannot be '{spec.settings[key]}'"
            yield SpecFault((key,), message, f"Allowed: {', '.join(allowed)}.")
    for key in _OF_STREAMS if spec.stream is False else ():
        if key in spec.settings:
            message = f"'{key}' is for streams, but '{spec.name}' has stream: false"
            yield SpecFault((key,), message, "Remove one of them.", "setting-conflict", at_key=True)
    yield from _clearing_faults(spec)


def _clearing_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    path, archive = str(spec.settings.get("path", "")), spec.settings.get("archive_path")
    after = spec.settings.get("after_reading")
    if after == "archive" and archive is None:
        hint = "Add 'archive_path: <folder>'."
        yield SpecFault(("after_reading",), "after_reading: archive needs 'archive_path'", hint, "setting-needs")
    if archive is not None and after != "archive":
        message = "'archive_path' applies only to after_reading: archive"
        yield SpecFault(("archive_path",), message, "Add after_reading: archive, or remove it.", "setting-needs")
    if archive is not None and f"{archive}/".startswith(f"{listing.base(path).rstrip('/')}/"):
        message = f"the archive '{archive}' is inside '{path}', and would be re-read"
        yield SpecFault(("archive_path",), message, "Use a folder outside it.")
    if after is not None and (listing.is_uri(path) or listing.is_uri(str(archive or ""))):
        message = "after_reading is not supported for a URI"
        yield SpecFault(("after_reading",), message, "Use a lifecycle rule of the object store.", "not-supported")


def jars(spec: SourceSpec) -> tuple[str, ...]:
    return ("avro",) if spec.format == "avro" else ()


def columns(spec: SourceSpec) -> str | None:
    return "value string" if spec.format == "text" else None


def origin(_: SourceSpec) -> str:
    return "struct<file_path: string, file_modification_time: timestamp>"


def location(spec: SourceSpec) -> str:
    return str(spec.settings.get("path", ""))


def check(spec: SourceSpec, place: Place) -> None:
    """Make sure that there is something to read; of places that only Spark reaches nothing is known.

    Raises:
        ProjectError: `unknown-connection`, `connection-settings`.
        SetupError: `s3-client`, `s3-denied`, `s3-missing`, `s3-unreachable`.
        SetupError: `source-folder-missing` if the folder does not exist.
        SetupError: `source-path` if it, or what is below it, cannot be read: a device, a link that leads out.
    """
    with_connection(spec, place)
    folder = listing.folder(spec, place)
    where = masked(location(spec), "path")
    missing = listing.base(where) or where
    if place.store is not None and is_s3(missing) and not s3_files.exists(missing, place.store()):
        hint = "Correct 'path' of the source, or write its first file: an object store has no empty folders."
        message = f"the folder '{missing}' of source '{spec.name}' does not exist"
        raise SetupError("source-folder-missing", message, hint)
    if folder is not None and not folder.exists():
        hint = f"Correct 'path' of the source, or create the folder: mkdir -p {shlex.quote(missing)}"
        message = f"the folder '{missing}' of source '{spec.name}' does not exist"
        raise SetupError("source-folder-missing", message, hint)
    listing.check_here(spec, place)


def position(session: SparkSession, spec: SourceSpec, place: Place) -> dict[str, Any]:
    """How many files Spark would read, and a hash of their paths, sizes and times."""
    return listing.position_of(listing.listed(session, spec, place))


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    options = {**_options(spec, stream=stream), **masked_options(file_formats.script_options(spec))}
    return [
        f"spark.{'readStream' if stream else 'read'}.format({json.dumps(spec.format)})",
        f".schema({json.dumps(spec.schema or columns(spec), ensure_ascii=False)})",
        *(f".option({json.dumps(k)}, {json.dumps(v, ensure_ascii=False)})" for k, v in options.items()),
        *connection_line(spec),
        f".load({json.dumps(masked(location(spec), 'path'), ensure_ascii=False)})",
    ]


def _options(spec: SourceSpec, *, stream: bool) -> dict[str, str]:
    options = {"recursiveFileLookup": "true"}
    if stream:
        age = spec.settings.get("max_file_age")
        options["maxFileAge"] = _spark_duration(age) if age else _NO_AGE_LIMIT
        if limit := spec.settings.get("max_files_per_trigger"):
            options["maxFilesPerTrigger"] = str(limit)
    return options


def with_connection(spec: SourceSpec, place: Place) -> SourceSpec:
    """The source with the options of its connection. Raises ProjectError: `connection-settings`."""
    return with_connection_options(spec, place, _OWN_OPTIONS)


def _spark_duration(text: str) -> str:
    number, unit = text.split()
    return f"{int(number) * 7}d" if unit.startswith("week") else f"{number}{unit[0].replace('m', 'min')}"


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """All rows as they are now.

    Raises:
        RunError: `source-unreadable` if the schema of a file does not fit.
        SetupError: `source-path` if a link leads out of the folder.
    """
    spec = with_connection(spec, place)
    listing.check_listed(session, spec, place)
    file_schema.check(session, spec, place)
    reader = session.read.options(**_options(spec, stream=False))
    return file_formats.read(session, reader, spec, listing.for_spark(spec, place), place)


def read_files(session: SparkSession, spec: SourceSpec, place: Place, uris: Collection[str]) -> DataFrame:
    """Return all rows of some of a source's files, given by URI as Hadoop prints them."""
    spec = with_connection(spec, place)
    reader = session.read.options(**_options(spec, stream=False))
    return file_formats.read(session, reader, spec, [local_paths.literally(uri) for uri in sorted(uris)], place)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    spec = with_connection(spec, place)
    reader = session.readStream.options(**_options(spec, stream=True))
    return file_formats.read(session, reader, spec, listing.for_spark(spec, place), place)


def resume(*_: object) -> Resumption:
    """What was read is compared with the folder where the checkpoint is known: `runtime.inputs.source_file_check`."""
    return Resumption()


def _placed(spec: SourceSpec, place: Place) -> dict[str, Any]:
    path = str(spec.settings.get("path", ""))
    inside = not listing.is_uri(path) and not path.startswith("/")
    where = path if listing.is_uri(path) else local_paths.hadoop(place.root / path)
    place_facts = {"location": identified(normalized(where), "location")} | (
        {"root": str(place.root)} if inside else {}
    )
    return {**place_facts, **connection_leads(spec, place)}


def _begun_at(spec: SourceSpec, _: int | None) -> SourceSpec:
    return spec


def _stays(spec: SourceSpec) -> bool:
    return "after_reading" not in spec.settings


def _known_now(spec: SourceSpec, place: Place) -> KnownNow:
    files = listing.listed_here(spec, place)
    return KnownNow(files=tuple(files) if files is not None else None)


def _folder(spec: SourceSpec, place: Place) -> str | None:
    top = listing.folder(spec, place)
    return str(top) if top is not None else None


def _newest(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame | None:
    return newest(session, with_connection(spec, place), place)


def _change_records(session: SparkSession, spec: SourceSpec, place: Place) -> list[tuple[bytes | None, bytes | None]]:
    return change_records(session, with_connection(spec, place), place)


def _sampled(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    return sampled(session, with_connection(spec, place), place)


_TRAITS = SourceTraits(
    files=FileTraits(
        read=read_files,
        has_schemas=file_schema.is_in_files,
        misfits=file_schema.misfits,
        unfit=file_schema.unfit,
        unreadable=local_files.unsuitable,
        columns_in_folders=file_formats.declared_in,
    ),
    change_feed=change_feed,
    change_records=_change_records,
    placed=_placed,
    begun_at=_begun_at,
    skipped_by="file_modification_time",
    start_is_repeatable=True,
    rereads=_stays,
    known_now=_known_now,
    folder=_folder,
    newest=_newest,
    sampled=_sampled,
)
TRAITS: Mapping[str, SourceTraits] = {
    "json": replace(_TRAITS, columns_by=ColumnsBy.NAME),
    "csv": replace(_TRAITS, columns_by=ColumnsBy.POSITION, caseless=True),
    "parquet": replace(_TRAITS, columns_by=ColumnsBy.NAME, caseless=True),
    "avro": replace(_TRAITS, columns_by=ColumnsBy.NAME),
    "orc": replace(_TRAITS, columns_by=ColumnsBy.NAME, caseless=True),
    # A line is its one column.
    "text": replace(_TRAITS, caseless=True, knows_columns=True, sampled=None),
}
