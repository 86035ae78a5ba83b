"""Iceberg tables as sources: foreign ones, and those of other projects, in the target's catalog.

What a stream has read of a table is compared in `plan.tables.upstream_tables`, for models and sources alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.errors import RunError, SetupError, StateError
from engine.lake import snapshot_history
from engine.lake.lake_reader import Lake, TableColumn
from engine.lake.snapshot_history import SKIP_DELETES, Start, changed_columns, table_stream
from engine.lake.table_facts import TableFacts
from engine.relations import quoted
from engine.schema import ValueForm
from engine.schema.format_keys import ICEBERG_KEYS
from engine.sources.spec import (
    ORIGIN,
    Place,
    Resumption,
    SourceSpec,
    SpecFault,
    begun_at,
    reader_faults,
    starting_milliseconds,
)
from engine.sources.traits import TABLE, ColumnsBy, KnownNow, SourceTraits, StreamIdentity, TableTraits
from engine.spark_options import ICEBERG_READ

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


STARTS = ("starting_timestamp", "starting_snapshot")
_OF_STREAMS = (*STARTS, "on_upstream_delete")
_DELETES = ICEBERG_KEYS.choices("on_upstream_delete")
# A namespace and a name at least; the catalog may be written before them.
_LEAST_PARTS = 2
# Options that decide which rows are read; with `branch` a stream silently reads main (measured, Iceberg 1.12.0).
_CHOOSING = ("branch", "tag", "snapshot-id", "as-of-timestamp", "start-snapshot-id", "end-snapshot-id", "versionasof",
             "timestampasof")  # fmt: skip
_OF_CHANGELOGS = ("start-timestamp", "end-timestamp")
_STREAMING = ("stream-from-timestamp", "streaming-", "async-micro-batch-planning-enabled")
# A last part of a name that Iceberg takes for a branch, a tag, a snapshot or a time.
_SELECTOR = re.compile(r"(?:branch|tag)_.*|(?:snapshot_id|at_timestamp)_\d+")


def name_parts(spec: SourceSpec) -> list[str]:
    return [part.strip("`") for part in str(spec.settings.get("table", "")).split(".")]


def faults(spec: SourceSpec) -> Iterator[SpecFault]:
    yield from _name_faults(spec)
    settings = spec.settings
    if all(key in settings for key in STARTS):
        message = "'starting_timestamp' and 'starting_snapshot' exclude each other"
        yield SpecFault(("starting_snapshot",), message, "Remove one of them.", "setting-conflict", at_key=True)
    if "starting_timestamp" in settings and starting_milliseconds(settings) is None:
        message = f"'{settings['starting_timestamp']}' is not a timestamp"
        yield SpecFault(
            ("starting_timestamp",),
            message,
            "Write '2024-05-01 10:00:00' (UTC), or add an offset: '2024-05-01 10:00:00+02:00'.",
        )
    if "starting_snapshot" in settings and not str(settings["starting_snapshot"]).isdecimal():
        message = f"'{settings['starting_snapshot']}' is not a snapshot id"
        yield SpecFault(("starting_snapshot",), message, "Write its number: select snapshot_id from <table>.snapshots.")
    if settings.get("on_upstream_delete", "fail") not in _DELETES:
        message = f"'on_upstream_delete' cannot be '{settings['on_upstream_delete']}'"
        yield SpecFault(("on_upstream_delete",), message, f"Allowed: {', '.join(_DELETES)}.")
    for key in _OF_STREAMS if spec.stream is False else ():
        if key in settings:
            message = f"'{key}' is for streams, but '{spec.name}' has stream: false"
            yield SpecFault((key,), message, "Remove one of them.", "setting-conflict", at_key=True)
    if spec.timezone:
        message = "'timezone' does not apply to tables, whose timestamps have a type"
        yield SpecFault(("timezone",), message, "Remove it.", "setting-conflict", at_key=True)
    yield from _option_faults(spec)


def _name_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    if not spec.settings.get("table"):
        message = f"source '{spec.name}' has no 'table'"
        yield SpecFault(("table",), message, "Add 'table: <namespace>.<name>'.", "missing-key")
        return
    table, names = spec.settings["table"], name_parts(spec)
    if _SELECTOR.fullmatch(names[-1]):
        message = f"'{table}' names a branch, tag or snapshot: a stream of it would silently read main"
        hint = "Set the table itself; 'starting_snapshot' and 'starting_timestamp' set where a stream starts."
        yield SpecFault(("table",), message, hint, "not-supported")
    elif len(names) < _LEAST_PARTS or not all(names):
        message = f"'{table}' is not a table name"
        yield SpecFault(("table",), message, "Write <namespace>.<name>, in the catalog of the target.")


def _option_faults(spec: SourceSpec) -> Iterator[SpecFault]:
    streaming = [key.lower() for key in spec.options if key.lower().startswith(_STREAMING)]
    reported = ("path", *_CHOOSING, *_OF_CHANGELOGS, *streaming)
    yield from reader_faults(spec, ICEBERG_READ, "Iceberg's reader", reserved=reported)
    for key in spec.options:
        if key.lower() in _CHOOSING:
            message = f"the option '{key}' is not supported in this version: a stream would silently read main"
            hint = "Remove it; 'starting_snapshot' and 'starting_timestamp' set where a stream starts."
            yield SpecFault(("options", key), message, hint, "not-supported", at_key=True)
        elif key.lower() in _OF_CHANGELOGS:
            message = f"the option '{key}' is for changelogs, which are not supported"
            yield SpecFault(("options", key), message, "Remove it.", "not-supported", at_key=True)
        elif key.lower() == "path":
            message = "the option 'path' is set by Headrace"
            yield SpecFault(("options", key), message, "Write 'table:' next to 'format:'.", at_key=True)
        elif key.lower().startswith(_STREAMING):
            message = f"the option '{key}' is set by Headrace"
            hint = "Remove it; 'starting_timestamp', 'starting_snapshot' and 'on_upstream_delete' are keys."
            yield SpecFault(("options", key), message, hint, at_key=True)


FORMATS: tuple[str, ...] = ("iceberg",)
KEYS: Mapping[str, ValueForm] = ICEBERG_KEYS.forms
ONE_OF: tuple[tuple[str, ...], ...] = (STARTS,)
MEANING: tuple[str, ...] = ("table",)
REPLAYABLE = True
LISTED = False

_NO_CATALOG = "Add 'catalog' to the target in project.yml."
# Numbers hold all values of these.
_WIDER = {("int", "bigint"), ("float", "double")}


def jars(_: SourceSpec) -> tuple[str, ...]:
    return ()


def columns(_: SourceSpec) -> str:
    return ""


def origin(_: SourceSpec) -> str:
    return "struct<table: string>"


def location(spec: SourceSpec) -> str:
    return str(spec.settings.get("table", ""))


def full_name(spec: SourceSpec, place: Place) -> str:
    catalog, schema, name = table_parts(spec, place)
    return f"{catalog}.{schema}.{name}"


def table_parts(spec: SourceSpec, place: Place) -> tuple[str, str, str]:
    if place.catalog is None:
        raise SetupError("catalog-unusable", f"no catalog is configured for the source '{spec.name}'", _NO_CATALOG)
    *levels, name = name_parts(spec)
    if len(levels) > 1 and levels[0] == place.catalog.name:
        levels = levels[1:]
    return place.catalog.name, ".".join(levels), name


def facts(spec: SourceSpec, place: Place) -> TableFacts:
    """The table as it is. Raises SetupError: `source-table`, there is none; `catalog-unusable`."""
    table = _lake(place).table(*table_parts(spec, place)[1:])
    if table is None:
        raise _missing(spec, place)
    return table


def _lake(place: Place) -> Lake:
    if place.catalog is None:
        raise SetupError("catalog-unusable", "no catalog is configured", _NO_CATALOG)
    return Lake(place.catalog)


def _missing(spec: SourceSpec, place: Place) -> SetupError:
    _, schema, _ = table_parts(spec, place)
    message = f"the table {full_name(spec, place)} of source '{spec.name}' does not exist"
    tables = _lake(place).names(schema)
    existing_tables = f"'{schema}' has {', '.join(sorted(tables)[:10])}" if tables else f"'{schema}' has no tables"
    return SetupError("source-table", message, f"Correct 'table', or create it first; {existing_tables}.")


def check(spec: SourceSpec, place: Place) -> None:
    """Make sure that the table exists. Raises SetupError: `source-table`; `catalog-unusable`."""
    facts(spec, place)


def position(_: SparkSession, spec: SourceSpec, place: Place) -> dict[str, Any]:
    return facts(spec, place).position()


def columns_now(spec: SourceSpec, place: Place) -> tuple[TableColumn, ...]:
    """The columns of the table, without a JVM. Raises SetupError: `source-table`; `catalog-unusable`."""
    columns = _lake(place).columns(*table_parts(spec, place)[1:])
    if columns is None:
        raise _missing(spec, place)
    return columns


def committed_at(spec: SourceSpec, place: Place) -> datetime | None:
    """When rows were last added, by the time of the snapshot; None: there is no such snapshot any more."""
    added = (s for s in facts(spec, place).history if s.operation in snapshot_history.ADDING)
    newest = next(added, None)
    return datetime.fromtimestamp(newest.at / 1000, UTC) if newest else None


def ignores_deletes(spec: SourceSpec) -> bool:
    return spec.settings.get("on_upstream_delete") == "ignore"


def start(spec: SourceSpec, table: TableFacts) -> Start | None:
    """Where the declaration says that a stream begins; None: with the first row.

    Raises StateError: `upstream-history` if the table does not know (any more) what was committed from then on.
    """
    settings = spec.settings
    if "starting_timestamp" in settings:
        return snapshot_history.from_time(spec.name, table, starting_milliseconds(settings))
    if "starting_snapshot" in settings:
        return snapshot_history.from_snapshot(spec.name, table, int(settings["starting_snapshot"]))
    return None


def script(spec: SourceSpec, *, stream: bool) -> list[str]:
    options = dict(spec.options)
    if stream and "starting_timestamp" in spec.settings:
        options[snapshot_history.FROM] = str(starting_milliseconds(spec.settings))
    if stream and ignores_deletes(spec):
        options[SKIP_DELETES] = "true"
    return [
        f'spark.{"readStream" if stream else "read"}.format("iceberg")',
        *(f".option({json.dumps(k)}, {json.dumps(v, ensure_ascii=False)})" for k, v in options.items()),
        f".load({json.dumps(location(spec), ensure_ascii=False)})",
    ]


def read_batch(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """The rows of the current snapshot; in a stream each micro-batch sees those of its moment."""
    frame = session.read.format("iceberg").options(**spec.options).load(full_name(spec, place))
    return as_declared(frame, spec, place)


def read_stream(session: SparkSession, spec: SourceSpec, place: Place) -> DataFrame:
    """The rows of each commit, from the first that the table knows; a model's stream begins as its generation says."""
    name = full_name(spec, place)
    frame = table_stream(session, name, None, skip_deletes=ignores_deletes(spec), options=spec.options)
    return as_declared(frame, spec, place)


