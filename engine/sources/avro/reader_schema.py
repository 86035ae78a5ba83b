"""What is pinned before the first record is decoded: the reader's schema, and the writers' that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.errors import SetupError
from engine.sources.avro.schema_resolution import UnsuitableError, resolve
from engine.sources.avro.value_options import AvroValue, Framing
from engine.sources.avro_schema.avro_columns import columns, ddl
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.parse_schema import parse
from engine.sources.registry.registry_client import MissingSchemaError, Registered, Registry, RegistrySettings

# Of each subject; older ones are asked for when a record has them.
_MOST_VERSIONS: Final = 50


@dataclass(frozen=True, slots=True)
class Writer:
    """`doubts` is what its values may hold that the reader cannot take."""

    text: str
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AvroReading:
    """Spark decodes `writers` itself; ids of neither mapping are looked up in `registry`; None: there is none."""

    reader: str
    framing: Framing
    writers: Mapping[int, Writer] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    registry: RegistrySettings | None = None
    declared: str = ""

    @property
    def columns(self) -> str:
        return self.declared or ddl(parse(self.reader))


def prepare(
    value: AvroValue, registry: Registry | None, *, file: str | None = None, kept: str | None = None, declared: str = ""
) -> AvroReading:
    """Settle how values are decoded; `kept`, of an earlier build, wins over the subject's newest schema.

    Raises:
        SetupError: the registry cannot be asked or has no such schema, or Spark cannot have its columns.
    """
    text = _reader(value, registry, file, kept)
    reader = parse(text)
    if registry is None:
        writers = {value.schema_id: Writer(text)} if value.schema_id is not None else {}
        return AvroReading(text, value.framing, writers, declared=declared)
    writers, refused = {}, {}
    for found in _known(value, registry):
        try:
            resolution = resolve(parse(found.text), reader)
        except UnsuitableError as error:
            refused[found.id] = incompatible(found.id, error)
            continue
        if resolution.java:
            writers[found.id] = Writer(found.text, resolution.doubts)
    return AvroReading(text, value.framing, writers, refused, registry.settings, declared)


def incompatible(schema_id: int, error: UnsuitableError) -> str:
    return f"incompatible writer schema {schema_id}: {error}"


def _reader(value: AvroValue, registry: Registry | None, file: str | None, kept: str | None) -> str:
    if file is not None:
        return to_json(parse(file))
    if registry is None:
        raise ValueError(value)
    if value.schema_id is not None:
        return _usable(registry.schema(value.schema_id), registry)
    return _again(kept) if kept else _usable(registry.version(value.subjects[0]), registry)


def _again(kept: str) -> str:
    """A reader's schema that was stored with a table's state, checked again."""
    try:
        columns(parse(kept))
    except AvroError as error:
        message = f"the reader schema stored in the table's state cannot be read: {error}"
        raise SetupError("registry-schema", message, "Rebuild the table: engine build -f -s <model>.") from error
    return kept


def _usable(found: Registered, registry: Registry) -> str:
    try:
        columns(parse(found.text))
    except AvroError as error:
        name = registry.settings.name
        message = f"schema id {found.id} of the registry '{name}' has columns that Spark does not support: {error}"
        raise SetupError(
            "registry-schema", message, "Set another version (schema_id: ..), or a schema_file."
        ) from error
    return found.text


def _known(value: AvroValue, registry: Registry) -> list[Registered]:
    found: dict[int, Registered] = {}
    if value.schema_id is not None:
        found[value.schema_id] = registry.schema(value.schema_id)
    for subject in value.subjects:
        try:
            found |= {version.id: version for version in registry.versions(subject, _MOST_VERSIONS)}
        except MissingSchemaError:
            continue
    return list(found.values())
