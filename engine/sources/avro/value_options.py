"""What a source says of its Avro values: `value: {format: avro, ...}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from engine.sources.spec import SpecFault


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
