"""Avro schemas that are short as a text and large as columns: an error with its place, before anything is written out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import SetupError
from engine.sources.avro.reader_schema import prepare, read_value
from engine.sources.avro.schema_resolution import UnsuitableError, resolve
from engine.sources.avro_schema.avro_columns import ddl
from engine.sources.avro_schema.avro_types import AvroError
from engine.sources.avro_schema.parse_schema import MOST_DEPTH, MOST_TYPES, parse
from tests.project.small_projects import PROJECT, compiled
from tests.security.test_hostile_registry import INT, refers, serving, subject_of

pytestmark = pytest.mark.slow


def record(name: str, *types: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{n}", "type": type_} for n, type_ in enumerate(types)],
    }


def doubling(levels: int) -> dict[str, Any]:
    """Records that each use the next one twice."""
    made = record(f"A{levels}", "int")
    for level in reversed(range(levels)):
        made = record(f"A{level}", made, f"A{level + 1}")
    return made


def chain(levels: int) -> dict[str, Any]:
    """Records that each use the one before, all written side by side."""
    return record("all", record("A0", "int"), *(record(f"A{n}", f"A{n - 1}") for n in range(1, levels)))


TOO_LARGE = {
    "doubling records": doubling(30),
    "doubling in lists": record("r", *({"type": "array", "items": part} for part in (doubling(30), "A0"))),
    "doubling in unions": record("r", ["null", doubling(30)]),
    "a long chain": chain(1000),
    "a deep list": record("r", json.loads('{"type":"array","items":' * 100 + '"int"' + "}" * 100)),
    "a long name used often": record("r", record("a", "int") | {"fields": [{"name": "x" * 9000, "type": "int"}]}, *["a"] * 900),
    "a decimal of very many digits": record("r", {"type": "fixed", "name": "f", "size": 10**8, "logicalType": "decimal", "precision": 10**9}),
    "a fixed of very many bytes": record("r", {"type": "fixed", "name": "f", "size": 10**18}),
    "a deep default": {"type": "record", "name": "r", "fields": [{"name": "x", "type": "int", "default": json.loads("[" * 300 + "]" * 300)}]},
    "a record that is its own default": {"type": "record", "name": "r", "fields": [{"name": "x", "type": "r", "default": {}}]},
}  # fmt: skip


@pytest.mark.parametrize("schema", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_schema_file_is_an_error_at_its_place(tmp_path, schema):
    source = (
        "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: kafka\n        topic: t\n"
        "        connection: main\n        value: {format: avro, schema_file: x.avsc}\n"
    )
    project = f"{PROJECT}    connections: {{main: {{bootstrap_servers: 'h:1'}}}}\n"
    files = {"project.yml": project, "sources/shop.yml": source, "sources/x.avsc": json.dumps(schema)}
    found = [d for d in compiled(tmp_path, files).manifest.diagnostics if d.is_error]
    assert [d.code for d in found] == ["avro-schema"]
    assert found[0].location is not None
    assert found[0].location.file == "sources/x.avsc"
    assert found[0].location.line == 1
    assert len(found[0].message) < 300


@pytest.mark.parametrize("schema", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_registrys_schema_is_an_error(schema):
    value = read_value({"format": "avro", "schema_registry": "main", "schema_id": 1})
    answer = {"schema": json.dumps(schema), "id": 1}
    with serving(lambda _: answer) as server, pytest.raises(SetupError) as error:
        prepare(value, server.client())
    assert error.value.diagnostic.code == "registry-schema"


def test_references_that_double_are_an_error():
    def answer(path: str) -> Any:
        level = 0 if "ids" in path else int(subject_of(path)[1:])
        inner = f"A{level + 1}" if level < 15 else "int"
        also = refers(*([inner] if inner != "int" else []))
        return {**also, "schema": json.dumps(record(f"A{level}", inner, inner)), "id": 1}

    with serving(answer) as server, pytest.raises(SetupError) as error:
        server.client().schema(1)
    assert error.value.diagnostic.code == "registry-schema"
    assert "10,000" in str(error.value)


def test_what_is_within_the_bounds_is_read():
    assert ddl(parse(json.dumps(doubling(10)))).count("int") == 2**10
    assert ddl(parse(json.dumps(chain(MOST_DEPTH - 2))))
    wide = record("r", *["int"] * (MOST_TYPES - 1))
    assert len(parse(json.dumps(wide)).record.fields) == MOST_TYPES - 1
    with pytest.raises(AvroError):
        parse(json.dumps(record("r", *["int"] * MOST_TYPES)))


def test_an_enum_of_very_many_symbols_is_read():
    symbols = [f"s{n}" for n in range(90_000)]
    schema = record("r", {"type": "enum", "name": "e", "symbols": symbols})
    assert ddl(parse(json.dumps(schema))) == "f0 string"


def nested(levels: int, side: str) -> dict[str, Any]:
    """Records in unions in records: each union is looked through for each branch that could take a record."""
    made: Any = "int"
    for level in range(levels):
        made = ["null", record(f"{side}{level}", made)]
    return record("r", made)


def test_comparing_two_schemas_is_bounded():
    writer, reader = (parse(json.dumps(nested(28, side))) for side in "WR")
    with pytest.raises(UnsuitableError, match="too many nested unions"):
        resolve(writer, reader)
    same = parse(json.dumps(nested(28, "R")))
    assert resolve(same, reader).doubts == ()
    assert parse(INT)
