"""Avro schemas: their columns, their faults with the place, their one text."""

from __future__ import annotations

import json

import pytest

from engine.errors import ProjectError
from engine.sources.avro_schema.avro_columns import AvroColumn, columns, ddl, read_schema
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.parse_schema import parse
from tests.sources.avro_cases import read_cases

COLUMNS = read_cases("columns")
ONLY_SPARK = read_cases("only_spark")


def said(text: str) -> str:
    try:
        return ddl(read_schema(text, "x.avsc"))
    except ProjectError as error:
        found = error.diagnostic
        assert found.code == "avro-schema"
        assert found.location is not None
        assert found.location.file == "x.avsc"
        return f"{found.location.line}:{found.location.column} {found.message}"


@pytest.mark.parametrize("case", [*COLUMNS, *ONLY_SPARK], ids=str)
def test_the_columns_of_a_schema(case):
    assert said(case.given) == case.expected


@pytest.mark.parametrize("case", [c for c in COLUMNS if not c.expected[0].isdigit()], ids=str)
def test_the_text_of_a_schema_is_the_same_schema(case):
    schema = parse(case.given)
    again = parse(to_json(schema))
    assert columns(again) == columns(schema)
    assert to_json(again) == to_json(schema)


def test_what_says_nothing_of_the_data_is_left_out_of_the_text():
    long = '{"type": "record", "name": "n.r", "doc": "d", "owner": "me", "fields": [{"name": "a", "doc": "x", "type": {"type": "int"}}]}'
    short = '{"type":"record","name":"r","namespace":"n","fields":[{"name":"a","type":"int"}]}'
    assert to_json(parse(long)) == short


def test_docs_become_descriptions():
    text = '{"type": "record", "name": "r", "fields": [{"name": "a", "doc": "The first.", "type": "int"}]}'
    assert columns(parse(text)) == (AvroColumn("a", "int", "The first."),)


def test_a_schema_uses_types_of_those_it_refers_to():
    money = '{"type": "record", "name": "shop.money", "fields": [{"name": "amount", "type": "shop.number"}]}'
    number = '{"type": "fixed", "name": "shop.number", "size": 2}'
    text = '{"type": "record", "name": "shop.order", "fields": [{"name": "paid", "type": "money"}, {"name": "owed", "type": "money"}]}'
    schema = parse(text, [number, money])
    assert ddl(schema) == "paid struct<amount: binary>, owed struct<amount: binary>"
    alone = json.loads(to_json(schema))
    assert alone["fields"][0]["type"]["fields"][0]["type"]["size"] == 2
    assert alone["fields"][1]["type"] == "shop.money"
    assert parse(to_json(schema)).record == parse(to_json(parse(to_json(schema)))).record


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"type": 1}', "null", "1", '{"type": "record", "name": 1, "fields": []}',
                                  '{"type": "record", "name": "r", "fields": [1]}', '{"type":"enum","name":"e","symbols":[1]}',
                                  '{"type":"record","name":"r","aliases":"x","fields":[]}', '"' + "x" * 6_000_000 + '"'])  # fmt: skip
def test_anything_else_is_a_fault_of_the_schema(text):
    with pytest.raises(AvroError):
        parse(text)
