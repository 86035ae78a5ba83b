"""Avro values: how they are declared, their columns, and the decoding of records; a format of `engine.sources.values`.

`reader_schema` has what is pinned with the registry before the first record, `decode_frames` the decoding,
`schema_resolution` the way from the writer's schema into the reader's, and `unknown_schemas` the part that runs in
Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.schema import ValueForm
from engine.schema.format_keys import AVRO_VALUE
from engine.sources.avro import reader_schema as declared
from engine.sources.avro.decode_frames import told_by_worker
from engine.sources.avro.reader_schema import AvroReading, prepare
from engine.sources.avro_schema.avro_columns import AvroColumn, ddl, quoted, read_schema
from engine.sources.avro_schema.avro_columns import columns as columns_of
from engine.sources.avro_schema.avro_types import to_json
from engine.sources.avro_schema.parse_schema import parse
from engine.sources.registry import Registry, RegistrySettings, read_settings
from engine.sources.spec import Place, SourceSpec, SpecFault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA_FILE = "schema_file"
# The file's text; the compiler puts it there.
SCHEMA_TEXT = "schema_text"
SUFFIX = ".avsc"
KEYS: Mapping[str, ValueForm] = AVRO_VALUE.forms

__all__ = [
    "KEYS",
    "SCHEMA_FILE",
    "SCHEMA_TEXT",
    "SUFFIX",
    "AvroColumn",
    "columns",
    "columns_now",
    "decode",
    "faults",
    "jars",
    "one_text",
    "quoted",
    "reading_of",
    "told_by_worker",
]


def faults(spec: SourceSpec, value: Mapping[str, Any]) -> list[SpecFault]:
    return declared.faults(value, topics(spec))


def columns(value: Mapping[str, Any]) -> str:
    text = value.get(SCHEMA_TEXT)
    return ddl(parse(text)) if text else ""


def columns_now(spec: SourceSpec, value: Mapping[str, Any], place: Place) -> tuple[AvroColumn, ...]:
    """Those that reading would give, asked of the registry where they are not known.

    Raises ProjectError, SetupError: as `decode`.
    """
    return columns_of(parse(reading_of(spec, value, place).reader))


def jars() -> tuple[str, ...]:
    return ("avro",)


def decode(frame: DataFrame, spec: SourceSpec, value: Mapping[str, Any], place: Place) -> DataFrame:
    """Columns, `_metadata` and `__bad` from `__raw` and `_metadata`.

    Raises:
        ProjectError: the registry's settings are wrong.
        SetupError: the registry cannot be asked, or has no such schema; the declared columns are not the schema's.
    """
    from engine.sources.avro.decode_frames import decoded

    return decoded(frame, reading_of(spec, value, place))


def reading_of(spec: SourceSpec, value: Mapping[str, Any], place: Place) -> AvroReading:
    """How the values of a source are decoded; a reader's schema that was pinned before is kept.

    Raises ProjectError, SetupError: as `decode`.
    """
    declared_value = declared.read_value(value, topics(spec))
    registry = (
        _registry(read_settings(declared_value.registry, place.registry(declared_value.registry)))
        if declared_value.registry
        else None
    )
    pinned_schema = place.settled.get(spec.name)
    reading = prepare(
        declared_value, registry, file=value.get(SCHEMA_TEXT), pinned_schema=pinned_schema, declared=spec.schema
    )
    if declared_value.schema_file is None and declared_value.schema_id is None:
        place.settled[spec.name] = reading.reader
    return reading


def topics(spec: SourceSpec) -> Sequence[str]:
    settings = spec.settings
    return (
        (settings["topic"],) if "topic" in settings else tuple(settings.get("topics") or settings.get("assign") or ())
    )


def one_text(text: str, file: str) -> str:
    """The one form of a schema file's text. Raises ProjectError: `avro-schema`, at the place of the fault."""
    return to_json(read_schema(text, file))


@cache
def _registry(settings: RegistrySettings) -> Registry:
    """One client a registry: models of a build share what it has learned."""
    return Registry(settings)
