"""Values that were written with one schema and are read with another: each is the same value, or is not read.

The value itself is fastavro's: it decodes by the unit that the writer's schema names, whatever the reader's says.
"""

from __future__ import annotations

import io
import json
import struct
from collections import Counter
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from engine.sources.avro.schema_resolution import Resolution, UnsuitableError, resolve
from engine.sources.avro_schema.avro_columns import columns
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.binary_encoding import CorruptError
from engine.sources.avro_schema.parse_schema import parse
from tests.sources.avro_random import Avro

PAIRS_OF_A_SEED = 500
# What fastavro raises where it has no rule, or where a number is beyond Python's dates.
NOT_TOLD = (
    fastavro.read.SchemaResolutionError, OverflowError, ValueError, TypeError, KeyError, AttributeError, EOFError,
)  # fmt: skip
UNITS = (datetime, date, time, Decimal)


def told(value: bytes, writer: str, reader: str | None = None) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), json.loads(writer), reader and json.loads(reader))


def same(true: Any, read: Any) -> bool:
    """Whether a value is the one that was written."""
    if isinstance(true, dict) and isinstance(read, dict):
        # A renamed field (nf0, nnew1) is Java's to tell, which asks for the name of the record too.
        return true.keys() == read.keys() and all(same(true[key], read[key]) for key in true if key[0] != "n")
    if isinstance(true, list) and isinstance(read, list):
        return len(true) == len(read) and all(map(same, true, read))
    return same_plain(true, read)


def same_plain(true: Any, read: Any) -> bool:
    if isinstance(true, UNITS) != isinstance(read, UNITS):
        # A number that only one side gives a unit to is only a number.
        return isinstance(true, (int, float, bytes)) or isinstance(read, (int, float, bytes))
    if isinstance(true, float) or isinstance(read, float):
        return true == read or struct.pack("<f", true) == struct.pack("<f", read)
    if isinstance(true, str) and isinstance(read, bytes):
        # A default is Latin-1.
        return read in {true.encode(), true.encode("latin-1", "replace")}
    return bool(true.decode() == read if isinstance(true, bytes) and isinstance(read, str) else true == read)


def resolution_of(writer: str, reader: str) -> Resolution:
    ours = parse(reader)
    columns(ours)
    return resolve(parse(writer), ours)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_value_is_read_as_it_was_written_or_not_at_all(seed):
    chance, seen = Avro(1000 + seed), Counter[str]()
    for _ in range(PAIRS_OF_A_SEED):
        wrote = chance.record("a.top", 3)
        writer, reader = json.dumps(wrote), json.dumps(chance.later(wrote))
        try:
            made = resolution_of(writer, reader)
        except (AvroError, UnsuitableError) as error:
            seen[type(error).__name__] += 1
            continue
        reads = to_json(parse(reader))
        for _ in range(3):
            value = chance.value(wrote)
            try:
                moved = made.transcode(value, 0)
            except UnsuitableError:
                seen["not read"] += 1
                continue
            try:
                true, read = told(value, writer, reads), told(moved, reads)
            except NOT_TOLD:
                seen["not told"] += 1
                continue
            assert same(true, read), (writer, reader, value.hex(), true, read)
            seen["read"] += 1
    assert seen["read"] > 800, seen
    assert seen["not read"] > 5, seen


def record(type_: Any) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": type_}]})


MILLIS, MICROS = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
CENTS, FINER = ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale} for scale in (2, 4))
FIXED_CENTS, FIXED_FINER = (
    {"type": "fixed", "name": "f", "size": 8, "logicalType": "decimal", "precision": 9, "scale": s} for s in (2, 4)
)
YEAR_2023 = datetime.fromisoformat("2023-05-01T00:00:00+00:00")
PRICE = Decimal("19.99")
OTHER_UNITS = [
    (MILLIS, MICROS, YEAR_2023),
    (MICROS, MILLIS, YEAR_2023),
    (MICROS, LOCAL, YEAR_2023),
    (CENTS, FINER, PRICE),
    (FIXED_CENTS, FIXED_FINER, PRICE),
    (CENTS, "string", PRICE),
    ("string", CENTS, "19.99"),
]
PLACES = [
    (lambda t: t, lambda v: v),
    (lambda t: ["null", t], lambda v: v),
    (lambda t: [t, "null"], lambda v: v),
    (lambda t: ["null", t, "boolean"], lambda v: v),
    (lambda t: ["null", {"type": "array", "items": ["null", t]}], lambda v: [v]),
    (lambda t: {"type": "map", "values": ["null", t]}, lambda v: {"k": v}),
    (lambda t: ["null", {"type": "record", "name": "i", "fields": [{"name": "w", "type": t}]}], lambda v: {"w": v}),
]


@pytest.mark.parametrize("place", range(len(PLACES)))
@pytest.mark.parametrize(("wrote", "reads", "value"), OTHER_UNITS)
def test_another_unit_is_never_read_wherever_it_is(wrote, reads, value, place):
    around, inside = PLACES[place]
    writer, reader = record(around(wrote)), record(around(reads))
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, json.loads(writer), {"v": inside(value)})
    with pytest.raises(UnsuitableError, match=r"cannot be read as|is none of"):
        resolution_of(writer, reader).transcode(stream.getvalue(), 0)


@pytest.mark.parametrize(("wrote", "reads", "value"), OTHER_UNITS)
def test_java_is_not_asked_to_read_another_unit(wrote, reads, value):
    # Java's library takes the plain number.
    for writer, reader in [
        (["null", wrote], ["null", reads]),
        (["null", wrote, "boolean"], ["boolean", "null", reads]),
    ]:
        made = resolution_of(record(writer), record(reader))
        assert not made.java
        assert made.doubts
        assert made.transcode(b"\0", 0) == (b"\0" if reader[0] == "null" else b"\2")


def test_a_value_that_ends_too_early_in_a_branch_of_another_unit_is_corrupt():
    made = resolution_of(record(["null", CENTS, "string"]), record(["null", FINER, "string"]))
    with pytest.raises(CorruptError):
        made.transcode(b"\4\6ab", 0)
