"""`value: {format: avro, ...}` and its schema file, as the compiler sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.small_projects import clean, compiled, lines, only

PROJECT = """\
name: shop
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: main
    connections: {main: {bootstrap_servers: "localhost:9092"}}
    schema_registries: {main: {url: "{{ env_var('REGISTRY') }}"}}
"""
SCHEMA = '{"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}\n'
MODEL = "/*---\nstreams: [shop.events]\n---*/\nselect * from {{ source('shop', 'events') }}\n"


def files(value: str, topic: str = "topic: events", more: str = "", **also: str) -> dict[str, str | bytes]:
    table = f"name: events\n        format: kafka\n        {topic}\n        connection: main\n        value: {value}\n{more}"
    sources = f"sources:\n  - name: shop\n    tables:\n      - {table}"
    named = {name.replace("__", "/").replace("_avsc", ".avsc"): text for name, text in also.items()}
    return {"project.yml": PROJECT, "sources/shop.yml": sources, "models/copy.sql": MODEL, **named}


@pytest.mark.parametrize("place", ["sources__events_avsc", "sources__schemas__events_avsc"])
@pytest.mark.parametrize("named", ["beside", "from the project"])
def test_the_columns_of_a_schema_file_are_known(tmp_path: Path, place: str, named: str):
    path = place.replace("__", "/").replace("_avsc", ".avsc")
    file = path.removeprefix("sources/") if named == "beside" else path
    manifest = clean(tmp_path, files(f"{{format: avro, schema_file: {file}}}", **{place: SCHEMA}))
    assert manifest.diagnostics == ()
    (model,) = manifest.models
    assert [(column.name, column.type) for column in model.columns] == [("id", "int"), ("at", "timestamp")]


@pytest.mark.slow
def test_a_schema_file_is_part_of_what_a_model_means(tmp_path: Path):
    def fingerprint(schema: str) -> str:
        manifest = clean(tmp_path, files("{format: avro, schema_file: e.avsc}", sources__e_avsc=schema))
        return manifest.models[0].fingerprint

    first = fingerprint(SCHEMA)
    assert fingerprint(SCHEMA.replace(", ", ",\n  ").replace('"name": "id"', '"doc": "Unique.", "name": "id"')) == first
    assert fingerprint(SCHEMA.replace("millis", "micros")) != first


def test_a_changed_schema_file_is_seen_by_the_fact_cache(tmp_path: Path):
    def columns(schema: str) -> list[str]:
        project = files("{format: avro, schema_file: e.avsc}", sources__e_avsc=schema)
        result = compiled(tmp_path, project, cached=tmp_path / "target")
        return [column.name for column in result.manifest.models[0].columns]

    assert columns(SCHEMA) == ["id", "at"]
    assert columns(SCHEMA.replace('"at"', '"time"')) == ["id", "time"]


def test_without_a_file_the_columns_are_unknown_and_that_is_said(tmp_path: Path):
    result = compiled(tmp_path, files("{format: avro, schema_registry: main}"))
    found = only(result.manifest.diagnostics)
    assert (found.code, found.is_error) == ("unknown-columns", False)
    assert "engine source inspect shop.events" in found.hint
    assert result.manifest.models[0].columns == ()


@pytest.mark.slow
def test_declared_columns_need_no_registry_to_be_known(tmp_path: Path):
    manifest = clean(tmp_path, files("{format: avro, schema_registry: main}", more="        schema: id int\n"))
    assert manifest.diagnostics == ()
    assert [column.name for column in manifest.models[0].columns] == ["id"]


def test_a_fault_of_a_schema_file_has_its_place_there(tmp_path: Path):
    broken = SCHEMA.replace('"int"', '"integer"')
    result = compiled(tmp_path, files("{format: avro, schema_file: e.avsc}", sources__e_avsc=broken))
    assert lines(result.manifest.diagnostics)[0] == "avro-schema sources/e.avsc:1:71 unknown type 'integer'"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{format: avro}", "missing-key 8:16 Avro values need a schema"),
        ("{format: avro, schema_file: none.avsc}", "file-unreadable 8:44 schema file 'none.avsc' not found"),
        ("{format: avro, schema_file: e.avsc, subject: s}", "setting-needs 8:52 'subject' needs 'schema_registry'"),
        ("{format: avro, schema_file: e.avsc, schema_id: 7}", "setting-needs 8:52 'schema_id' needs 'schema_registry'"),
        ("{format: avro, schema_file: e.avsc, framing: kafka}", "bad-value 8:61 unknown framing 'kafka'"),
        ("{format: avro, schema_file: e.avsc, framing: confluent}", "setting-needs 8:61 'framing: confluent' needs 'schema_id' or 'schema_registry'"),
        ("{format: avro, schema_registry: main, framing: none}", "setting-conflict 8:63 plain Avro has no schema ids"),
        ("{format: avro, schema_registry: main, schema_file: e.avsc, schema_id: 7}", "setting-conflict 8:86 'schema_id' and 'schema_file' exclude each other"),
        ("{format: avro, schema_registry: other}", "unknown-connection 8:48 the target 'dev' has no schema registry 'other'"),
        ("{format: avro, schema_registry: main, schema_id: 5000000000}", "bad-value 8:65 5000000000 is not a schema id"),
        ("{format: avro, schema_registry: main, shema_id: 5}", "unknown-key 8:54 a value of format 'avro' has no key 'shema_id'"),
    ],
)  # fmt: skip
def test_keys_that_do_not_go_together(tmp_path: Path, value: str, expected: str):
    result = compiled(tmp_path, files(value, sources__e_avsc=SCHEMA))
    (found,) = [d for d in result.manifest.diagnostics if d.is_error]
    assert found.location is not None
    assert f"{found.code} {found.location.line}:{found.location.column} {found.message}" == expected


def test_the_subject_of_a_pattern_is_said(tmp_path: Path):
    pattern = "topic_pattern: events-.*"
    result = compiled(tmp_path, files("{format: avro, schema_registry: main}", pattern))
    (found,) = [d for d in result.manifest.diagnostics if d.is_error]
    assert found.message == "the subject of a topic pattern is unknown"
    said = "{format: avro, schema_registry: main, subject: events-value}"
    assert [d for d in compiled(tmp_path, files(said, pattern)).manifest.diagnostics if d.is_error] == []