def as_declared(frame: DataFrame, spec: SourceSpec, place: Place) -> DataFrame:
    """The declared columns of a frame over the table, or all it has, and where the rows came from.

    Raises RunError: `source-columns` with each column that is missing, or has another type.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    if spec.schema:
        declared_struct: Any = StructType.fromDDL(spec.schema)
        have = {field.name.lower(): field.dataType for field in frame.schema.fields}
        wrong = [
            f"{field.name} {field.dataType.simpleString()}: "
            + (f"the table has {table_type.simpleString()}" if table_type else "the table has no such column")
            for field in declared_struct.fields
            if not _holds(field.dataType, table_type := have.get(field.name.lower()))
        ]
        if wrong:
            message = (
                f"{full_name(spec, place)} does not match the declaration of source '{spec.name}': {'; '.join(wrong)}"
            )
            hint = f"'engine source inspect {spec.name}' prints the declaration with the columns of the table."
            raise RunError("source-columns", message, hint)
        frame = frame.select(*(f.col(quoted(i.name)).cast(i.dataType).alias(i.name) for i in declared_struct.fields))
    table = f.lit(full_name(spec, place)).alias("table")
    return frame.select("*", f.struct(table).alias(ORIGIN))


def _holds(declared_type: Any, table_type: Any) -> bool:
    from pyspark.sql.types import DecimalType

    if table_type is None:
        return False
    names = table_type.simpleString(), declared_type.simpleString()
    if isinstance(declared_type, DecimalType) and isinstance(table_type, DecimalType):
        return declared_type.scale == table_type.scale and declared_type.precision >= table_type.precision
    return names[0] == names[1] or names in _WIDER


def resume(
    _: SparkSession, spec: SourceSpec, place: Place, stored_facts: Mapping[str, Any], __: Sequence[Mapping[str, Any]]
) -> Resumption:
    """Compare the columns of an undeclared table with those that were there at the last start; new ones are fine.

    Raises StateError: `source-columns` with each dropped column and other type; nothing was read.
    """
    if spec.schema:
        return Resumption()
    now = {column.name: column.type for column in columns_now(spec, place)}
    if (
        changed := changed_columns(full_name(spec, place), "<model>", stored_facts.get("columns", {}), now)
    ) is not None:
        raise StateError.from_diagnostics((changed,))
    return Resumption({"columns": now})


def _identity(_: str, settings: Mapping[str, Any]) -> StreamIdentity:
    return StreamIdentity(TABLE, {"table": str(settings.get("table", ""))})


def _placed(spec: SourceSpec, place: Place) -> dict[str, str]:
    return {"table": full_name(spec, place)}


def _table_now(spec: SourceSpec, place: Place) -> tuple[tuple[str, str, str], TableFacts]:
    return table_parts(spec, place), facts(spec, place)


def _stream_from(
    session: SparkSession, spec: SourceSpec, place: Place, start: Start, has_begun: bool, skip_deletes: bool
) -> DataFrame:
    name, options = full_name(spec, place), spec.options
    frame = table_stream(session, name, start, has_begun=has_begun, skip_deletes=skip_deletes, options=options)
    return as_declared(frame, spec, place)


def _known_now(spec: SourceSpec, place: Place) -> KnownNow:
    parts, table = _table_now(spec, place)
    columns = {} if spec.schema else {column.name: column.type for column in columns_now(spec, place)}
    return KnownNow(table=table, parts=parts, columns=columns)


def _described(spec: SourceSpec, place: Place) -> list[tuple[str, str, str]]:
    return [(column.name, column.type, column.doc) for column in columns_now(spec, place)]


TRAITS: Mapping[str, SourceTraits] = {
    "iceberg": SourceTraits(
        table=TableTraits(now=_table_now, start=start, stream=_stream_from, as_declared=as_declared),
        columns_by=ColumnsBy.NAME,
        caseless=True,
        marks_bad=False,
        identity=_identity,
        placed=_placed,
        begun_at=begun_at,
        start_is_repeatable=True,
        known_now=_known_now,
        committed_at=committed_at,
        knows_columns=True,
        columns_now=_described,
    )
}
