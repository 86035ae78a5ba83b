"""What a source pins of Avro (`value: {format: avro, ...}`) before its first record: the schemas of reader and writers.

Decoded values become the columns that a source declares: by name, and never with a loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from engine.errors import SetupError
from engine.sources.avro.schema_resolution import UnsuitableError, resolve
from engine.sources.avro_schema.avro_columns import columns, ddl
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.parse_schema import parse
from engine.sources.registry import MissingSchemaError, Registered, Registry, RegistrySettings
from engine.sources.spec import SpecFault

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


class Framing(StrEnum):
    CONFLUENT = "confluent"  # a zero byte and the schema id, four bytes
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AvroValue:
    """The first of `subjects` has the reader's schema; without a registry `schema_id` is of the schema file."""

    framing: Framing
    registry: str | None = None
    subjects: tuple[str, ...] = ()
    schema_id: int | None = None
    schema_file: str | None = None


def read_value(value: Mapping[str, Any], topics: Sequence[str] = ()) -> AvroValue:
    registry, subject = value.get("schema_registry"), value.get("subject")
    framing = value.get("framing") or (Framing.CONFLUENT if registry else Framing.NONE)
    return AvroValue(
        framing=Framing(framing),
        registry=registry,
        subjects=() if not registry else (subject,) if subject else tuple(f"{topic}-value" for topic in topics),
        schema_id=value.get("schema_id"),
        schema_file=value.get("schema_file"),
    )


def faults(value: Mapping[str, Any], topics: Sequence[str] = ()) -> list[SpecFault]:
    """Return what is wrong with a `value:`, from its text alone; `topics` are empty if a pattern chooses them."""
    framing, schema_id = value.get("framing"), value.get("schema_id")
    if framing is not None and framing not in set(Framing):
        hint = "Use confluent (a zero byte and the schema id before each value) or none (plain Avro)."
        return [SpecFault(("value", "framing"), f"unknown framing '{framing}'", hint)]
    if schema_id is not None and not 0 <= schema_id < 1 << 32:
        return [
            SpecFault(
                ("value", "schema_id"), f"{schema_id} is not a schema id", "A schema id is an integer of four bytes."
            )
        ]
    return list(islice(_conflicts(value, topics), 1))


def _conflicts(value: Mapping[str, Any], topics: Sequence[str]) -> Iterator[SpecFault]:
    registry, file, framing = value.get("schema_registry"), value.get("schema_file"), value.get("framing")
    if registry is None and file is None:
        hint = "Set the registry (schema_registry: main) or a file (schema_file: events.avsc)."
        yield SpecFault(("value",), "Avro values need a schema", hint, "missing-key")
    if registry is None and "subject" in value:
        yield _needs("subject", "schema_registry")
    if registry is None and framing == Framing.CONFLUENT and "schema_id" not in value:
        hint = "Without a registry, set the id of the records that the file describes: schema_id: 7."
        message = "'framing: confluent' needs 'schema_id' or 'schema_registry'"
        yield SpecFault(("value", "framing"), message, hint, "setting-needs")
    if registry is None and framing != Framing.CONFLUENT and "schema_id" in value:
        yield _needs("schema_id", "schema_registry")
    if registry is not None and framing == Framing.NONE:
        message, hint = "plain Avro has no schema ids", "Remove 'framing' or 'schema_registry'."
        yield SpecFault(("value", "framing"), message, hint, "setting-conflict")
    if registry is not None and file is not None and "schema_id" in value:
        hint = "Keep one of them: each defines the columns."
        yield SpecFault(
            ("value", "schema_id"), "'schema_id' and 'schema_file' exclude each other", hint, "setting-conflict"
        )
    if registry is not None and not topics and not {"subject", "schema_id", "schema_file"} & set(value):
        hint = "Set it: subject: events-value."
        yield SpecFault(("value",), "the subject of a topic pattern is unknown", hint, "missing-key")


def _needs(key: str, other: str) -> SpecFault:
    return SpecFault(("value", key), f"'{key}' needs '{other}'", f"Add '{other}: main'.", "setting-needs", at_key=True)


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
    value: AvroValue,
    registry: Registry | None,
    *,
    file: str | None = None,
    pinned_schema: str | None = None,
    declared: str = "",
) -> AvroReading:
    """Settle how values are decoded; `pinned_schema`, of an earlier build, wins over the subject's newest schema.

    Raises SetupError: the registry cannot be asked or has no such schema, or Spark cannot have its columns.
    """
    text = _reader(value, registry, file, pinned_schema)
    reader = parse(text)
    if registry is None:
        writers = {value.schema_id: Writer(text)} if value.schema_id is not None else {}
        return AvroReading(text, value.framing, writers, declared=declared)
    writers, refused = {}, {}
    for registered in _known_versions(value, registry):
        try:
            resolution = resolve(parse(registered.text), reader)
        except UnsuitableError as error:
            refused[registered.id] = incompatible(registered.id, error)
            continue
        if resolution.java:
            writers[registered.id] = Writer(registered.text, resolution.doubts)
    return AvroReading(text, value.framing, writers, refused, registry.settings, declared)


