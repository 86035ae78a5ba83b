"""Avro's rules against the parts that have them: Spark's SchemaConverters, and the Java library of Avro."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from engine.sources.avro.schema_resolution import UnsuitableError, resolve
from engine.sources.avro_schema.avro_columns import columns, ddl
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.binary_encoding import CorruptError
from engine.sources.avro_schema.parse_schema import parse
from tests.sources.avro_cases import read_cases
from tests.sources.avro_random import Avro

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

FAILS = (Py4JJavaError, PySparkException)
COLUMNS = [case for case in read_cases("columns") if not case.expected[0].isdigit()]
FAULTS = [case for case in read_cases("columns") if case.expected[0].isdigit()]
SEEDS = range(4)
CASES_OF_A_SEED = 50


def java_schema(jvm: Any, text: str, *, defaults: bool = True) -> Any:
    return jvm.org.apache.avro.Schema.Parser().setValidateDefaults(defaults).parse(text)


@pytest.mark.parametrize("case", COLUMNS, ids=str)
def test_the_columns_are_those_that_spark_finds(lab_session, case):
    from pyspark.sql.types import StructType

    jvm = lab_session.spark._jvm
    found = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(java_schema(jvm, case.given)).dataType()
    ours = StructType.fromDDL(case.expected).simpleString()
    assert found.catalogString() in {ours, ours.removeprefix("struct<value:").removesuffix(">")}


@pytest.mark.parametrize("case", FAULTS, ids=str)
def test_what_is_refused_is_refused_by_java_as_well(lab_session, case):
    with pytest.raises(FAILS):
        java_schema(lab_session.spark._jvm, case.given)


@pytest.mark.parametrize("case", read_cases("only_spark"), ids=str)
def test_java_takes_what_is_refused_for_sparks_sake(lab_session, case):
    jvm = lab_session.spark._jvm
    schema = java_schema(jvm, case.given)
    if "contains itself" in case.expected or "digits" in case.expected:
        with pytest.raises(FAILS):
            jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(schema)


@pytest.mark.parametrize("case", COLUMNS, ids=str)
def test_java_reads_the_one_text_as_the_same_schema(lab_session, case):
    jvm = lab_session.spark._jvm
    record = parse(case.given).record
    ours = java_schema(jvm, to_json(parse(case.given)))
    if record.name != "value":
        normal = jvm.org.apache.avro.SchemaNormalization.toParsingForm
        assert normal(ours) == normal(java_schema(jvm, case.given))


def java_reads(jvm: Any, writer: Any, reader: Any, value: bytes) -> str | None:
    """The value as JSON-like text; None if Java cannot read it."""
    decoder = jvm.org.apache.avro.io.DecoderFactory.get().binaryDecoder(value, None)
    try:
        read: str = jvm.org.apache.avro.generic.GenericDatumReader(writer, reader).read(None, decoder).toString()
    except Py4JJavaError:
        return None
    return read


def ours_reads(jvm: Any, resolution: Any, reader: Any, value: bytes) -> str | None:
    try:
        moved = resolution.transcode(b"....." + value, 5)
    except (UnsuitableError, CorruptError):
        return None
    return java_reads(jvm, reader, reader, moved)


@pytest.mark.nightly_except("0")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_values_move_as_java_moves_them(lab_session, seed):
    jvm, chance, seen = lab_session.spark._jvm, Avro(seed), Counter[str]()
    for _ in range(CASES_OF_A_SEED):
        wrote = chance.record("a.top", 3)
        writer, reader = json.dumps(wrote), json.dumps(chance.later(wrote))
        try:
            ours = parse(reader)
            columns(ours)
        except AvroError:
            seen["no reader"] += 1
            continue
        w, r = (java_schema(jvm, text, defaults=False) for text in (writer, to_json(ours)))
        values = [chance.value(wrote) for _ in range(3)]
        try:
            resolution = resolve(parse(writer), ours)
        except UnsuitableError as error:
            seen["unsuitable"] += 1
            # Java sees a list of the wrong type when it has an item, and a wrong unit never.
            if not any(word in str(error) for word in ("[]", "timestamp", "date", "time-", "decimal")):
                assert [java_reads(jvm, w, r, value) for value in values] == [None] * len(values), (writer, reader)
            continue
        for value in values:
            for cut in (value, value[:-1], value[:-2]):
                expected, found = java_reads(jvm, w, r, cut), ours_reads(jvm, resolution, r, cut)
                lists = any("[]" in doubt for doubt in resolution.doubts)
                units = any(word in doubt for doubt in resolution.doubts for word in ("time", "date", "decimal"))
                if resolution.java and not lists and not units:
                    assert found == expected, (writer, reader, cut.hex())
                seen["read" if found is not None else "not read"] += 1
    assert seen["read"] > 80
    assert seen["not read"] > 80
    assert seen["unsuitable"] >= 5


def test_a_default_that_java_cannot_make_is_not_left_to_it(lab_session):
    """Should Java mend this, `Resolution.java` can go."""
    jvm = lab_session.spark._jvm
    writer = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
    field = '{"name":"tags","type":[{"type":"array","items":"string"},"null"],"default":[]}'
    reader = f'{{"type":"record","name":"r","fields":[{field}]}}'
    assert java_reads(jvm, java_schema(jvm, writer), java_schema(jvm, reader), b"\2") is None
    assert not resolve(parse(writer), parse(reader)).java
    assert ddl(parse(reader)) == "tags array<string>"
