"""Avro values decoded by Spark, with schemas of a real registry: by cases known before, and by the worker."""

from __future__ import annotations

import contextlib
import io
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import fastavro
import pytest

from engine.errors import SetupError
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.sources.avro.decode_frames import decoded as decode
from engine.sources.avro.decode_frames import told_by_worker
from engine.sources.avro.reader_schema import AvroReading, AvroValue, Framing, prepare, read_value
from engine.sources.avro.schema_resolution import UnsuitableError, resolve
from engine.sources.avro_schema.avro_columns import columns
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.parse_schema import parse
from engine.sources.registry import Registry, RegistrySettings
from tests.services.registry import Gateway, running
from tests.sources.avro_cases import read_cases, values_of
from tests.sources.avro_random import Avro

pytestmark = pytest.mark.spark

POINT = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
NAMED = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "name", "type": "string", "default": "-"}, {"name": "x", "type": "int"}],
}
FRAME = "__raw binary, _metadata struct<offset: int>"


@pytest.fixture
def subject() -> str:
    return f"s{uuid.uuid4().hex[:8]}-value"


def encoded(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return stream.getvalue()


def framed(number: int, schema: Any, value: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + encoded(schema, value)


def settings(url: str) -> RegistrySettings:
    return RegistrySettings("main", url, timeout=2.0, patience=2.0)


def rows(session: Any, reading: AvroReading, values: list[bytes | None]) -> list[dict[str, Any]]:
    """Decoded rows in their order; `bad` is the reason."""
    return rows_of(session, [reading], values)[0]


def rows_of(session: Any, readings: list[AvroReading], values: list[bytes | None]) -> list[list[dict[str, Any]]]:
    """The rows of some readings of the same values, in one job; times as text, in UTC."""
    from pyspark.sql import functions as f

    frame = session.createDataFrame([(v and bytearray(v), (i,)) for i, v in enumerate(values)], FRAME)
    frames = [decode(frame, reading).withColumn("__of", f.lit(i)) for i, reading in enumerate(readings)]
    whole = reduce(lambda made, other: made.unionByName(other), frames)
    times = {n: f.col(n).cast("string") for n, kind in whole.dtypes if kind == "timestamp"}
    found: list[list[dict[str, Any]]] = [[] for _ in readings]
    for row in sorted(whole.withColumns(times).collect(), key=lambda row: row["_metadata"]["offset"]):
        data = row.asDict(recursive=True)
        bad, value = data.pop("__bad"), values[data.pop("_metadata")["offset"]]
        of = data.pop("__of")
        assert bad is None or (bad["raw"] == value and set(data.values()) == {None})
        found[of].append({"bad": bad["reason"]} if bad else data)
    assert {len(one) for one in found} == {len(values)}
    return found


def by_worker(reading: AvroReading) -> AvroReading:
    """The same reading, as if no id had been known when the query began."""
    return replace(reading, writers={}, refused={})


def both(session: Any, reading: AvroReading, values: list[bytes | None]) -> list[dict[str, Any]]:
    known, found = rows_of(session, [reading, by_worker(reading)], values)
    assert known == found
    return found


def reading_of(registry: Any, subject: str, **value: Any) -> AvroReading:
    said = read_value({"schema_registry": "main", "subject": subject, **value})
    return prepare(said, Registry(settings(registry.url)))


CASES = read_cases("resolution")
# By the number of the case and the way: (JSON of the columns, reason) of each value.
Seen = dict[tuple[int, str], list[tuple[Any, str | None]]]


@pytest.fixture(scope="module")
def resolved(request, lab_session, registry) -> tuple[Seen, dict[int, int]]:
    """What Spark makes of the cases that are run, in one job, and the ids of the writers' schemas."""
    from pyspark.sql import functions as f

    session, frames, ids = lab_session.spark, [], {}
    tests = (item for item in request.session.items if "resolved" in item.fixturenames)
    for index in sorted({test.callspec.params["index"] for test in tests}):
        case = CASES[index]
        subject, writer = f"case{index}-{uuid.uuid4().hex[:8]}", case.given
        ids[index] = registry.register(subject, writer)
        value = AvroValue(Framing.CONFLUENT, "main", (subject,), schema_file="x.avsc")
        reading = prepare(value, Registry(settings(registry.url)), file=case.parts["reader"])
        values = [framed(ids[index], json.loads(writer), wrote) for wrote, _ in values_of(case)]
        raw = session.createDataFrame([(bytearray(v), (i,)) for i, v in enumerate(values)], FRAME).coalesce(1)
        for way, one in (("known", reading), ("worker", by_worker(reading))):
            made = decode(raw, one)
            columns = f.struct(*(name for name in made.columns if not name.startswith("_")))
            text = f.to_json(columns, {"ignoreNullFields": "false"})
            frames.append(made.select(f.lit(index), f.lit(way), "_metadata.offset", text, "__bad.reason"))
    seen: Seen = {}
    for index, way, _, text, reason in sorted(reduce(lambda a, b: a.union(b), frames).collect()):
        seen.setdefault((index, way), []).append((json.loads(text), reason))
    return seen, ids


@pytest.mark.nightly_except(
    "resolution: a field added first",
    "resolution: a field removed that has no default",
    "resolution: fields widened",
    "resolution: a union gains a branch, in another order",
    "resolution: nested records, lists and maps",
    "resolution: an enum with a default",
    "resolution: a unit that differs",
    "resolution: defaults of every type",
    "resolution: another thing altogether",
)
@pytest.mark.parametrize("index", range(len(CASES)), ids=map(str, CASES))
def test_each_record_is_read_by_its_own_writers_schema(resolved, index):
    seen, number = resolved[0], resolved[1][index]
    for (_, reads), known, worker in zip(
        values_of(CASES[index]), seen[index, "known"], seen[index, "worker"], strict=True
    ):
        if not isinstance(reads, str):
            assert known == worker == (reads, None)
        elif reads.startswith("! incompatible: "):
            reason = reads.removeprefix("! incompatible: ")
            assert known[1] == worker[1] == f"incompatible writer schema {number}: {reason}"
        else:
            reason = reads.removeprefix("! ")
            if resolve(parse(CASES[index].given), parse(CASES[index].parts["reader"])).java:
                assert known[1].startswith(f"truncated or corrupt: the value does not follow schema id {number}; or ")
                assert known[1].endswith(reason)
            else:
                assert known == worker
            assert worker[1] == f"incompatible writer schema {number}: {reason}"


def random_pairs(chance: Avro, count: int) -> Iterator[tuple[str, str, list[bytes]]]:
    """Writers, readers and values; most of the pairs have values that cannot be read."""
    while count:
        wrote = chance.record("a.top", 2)
        writer, reader = json.dumps(wrote), json.dumps(chance.later(wrote))
        with contextlib.suppress(AvroError, UnsuitableError):
            columns(parse(reader))
            if resolve(parse(writer), parse(reader)).doubts or chance.chance(0.1):
                yield writer, to_json(parse(reader)), [chance.value(wrote) for _ in range(6)]
                count -= 1


@pytest.mark.nightly
def test_random_values_are_read_alike_by_both_ways(lab_session, registry):
    """By Java's library or by the worker, whose values `test_avro_values` compares with what was written."""
    from pyspark.sql import functions as f

    session, frames, seen = lab_session.spark, [], Counter[str]()
    pairs = list(random_pairs(Avro(77), 25))
    for index, (writer, reader, values) in enumerate(pairs):
        subject = f"random{index}-{uuid.uuid4().hex[:8]}"
        head = b"\0" + registry.register(subject, writer).to_bytes(4, "big")
        value = AvroValue(Framing.CONFLUENT, "main", (subject,), schema_file="x.avsc")
        reading = prepare(value, Registry(settings(registry.url)), file=reader)
        raw = session.createDataFrame([(bytearray(head + v), (i,)) for i, v in enumerate(values)], FRAME).coalesce(1)
        for one in (reading, by_worker(reading)):
            made = decode(raw, one)
            text = f.struct(*(name for name in made.columns if not name.startswith("_"))).cast("string")
            frames.append(made.select(f.lit(index), "_metadata.offset", text, "__bad.reason"))
    rows = reduce(lambda a, b: a.union(b), frames).collect()
    for index, (writer, reader, values) in enumerate(pairs):
        for offset, value in enumerate(values):
            known, worker = ([row[2], row[3]] for row in rows if list(row[:2]) == [index, offset])
            assert known[0] == worker[0], (writer, reader, value.hex())
            reason = not_read(writer, reader, value)
            # A time that Spark has no room for is a bad record, too.
            assert known[1] == worker[1] if reason is None else reason in known[1] and reason in worker[1]
            seen["read" if known[1] is None else "bad" if reason else "beyond"] += 1
    assert seen["read"] > 40, seen
    assert seen["bad"] > 8, seen


def not_read(writer: str, reader: str, value: bytes) -> str | None:
    try:
        resolve(parse(writer), parse(reader)).transcode(value, 0)
    except UnsuitableError as error:
        return str(error)
    return None


def test_one_fixed_schema_would_read_garbage(lab_session, registry, subject):
    """What the case `a field added first` is against: the bytes mean something else, and nobody notices."""
    old = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}
    new = {"type": "record", "name": "r", "fields": [{"name": "new", "type": "int"}, *old["fields"]]}  # type: ignore[misc]
    first, second = registry.register(subject, old), registry.register(subject, new)
    values = [framed(first, old, {"a": 1, "b": 2}), framed(second, new, {"new": 9, "a": 1, "b": 2})]
    plain = prepare(AvroValue(Framing.NONE, schema_file="x.avsc"), None, file=json.dumps(old))
    assert rows(lab_session.spark, plain, [v[5:] for v in values]) == [{"a": 1, "b": 2}, {"a": 9, "b": 1}]
    reading = reading_of(registry, subject, schema_id=first)
    assert both(lab_session.spark, reading, values) == [{"a": 1, "b": 2}, {"a": 1, "b": 2}]


def test_a_schema_that_evolves_in_the_middle_of_a_batch(lab_session, registry, subject):
    old = registry.register(subject, POINT)
    reading = reading_of(registry, subject)
    assert set(reading.writers) == {old}
    new = registry.register(subject, NAMED)
    values = [framed(new, NAMED, {"name": "n", "x": i}) if i % 3 else framed(old, POINT, {"x": i}) for i in range(1000)]
    assert rows(lab_session.spark, reading, values) == [{"x": i} for i in range(1000)]
    later = reading_of(registry, subject)
    assert set(later.writers) == {old, new}
    assert rows(lab_session.spark, later, values)[:2] == [{"name": "-", "x": 0}, {"name": "n", "x": 1}]
    kept = prepare(
        read_value({"schema_registry": "main", "subject": subject}),
        Registry(settings(registry.url)),
        pinned_schema=reading.reader,
    )
    assert kept.reader == reading.reader
    assert both(lab_session.spark, kept, values[:3]) == [{"x": 0}, {"x": 1}, {"x": 2}]


def test_every_kind_of_bad_record_is_told(lab_session, registry, subject):
    text = {"type": "record", "name": "r", "fields": [{"name": "s", "type": "string"}]}
    number = registry.register(subject, text)
    other = registry.register(f"{subject}-proto", 'syntax = "proto3"; message A {}', "PROTOBUF")
    far = registry.register(
        f"{subject}-other", {"type": "record", "name": "q", "fields": [{"name": "t", "type": "string"}]}
    )
    good = framed(number, text, {"s": "hello"})
    values = [
        good, None, b"", b"{}", b'{"s": "x"}', b"\0\0\0", good[:4], good[:5], good[:-1],
        b"\0\x7f\xff\xff\xff" + good[5:], b"\0\xff\xff\xff\xff" + good[5:], b"\0" + other.to_bytes(4, "big") + good[5:],
        b"\0" + far.to_bytes(4, "big") + good[5:], good[:5] + b"\x01" * 10, good[:5] + b"\xff" * 100,
    ]  # fmt: skip
    spoilt = {"bad": f"truncated or corrupt: the value does not follow schema id {number}"}
    assert both(lab_session.spark, reading_of(registry, subject), values) == [
        {"s": "hello"},
        {"bad": "it has no value"},
        {"bad": "truncated: 0 of the 5 bytes before a value"},
        {"bad": "wrong magic byte 0x7B: the wire format begins with 0x00"},
        {"bad": "wrong magic byte 0x7B: the wire format begins with 0x00"},
        {"bad": "truncated: 3 of the 5 bytes before a value"},
        {"bad": "truncated: 4 of the 5 bytes before a value"},
        spoilt,
        spoilt,
        {"bad": "unknown schema id 2147483647"},
        {"bad": "unknown schema id 4294967295"},
        {"bad": f"schema id {other} has the type PROTOBUF, not Avro"},
        {"bad": f"incompatible writer schema {far}: the field 's' is not in the writer's schema and has no default"},
        spoilt,
        spoilt,
    ]


def test_a_good_row_of_nulls_is_no_bad_record(lab_session, registry, subject):
    empty = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": ["null", "int"]}, {"name": "b", "type": ["null", "string"]}],
    }
    number = registry.register(subject, empty)
    values = [framed(number, empty, {"a": None, "b": None}), framed(number, empty, {"a": 1, "b": None})[:5]]
    good, bad = both(lab_session.spark, reading_of(registry, subject), values)
    assert good == {"a": None, "b": None}
    assert "truncated" in bad["bad"]