def incompatible(schema_id: int, error: UnsuitableError) -> str:
    return f"incompatible writer schema {schema_id}: {error}"


def _reader(value: AvroValue, registry: Registry | None, file: str | None, pinned_schema: str | None) -> str:
    if file is not None:
        return to_json(parse(file))
    if registry is None:
        raise ValueError(value)
    if value.schema_id is not None:
        return _usable(registry.schema(value.schema_id), registry)
    return _again(pinned_schema) if pinned_schema else _usable(registry.version(value.subjects[0]), registry)


def _again(pinned_schema: str) -> str:
    """A reader's schema that was stored with a table's state, checked again."""
    try:
        columns(parse(pinned_schema))
    except AvroError as error:
        message = f"the reader schema stored in the table's state cannot be read: {error}"
        raise SetupError("registry-schema", message, "Rebuild the table: engine build -f -s <model>.") from error
    return pinned_schema


def _usable(registered: Registered, registry: Registry) -> str:
    try:
        columns(parse(registered.text))
    except AvroError as error:
        name = registry.settings.name
        message = f"schema id {registered.id} of the registry '{name}' has columns that Spark does not support: {error}"
        raise SetupError(
            "registry-schema", message, "Set another version (schema_id: ..), or a schema_file."
        ) from error
    return registered.text


def _known_versions(value: AvroValue, registry: Registry) -> list[Registered]:
    versions: dict[int, Registered] = {}
    if value.schema_id is not None:
        versions[value.schema_id] = registry.schema(value.schema_id)
    for subject in value.subjects:
        try:
            versions |= {version.id: version for version in registry.versions(subject, _MOST_VERSIONS)}
        except MissingSchemaError:
            continue
    return list(versions.values())


_WIDER: Final = {
    "int": ("bigint", "double"), "float": ("double",), "date": ("timestamp", "timestamp_ntz"),
}  # fmt: skip
_DIGITS: Final = {"int": 10, "bigint": 19}


def fitted(column: Column, have: StructType, want: StructType, at: str = "") -> list[Column]:
    """The fields of a struct that are wanted, named and typed as they are wanted.

    Raises SetupError: `avro-columns`, a field is missing, or its values do not all fit.
    """
    fields_by_name = {one.name.lower(): one for one in have.fields}
    columns = []
    for wanted_field in want.fields:
        path = f"{at}.{wanted_field.name}" if at else wanted_field.name
        have_field = fields_by_name.get(wanted_field.name.lower())
        if have_field is None:
            hint = f"It has: {', '.join(have.fieldNames())}."
            raise SetupError("avro-columns", f"the Avro schema of the values has no '{path}'", hint)
        columns.append(
            _value(column[have_field.name], have_field.dataType, wanted_field.dataType, path).alias(wanted_field.name)
        )
    return columns


def _value(column: Column, have: DataType, want: DataType, at: str) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType, MapType, StructType

    if have.simpleString() == want.simpleString():
        return column
    if isinstance(have, StructType) and isinstance(want, StructType):
        return f.when(column.isNotNull(), f.struct(*fitted(column, have, want, at)))
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return f.transform(column, lambda item: _value(item, have.elementType, want.elementType, f"{at}[]"))
    if isinstance(have, MapType) and isinstance(want, MapType) and have.keyType == want.keyType:
        return f.transform_values(column, lambda _, item: _value(item, have.valueType, want.valueType, f"{at}[]"))
    if not _holds(want, have):
        message = f"'{at}' is {have.simpleString()} in the Avro schema and {want.simpleString()} in 'schema:'"
        raise SetupError("avro-columns", message, f"Declare it as {have.simpleString()}, and cast it in a model.")
    return column.cast(want)


def _holds(want: DataType, have: DataType) -> bool:
    from pyspark.sql.types import DecimalType

    name = have.simpleString()
    if not isinstance(want, DecimalType):
        return want.simpleString() in _WIDER.get(name, ())
    if isinstance(have, DecimalType):
        return want.scale >= have.scale and want.precision - want.scale >= have.precision - have.scale
    return name in _DIGITS and want.precision - want.scale >= _DIGITS[name]
