"""Values move from their writer's schema into the reader's; encoded by another library, to check both ways."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sources.avro.schema_resolution import Resolution, UnsuitableError, _rest, resolve
from engine.sources.avro_schema.binary_encoding import CorruptError, read_long, write_long
from engine.sources.avro_schema.parse_schema import parse
from tests.sources.avro_cases import read_cases, values_of

CASES = read_cases("resolution")
WIDE = '{"type":"record","name":"r","fields":[{"name":"a","type":"long"},{"name":"b","type":["null","string"]}]}'


def encoded(schema: str, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, json.loads(schema), value)
    return stream.getvalue()


def plain(value: Any) -> Any:
    """A value without the structs that Spark makes of unions."""
    if isinstance(value, dict):
        if value and all(key.startswith("member") for key in value):
            return plain(next((v for v in value.values() if v is not None), None))
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def resolution(writer: str, reader: str) -> Resolution:
    return resolve(parse(writer), parse(reader))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_value_moves_into_the_readers_schema(case):
    writer, reader = case.given, case.parts["reader"]
    for wrote, reads in values_of(case):
        if isinstance(reads, str) and reads.startswith("! incompatible: "):
            with pytest.raises(UnsuitableError) as refused:
                resolution(writer, reader)
            assert str(refused.value) == reads.removeprefix("! incompatible: ")
            continue
        made = resolution(writer, reader)
        value = encoded(writer, wrote)
        if isinstance(reads, str):
            with pytest.raises(UnsuitableError) as refused:
                made.transcode(value, 0)
            assert str(refused.value) == reads.removeprefix("! ")
            assert str(refused.value) in made.doubts
            continue
        # A schema that is no record is the one field of one: the bytes are the same.
        expected = plain(reads) if isinstance(json.loads(reader), dict) else plain(reads)["value"]
        assert made.transcode(b"12345" + value, 5) == encoded(reader, expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_value_that_ends_too_early_is_told_from_one_that_does_not(case):
    writer, reader = case.given, case.parts["reader"]
    if "! incompatible" in case.expected:
        return
    made = resolution(writer, reader)
    if made.transcode is _rest:  # left as it is, and judged when Spark decodes it
        return
    for wrote, reads in values_of(case):
        value = encoded(writer, wrote) if not isinstance(reads, str) else b""
        for length in range(len(value)):
            with pytest.raises(CorruptError):
                made.transcode(value[:length], 0)


@pytest.mark.parametrize("count", [1 << 25, 1 << 40, (1 << 63) - 1, -(1 << 62)])
def test_a_false_number_of_items_ends_at_once(count):
    writer = '{"type":"record","name":"r","fields":[{"name":"x","type":{"type":"array","items":"null"}},{"name":"a","type":"int"}]}'
    reader = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
    size = b"\2" if count < 0 else b""
    with pytest.raises(CorruptError):
        resolution(writer, reader).transcode(write_long(count) + size + b"\0\2", 0)


@pytest.mark.parametrize("value", [b"\xff" * 5_000_000, write_long(1 << 40) + b"x", write_long(-5) + b"x", b"\4"])
def test_a_false_length_ends_at_once(value):
    writer = '{"type":"record","name":"r","fields":[{"name":"x","type":"string"},{"name":"a","type":"int"}]}'
    reader = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
    with pytest.raises(CorruptError):
        resolution(writer, reader).transcode(value, 0)


def test_a_list_in_a_list_in_a_list_ends():
    node = '{"type":"record","name":"n","fields":[{"name":"next","type":["null","n"]}]}'
    writer = f'{{"type":"record","name":"r","fields":[{{"name":"x","type":{node}}},{{"name":"a","type":"int"}}]}}'
    reader = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
    made = resolution(writer, reader)
    assert made.transcode(b"\2" * 100 + b"\0\6", 0) == b"\6"
    with pytest.raises(CorruptError):
        made.transcode(b"\2" * 100_000 + b"\0\6", 0)


@pytest.mark.slow
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers_come_back(number):
    assert read_long(write_long(number), 0) == (number, len(write_long(number)))


@pytest.mark.slow
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.none() | st.text(), st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(number, text, noise):
    writer = '{"type":"record","name":"r","fields":[{"name":"b","type":["null","string"]},{"name":"n","type":"bytes"},{"name":"a","type":"long"}]}'
    made = resolution(writer, WIDE)
    value = encoded(writer, {"a": number, "b": text, "n": noise})
    assert made.transcode(value, 0) == encoded(WIDE, {"a": number, "b": text})
    with contextlib.suppress(CorruptError):
        made.transcode(noise, 0)
