"""The columns of a source as they are found: asked of a registry or of files, or seen in a sample of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.sources import KINDS, answers_of, avro
from engine.sources.spec import BAD, Place, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def known_columns(spec: SourceSpec, place: Place) -> tuple[avro.AvroColumn, ...] | None:
    """The columns that can be had without looking at records, and without Java; None if they cannot.

    Raises:
        SetupError: a registry cannot be asked, or has no such schema; there is no such table.
    """
    columns_now = answers_of(spec.format).columns_now
    found = columns_now(spec, place) if columns_now is not None else None
    return tuple(avro.AvroColumn(*column) for column in found) if found is not None else None


def sampled(session: SparkSession, spec: SourceSpec, place: Place) -> StructType:
    """The columns of a sample of records.

    Raises:
        SetupError: `sample-empty`, there are none.
        RunError: `source-unreadable`, a record of JSON is an array.
    """
    look = answers_of(spec.format).sampled
    kind = KINDS[spec.format]
    found = look(session, spec, place) if look else kind.read_batch(session, spec, place).drop(BAD).schema
    if not found.fields:
        message = f"the source '{spec.name}' has no records to infer columns from"
        raise SetupError("sample-empty", message, "Land or send records, and run the command again.")
    return found