@pytest.mark.nightly_except('"string"', '{"type":"array","items":"null"}')
@pytest.mark.parametrize("kind", ['"string"', '"bytes"', '{"type":"array","items":"int"}', '{"type":"map","values":"int"}', '{"type":"array","items":"null"}'])  # fmt: skip
def test_a_false_length_of_gigabytes_is_a_bad_record(lab_session, registry, subject, kind):
    """Without the limits of engine/spark it ends the JVM: Avro makes room first."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": json.loads(kind)}]}
    number = registry.register(subject, schema)
    giant = encoded("long", 2**31 - 10)
    values = [b"\0" + number.to_bytes(4, "big") + giant + b"abc"]
    (found,) = both(lab_session.spark, reading_of(registry, subject), values)
    assert "truncated or corrupt" in found["bad"]
    assert lab_session._session.jvm.alive


def test_a_record_of_five_megabytes_is_a_record(lab_session, registry, subject):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    number = registry.register(subject, schema)
    values = [framed(number, schema, {"a": letter * 5_000_000}) for letter in "ab"]
    found = both(lab_session.spark, reading_of(registry, subject), values)
    assert [(row["a"][-3:], len(row["a"])) for row in found] == [("aaa", 5_000_000), ("bbb", 5_000_000)]


@pytest.mark.nightly
def test_a_registry_that_goes_down_makes_no_bad_records(lab_session, tmp_path):
    with running(tmp_path / "registry") as part:
        old = part.register("t-value", POINT)
        reading = reading_of(part, "t-value")
        new = part.register("t-value", NAMED)
        part.stop(kill=True)
        known = [framed(old, POINT, {"x": i}) for i in range(10)]
        assert rows(lab_session.spark, reading, known) == [{"x": i} for i in range(10)]
        with pytest.raises(spark_exceptions()) as error:
            rows(lab_session.spark, reading, [*known, framed(new, NAMED, {"name": "n", "x": 1})])
        told = told_by_worker(str(error.value))
        assert told is not None
        assert told.diagnostic.code == "registry-unreachable"
        assert "cannot be reached: Connection refused" in told.diagnostic.message
        with pytest.raises(SetupError) as start:
            reading_of(part, "t-value")
        assert start.value.diagnostic.code == "registry-unreachable"


def test_a_registry_that_refuses_us_makes_no_bad_records(lab_session, registry, subject):
    number = registry.register(subject, POINT)
    with Gateway(registry.url, authorization="Bearer right-token").serving() as gateway:
        reading = prepare(
            read_value({"schema_registry": "main", "subject": subject}),
            Registry(RegistrySettings("main", gateway.url, "Bearer right-token")),
        )
        wrong = by_worker(replace(reading, registry=RegistrySettings("main", gateway.url, "Bearer wrong-token")))
        value = framed(number, POINT, {"x": 1})
        assert rows(lab_session.spark, by_worker(reading), [value]) == [{"x": 1}]
        assert gateway.refused == 0
        with pytest.raises(spark_exceptions()) as error:
            rows(lab_session.spark, wrong, [value])
        assert gateway.refused == 1
    told = told_by_worker(str(error.value))
    assert told is not None
    assert told.diagnostic.code == "registry-auth"
    assert "token" not in str(error.value).replace("_token", "")


def test_an_id_that_is_unknown_is_asked_for_once(lab_session, registry, subject):
    number = registry.register(subject, POINT)
    with Gateway(registry.url).serving() as gateway:
        reading = prepare(read_value({"schema_registry": "main", "subject": subject}), Registry(settings(gateway.url)))
        gateway.asked.clear()
        values = [b"\0\x7f\0\0\x01" + b"x" * i for i in range(500)] + [framed(number, POINT, {"x": 1})] * 500
        frame = lab_session.spark.createDataFrame([(bytearray(v), (0,)) for v in values], FRAME).coalesce(1)
        assert decode(frame, reading).where("__bad is not null").count() == 500
        assert gateway.asked == ["/schemas/ids/2130706433"]


ALL = {
    "type": "record",
    "name": "every",
    "fields": [
        {"name": "boolean", "type": "boolean"},
        {"name": "int", "type": "int"},
        {"name": "long", "type": "long"},
        {"name": "float", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "bytes", "type": "bytes"},
        {"name": "string", "type": "string"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time_ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "time_us", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "at_ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "at_us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local_ms", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "local_us", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}},
        {"name": "fixed_price", "type": {"type": "fixed", "name": "f8", "size": 8, "logicalType": "decimal", "precision": 18, "scale": 2}},
        {"name": "raw", "type": {"type": "fixed", "name": "f3", "size": 3}},
        {"name": "kind", "type": {"type": "enum", "name": "kinds", "symbols": ["a", "b"]}},
        {"name": "list", "type": {"type": "array", "items": ["null", "int"]}},
        {"name": "map", "type": {"type": "map", "values": "string"}},
        {"name": "inner", "type": {"type": "record", "name": "inner", "fields": [{"name": "kind", "type": "kinds"}]}},
        {"name": "maybe", "type": ["null", "inner"]},
        {"name": "number", "type": ["int", "long"]},
        {"name": "either", "type": ["null", "string", "int", "kinds"]},
        {"name": "nothing", "type": "null"},
    ],
}  # fmt: skip
WRITTEN = {
    "boolean": True, "int": -(2**31), "long": 2**63 - 1, "float": 0.1, "double": 0.1, "bytes": b"\0\xff", "string": "hé\U0001f600",
    "day": date(1, 1, 1), "time_ms": 86_399_999, "time_us": 86_399_999_999,
    "at_ms": -62135596800000, "at_us": datetime(1582, 10, 4, 1, 2, 3, 4, tzinfo=UTC),
    "local_ms": datetime(2024, 2, 29, 1, 2, 3, 4000), "local_us": datetime(1900, 1, 1, 1, 2, 3, 456789),  # noqa: DTZ001
    "uuid": "00000000-0000-0000-0000-00000000000a", "price": Decimal("-1234567890123456789012345678.0123456789"),
    "fixed_price": Decimal("-9999999999999999.99"), "raw": b"abc", "kind": "b", "list": [1, None, -3], "map": {"k": "v", "": ""},
    "inner": {"kind": "a"}, "maybe": None, "number": 2**40, "either": 7, "nothing": None,
}  # fmt: skip
READ = {
    **WRITTEN, "float": 0.10000000149011612, "at_ms": "0001-01-01 00:00:00", "at_us": "1582-10-04 01:02:03.000004",
    "either": {"member0": None, "member1": 7, "member2": None},
}  # fmt: skip


def test_every_type_comes_through_both_ways(lab_session, registry, subject):
    number = registry.register(subject, ALL)
    reading = reading_of(registry, subject)
    written = {**WRITTEN, "either": 7}
    (found,) = both(lab_session.spark, reading, [framed(number, ALL, written)])
    assert found == {**READ, "either": {"member0": None, "member1": 7, "member2": None}}


def test_every_type_moves_when_the_reader_has_the_fields_in_another_order(lab_session, registry, subject):
    number = registry.register(subject, {**ALL, "fields": [{"name": "first", "type": "string"}, *ALL["fields"]]})  # type: ignore[misc]
    later = [f for f in ALL["fields"] if f["name"] not in {"maybe", "inner", "either"}]  # type: ignore[union-attr]
    reader = json.dumps({**ALL, "fields": list(reversed(later))})
    reading = prepare(
        AvroValue(Framing.CONFLUENT, "main", (subject,), schema_file="x"), Registry(settings(registry.url)), file=reader
    )
    writer = {**ALL, "fields": [{"name": "first", "type": "string"}, *ALL["fields"]]}  # type: ignore[misc]
    (found,) = both(lab_session.spark, reading, [framed(number, writer, {"first": "x" * 200, **WRITTEN})])
    assert found == {name: READ[name] for name in (f["name"] for f in reversed(later))}


def test_plain_avro_of_a_schema_file(lab_session):
    reading = prepare(AvroValue(Framing.NONE, schema_file="x.avsc"), None, file=json.dumps(NAMED))
    good = encoded(NAMED, {"name": "a", "x": 3})
    assert rows(lab_session.spark, reading, [good, good[:-1], None]) == [
        {"name": "a", "x": 3},
        {"bad": "truncated or corrupt: the value does not match the schema"},
        {"bad": "it has no value"},
    ]


def test_a_schema_file_with_an_id_and_no_registry(lab_session):
    said = read_value({"schema_file": "x.avsc", "framing": "confluent", "schema_id": 7})
    reading = prepare(said, None, file=json.dumps(POINT))
    values = [framed(7, POINT, {"x": 3}), framed(8, POINT, {"x": 3}), encoded(POINT, {"x": 3})]
    assert rows(lab_session.spark, reading, values) == [
        {"x": 3},
        {"bad": "unknown schema id 8"},
        {"bad": "wrong magic byte 0x06: the wire format begins with 0x00"},
    ]


def test_declared_columns_are_taken_by_name_and_widened(lab_session, registry, subject):
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
            {"name": "data", "type": ["null", {"type": "record", "name": "d", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "float"}]}]},
            {"name": "list", "type": {"type": "array", "items": {"type": "record", "name": "e", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}}},
            {"name": "map", "type": {"type": "map", "values": "int"}},
        ],
    }  # fmt: skip
    number = registry.register(subject, schema)
    declared = "map map<string, bigint>, list array<struct<b: bigint>>, DATA struct<b: double>, id decimal(12,2), price decimal(9,3)"
    reading = replace(reading_of(registry, subject), declared=declared)
    values = [
        framed(
            number,
            schema,
            {
                "id": 1,
                "price": Decimal("1.25"),
                "data": {"a": 1, "b": 0.5},
                "list": [{"a": 1, "b": 2}],
                "map": {"k": 3},
            },
        ),
        framed(number, schema, {"id": 2, "price": Decimal("0.00"), "data": None, "list": [], "map": {}}),
        b"{}",
    ]
    found = both(lab_session.spark, reading, values)
    assert found[0] == {
        "map": {"k": 3},
        "list": [{"b": 2}],
        "DATA": {"b": 0.5},
        "id": Decimal("1.00"),
        "price": Decimal("1.250"),
    }
    assert found[1] == {"map": {}, "list": [], "DATA": None, "id": Decimal("2.00"), "price": Decimal("0.000")}
    assert "magic" in found[2]["bad"]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("x int, y int", "the Avro schema of the values has no 'y'"),
        ("x smallint", "'x' is int in the Avro schema and smallint in 'schema:'"),
        ("x string", "'x' is int in the Avro schema and string in 'schema:'"),
        ("x float", "'x' is int in the Avro schema and float in 'schema:'"),
        ("x decimal(9,0)", "'x' is int in the Avro schema and decimal(9,0) in 'schema:'"),
        ("x struct<y: int>", "'x' is int in the Avro schema and struct<y:int> in 'schema:'"),
    ],
)
def test_declared_columns_that_do_not_fit_are_told_before_a_record_is_read(lab_session, declared, message):
    reading = replace(
        prepare(AvroValue(Framing.NONE, schema_file="x.avsc"), None, file=json.dumps(POINT)), declared=declared
    )
    with pytest.raises(SetupError) as error:
        rows(lab_session.spark, reading, [b"\2"])
    assert error.value.diagnostic.code == "avro-columns"
    assert error.value.diagnostic.message == message


def test_the_columns_are_those_that_spark_decodes(lab_session, registry, subject):
    registry.register(subject, ALL)
    reading = reading_of(registry, subject)
    frame = decode(lab_session.spark.createDataFrame([], FRAME), reading)
    from pyspark.sql.types import StructType

    names = [name for name in frame.columns if name not in {"_metadata", "__bad"}]
    assert frame.select(*names).schema == StructType.fromDDL(reading.columns)
    assert frame.select("__bad").schema.simpleString() == "struct<__bad:struct<reason:string,raw:binary>>"


def test_filters_decode_nothing_twice(lab_session, registry, subject):
    registry.register(subject, POINT)
    frame = decode(
        lab_session.spark.createDataFrame([(bytearray(b"\0"), (0,))], FRAME).repartition(1),
        reading_of(registry, subject),
    )
    frame.createOrReplaceTempView("points")
    plan = (
        lab_session.spark.sql("select x + 1 as y from points where x > 3 and __bad is null")
        ._jdf.queryExecution()
        .optimizedPlan()
        .toString()
    )
    assert plan.count("from_avro(") == 2  # one case, and what the worker gives
