"""A small project for each block of keys, and what a key needs beside it to have an effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
Files = dict[str, str | bytes]

COLUMNS = {"id": "string", "ts": "timestamp", "op": "string", "amount": "double"}
ORDERS: Data = {
    "name": "orders",
    "format": "json",
    "path": "landing",
    "schema": ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()),
}
SHOP: Data = {"name": "shop", "tables": [ORDERS]}
CLOCK: Data = {"name": "clock", "tables": [{"name": "x", "format": "rate"}]}
SELECT = "select id, ts, op, amount from {{ source('shop', 'orders') }}"
STREAM: Data = {"streams": {"shop.orders": {"watermark": "ts delay 1 minute"}}}
VERSIONS = {"materialized": "table", "history": True, "unique_key": "id"}
KEYED: Data = {**STREAM, "unique_key": "id", "sequence_by": "ts"}
ROWS: Data = {"rows": [{"id": "1"}]}
TEST: Data = {"name": "t", "model": "a", "given": {"shop.orders": [{"id": "1"}]}, "expect": [{"id": "1"}]}
EXPOSURE: Data = {"name": "board", "type": "dashboard", "owner": {"name": "Sales"}}
KAFKA: Data = {"name": "orders", "format": "kafka", "connection": "main", "schema": "id string, ts timestamp"}
CONNECTION: Data = {"bootstrap_servers": "h:1"}
DATABASE: Data = {"uri": "jdbc:postgresql://h/d"}
SINK_TO: Data = {"connection": "crm", "table": "x.y"}
SINK: Data = {"name": "out", "from": "a", "to": SINK_TO}
REGISTRY: Data = {"url": "https://r.example"}
TARGET: Data = {"schema": "main", "connections": {"main": CONNECTION}, "schema_registries": {"main": REGISTRY}}
OTHER: Data = {"schema": "other"}
PROJECT: Data = {"name": "base", "targets": {"dev": TARGET, "other": OTHER}, "target": "dev"}
TYPED: Data = {"columns": {name: {"type": kind} for name, kind in COLUMNS.items()}}

# Every project has them, unless its block says otherwise; some are in folders that `paths:` may name.
FILES: Files = {
    "project.yml": json.dumps(PROJECT),
    "sources/shop.yml": json.dumps({"sources": [SHOP]}),
    "sources/clock.yml": json.dumps({"sources": [CLOCK]}),
    "sources/orders.avsc": '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}',
    "models/a.sql": SELECT,
    "models/c.sql": SELECT,
    "models/d.sql": "select id from {{ ref('a') }}",
    "macros/m.sql": "{% macro m() %} 2 {% endmacro %}",
    "tests/fixtures/orders.csv": "id\n7\n",
    "sql/a.sql": SELECT,
    "jinja/n.sql": "{% macro n() %} 1 {% endmacro %}",
    "vendor/kit/macros/m.sql": "{% macro m() %} 1 {% endmacro %}",
    "inputs/all.yml": json.dumps({"sources": [SHOP, CLOCK, {**CLOCK, "name": "second"}]}),
    "checks/t.sql": "select * from {{ ref('a') }} where id is null",
}


def project(top: Data) -> Files:
    return {"project.yml": json.dumps({**PROJECT, **top})}


def target(top: Data) -> Files:
    return project({"targets": {"dev": {**TARGET, **top}, "other": OTHER}})


def connection(top: Data) -> Files:
    return target({"connections": {"main": top}})


def sources(top: Data) -> Files:
    return {"sources/shop.yml": json.dumps(top)}


def table(top: Data) -> Files:
    """A source table, and models that still can read it."""
    there = top.get("name") == "orders" and top.get("format") in {"json", "csv"}
    header = "/*---\nstreams: [shop.orders]\n---*/\n" if "after_reading" in top else ""
    sql = header + SELECT if there else "select 1 as id"
    return {
        **sources({"sources": [{"name": "shop", "tables": [top]}]}),
        "models/a.sql": sql,
        "models/c.sql": "select 1 as id",
    }


def kafka_value(top: Data) -> Files:
    schema = {"avro": "id string", "bytes": None}.get(str(top["format"]), KAFKA["schema"])
    return table({**KAFKA, "topic": "t", "value": top, "schema": schema})


def model(header: Data, sql: str = SELECT) -> Files:
    if "windows" in header:
        sql = "select hour.start as id, count(*) as n from {{ source('shop', 'orders') }} group by hour"
    return {"models/a.sql": f"/*---\n{json.dumps(header)}\n---*/\n{sql}\n", "models/d.sql": "select 1 as id\n"}


def stream(top: Data) -> Files:
    return model({"streams": {"shop.orders": top}})


def stream_of_a_model(top: Data) -> Files:
    header = json.dumps({"streams": {"a": {key: value for key, value in top.items() if key != "watermark"}}})
    return {**model(STREAM), "models/d.sql": f"/*---\n{header}\n---*/\nselect id from {{{{ ref('a') }}}}\n"}


def column(top: Data) -> Files:
    return model({"columns": [top] if "name" in top else {"id": top}})


def unit_tests(top: Data) -> Files:
    return {**model(STREAM), "tests/t.yml": json.dumps(top)}


def unit_test(top: Data) -> Files:
    return unit_tests({"unit_tests": [{**TEST, **top}]})


def exposures(top: Data) -> Files:
    return {"models/board.yml": json.dumps(top)}


def exposure(top: Data) -> Files:
    return exposures({"exposures": [{**EXPOSURE, **top}]})


def sinks(top: Data) -> Files:
    """A file of sinks, with the database that they deliver to."""
    return {**exposures({"exposures": [], **top}), **target({"connections": {"main": CONNECTION, "crm": DATABASE}})}


def selectors(top: Data) -> Files:
    return {"selectors.yml": json.dumps(top)}


def definition(top: Data) -> Files:
    return selectors({"selectors": [{"name": "n", "default": True, "definition": top}]})


# By block: what is there without the key, and the files that a mapping of it makes.
SECURED: Data = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "a", "password": "b"}


def _with_certificate(top: Data, other: str, tested: str) -> Files:
    """A client's certificate and its key belong together: the other comes with the one that is tested."""
    texts = {"key": "{{ env_var('ENGINE_SECRET_KAFKA_KEY') }}", "certificate": "{{ env_var('KAFKA_CERTIFICATE') }}"}
    beside = {other: texts[other]} if tested in top else {}
    return connection({**CONNECTION, "security": {**top, **beside}})


PLACES: dict[str, tuple[Data, Callable[[Data], Files]]] = {
    "project": (PROJECT, project),
    "paths": ({}, lambda top: project({"paths": top})),
    "flags": ({}, lambda top: project({"flags": top})),
    "target": (TARGET, target),
    "catalog": ({}, lambda top: target({"catalog": top})),
    "s3": ({"access_key_id": "a", "secret_access_key": "b"}, lambda top: target({"s3": top})),
    "spark": ({}, lambda top: target({"spark": top})),
    "connection": (CONNECTION, connection),
    "security": (
        SECURED,
        lambda top: connection({**CONNECTION, "security": top}),
    ),
    "registry": (REGISTRY, lambda top: target({"schema_registries": {"main": top}})),
    "openlineage": ({"type": "http", "url": "https://l.example"}, lambda top: target({"openlineage": top})),
    "alerts": ({"url": "https://h.example"}, lambda top: target({"alerts": top})),
    "source_file": ({"sources": [SHOP]}, sources),
    "source": (SHOP, lambda top: sources({"sources": [top]})),
    "source_table": (ORDERS, table),
    "reading": ({}, lambda top: table({**ORDERS, "targets": {"dev": top}})),
    "files": (ORDERS, table),
    "kafka": ({**KAFKA, "topic": "t"}, table),
    "value": ({"format": "json"}, kafka_value),
    "iceberg": ({"name": "t", "format": "iceberg", "table": "a.b", "schema": "id string"}, table),
    "rate": ({"name": "t", "format": "rate"}, table),
    "socket": ({"name": "t", "format": "socket", "host": "h", "port": 1}, table),
    "spark_reader": ({"name": "t", "format": "spark.x", "schema": "id string"}, table),
    "freshness": ({"warn_after": "1 minute"}, lambda top: table({**ORDERS, "loaded_at_field": "ts", "freshness": top})),
    "age": (
        {"count": 1, "period": "day"},
        lambda top: table({**ORDERS, "loaded_at_field": "ts", "freshness": {"warn_after": top}}),
    ),
    "model": ({}, model),
    "stream": ({"watermark": "ts delay 1 minute"}, stream),
    "watermark": (
        {"column": "ts", "delay": "1 minute"},
        lambda top: model({"streams": {"shop.orders": {"watermark": top}}}, SELECT.replace(" ts,", "")),
    ),
    "expectation": ({"name": "n", "check": "id <> ''"}, lambda top: model({"expectations": [top]})),
    "state_store": ({}, lambda top: model({**STREAM, "state_store": top})),
    "contract": ({}, lambda top: model({**TYPED, "contract": top})),
    "persist_docs": ({}, lambda top: model({"persist_docs": top})),
    "column": ({}, column),
    "data_test": ({"values": ["x"]}, lambda top: column({"tests": [{"accepted_values": top}]})),
    "test_config": ({}, lambda top: column({"tests": [{"unique": {"config": top}}]})),
    "unit_test_file": ({}, unit_tests),
    "unit_test": (TEST, lambda top: unit_tests({"unit_tests": [top]})),
    "unit_test_config": ({}, lambda top: unit_test({"config": top})),
    "step": ({"given": {"shop.orders": []}}, lambda top: unit_test({"steps": [top], "given": None})),
    "given": ({"input": "shop.orders", **ROWS}, lambda top: unit_test({"given": [top]})),
    "rows": (ROWS, lambda top: unit_test({"expect": top})),
    "expect": (ROWS, lambda top: unit_test({"expect": top})),
    "overrides": ({}, lambda top: unit_test({"overrides": top})),
    "exposure_file": ({"exposures": []}, exposures),
    "exposure": (EXPOSURE, lambda top: exposures({"exposures": [top]})),
    "owner": ({"name": "Sales"}, lambda top: exposure({"owner": top})),
    "exposure_config": ({}, lambda top: exposure({"config": top})),
    "sink": (SINK, lambda top: sinks({"sinks": [top]})),
    "sink_to": (SINK_TO, lambda top: sinks({"sinks": [{**SINK, "to": top}]})),
    "selector_file": ({}, selectors),
    "selector": ({"name": "n", "definition": "a", "default": True}, lambda top: selectors({"selectors": [top]})),
    "definition": ({}, definition),
    "term": ({"method": "fqn", "value": "a"}, definition),
}
_AVRO = {"format": "avro", "schema_registry": "main"}
_DEBEZIUM = {"format": "debezium"}
_AVRO_FILE = {"format": "avro", "schema_file": "orders.avsc"}
_ROWS = ("rows", "given", "expect")
# What a key needs beside it; None removes what is there.
BESIDE: dict[str, Data] = {
    "source_table.dedup": {"watermark": "ts delay 1 minute"},
    "source_table.options": {"format": "csv"},
    "reading.options": {"format": "csv", "path": "x"},
    "reading.format": {"path": "x"},
    **{f"{block}.allow_unknown_options": {"options": {"new": 1}} for block in ("source_table", "reading")},
    **{f"{block}.freshness": {"loaded_at_field": "ts"} for block in ("source", "source_table")},
    **{f"{block}.loaded_at_field": {"freshness": {"warn_after": "1 hour"}} for block in ("source", "source_table")},
    "files.archive_path": {"after_reading": "archive"},
    **{f"kafka.{key}": {"topic": None} for key in ("topics", "topic_pattern", "assign")},
    "value.key": _DEBEZIUM,
    "value.flattened": {**_DEBEZIUM, "key": ["id"]},
    "kafka.key": {"on_tombstone": "delete"},
    "value.on_truncate": {**_DEBEZIUM, "key": ["id"]},
    "value.subject": _AVRO,
    "value.schema_id": _AVRO,
    "value.schema_file": _AVRO,
    "value.schema_registry": _AVRO_FILE,
    "value.framing": _AVRO_FILE,
    "model.contract": TYPED,
    "model.output_mode": {**STREAM, "unique_key": "id"},
    "model.state_store": STREAM,
    "model.unique_key": STREAM,
    "model.sequence_by": {**STREAM, "unique_key": "id"},
    "model.delete_when": KEYED,
    "model.deletes_remembered": {**KEYED, "delete_when": "op = 'd'"},
    "model.history": KEYED,
    "model.check": VERSIONS,
    "model.deletes": {**VERSIONS, "check": "all"},
    "model.on_empty_extract": {**VERSIONS, "check": "all", "deletes": "close"},
    "model.exclude": KEYED,
    "model.trigger": STREAM,
    "model.stalled_after": STREAM,
    "model.keep_previous": STREAM,
    "model.renamed_from": STREAM,
    "model.acknowledge": {**STREAM, "trigger": "once"},
    "source_table.acknowledge": {"format": "iceberg", "table": "a.b", "path": None, "schema": None},
    "model.overwrite": {"partition_by": "day(ts)"},
    "unit_test.steps": {"given": None},
    "step.restart": {"given": None, "expect": [{"id": "1"}]},
    "step.flush": {"given": None, "expect": [{"id": "1"}]},
    **{f"{block}.{key}": {"rows": None} for block in _ROWS for key in ("csv", "sql", "fixture")},
    **{f"{block}.format": {"rows": "select 1 as id"} for block in _ROWS},
    "connection.username": DATABASE,
    "connection.password": DATABASE,
    "openlineage.path": {"type": "file", "url": None},
    **{f"s3.{key}": {"access_key_id": "x", "secret_access_key": "y"} for key in ("access_key_id", "secret_access_key")},
    "catalog.uri": {"type": "rest"},
    **{
        f"catalog.{key}": {"type": "rest", "uri": "https://c.example"}
        for key in (
            "warehouse",
            "credential",
            "token",
            "oauth2-server-uri",
            "scope",
            "audience",
            "resource",
            "prefix",
            "io-impl",
        )
    },
    "selector.default": {"default": None},
    "definition.method": {"value": "a"},
    "definition.value": {"method": "fqn"},
    **{f"definition.{key}": {"method": "fqn", "value": "a"} for key in ("parents", "childrens_parents", "exclude")},
    **{f"{block}.children": {"method": "source", "value": "shop"} for block in ("definition", "term")},
    **{f"{block}.parents_depth": {"method": "fqn", "value": "d", "parents": True} for block in ("definition", "term")},
    **{
        f"{block}.children_depth": {"method": "source", "value": "shop", "children": True}
        for block in ("definition", "term")
    },
}
# Another value than the example's, where that is what is there anyway, or names what is not there.
VALUES: dict[str, Any] = {
    "exposure_file.exposures": [EXPOSURE],
    "sink.from": "c",
    "sink.to": {"connection": "crm", "table": "x.z"},
    "sink.key": ["id"],
    "sink.columns": ["id"],
    "sink.exclude": ["op"],
    "exposure.type": "notebook",
    "exposure.depends_on": ["a"],
    "project.vars": {"days": 8},
    "project.targets": {"dev": {"schema": "elsewhere"}},
    "project.target": "other",
    "project.models": {"+tags": ["x"]},
    "security.protocol": "SASL_PLAINTEXT",
    "source_file.sources": [SHOP, {"name": "two", "tables": [{"name": "t", "format": "rate"}]}],
    "source.tables": [{**ORDERS, "description": "x"}],
    **{f"{block}.loaded_at_field": "ts" for block in ("source", "source_table")},
    "source_table.name": "other",
    "source_table.format": "csv",
    "source_table.schema": f"{ORDERS['schema']}, more int",
    "source_table.watermark": "ts delay 30 minutes",
    "source_table.targets": {"dev": {"path": "elsewhere"}},
    "reading.format": "parquet",
    "reading.schema": f"{ORDERS['schema']}, more int",
    "value.format": "bytes",
    "freshness.filter": "op = 'x'",
    "model.acknowledge": "trigger-once",
    "model.columns": {"id": {"tests": ["unique"]}},
    "model.materialized": "ephemeral",
    "model.streams": STREAM["streams"],
    "model.windows": {"hour": "tumbling(ts, 1 hour)"},
    "model.output_mode": "update",
    "model.sequence_by": ["ts"],
    "model.check": ["ts"],
    "model.partition_by": ["day(ts)"],
    "model.sort_by": ["id desc"],
    "stream.watermark": "ts delay 30 minutes",
    "watermark.as": "cast(ts as timestamp)",
    "expectation.check": "id <> 'x'",
    "data_test.arguments": {"values": ["a", "b"]},
    "unit_test_file.unit_tests": [TEST],
    "unit_test.model": "c",
    "unit_test.given": {"shop.orders": [{"id": "2"}]},
    "unit_test.steps": [{"given": {"shop.orders": []}}, "restart"],
    "unit_test.expect": [{"id": "2"}],
    "unit_test.overrides": {"vars": {"days": 1}},
    "step.given": {"shop.orders": [{"id": "2"}]},
    **{f"{block}.rows": [{"id": "2"}] for block in _ROWS},
    **{f"{block}.csv": "id\n2" for block in _ROWS},
    "overrides.vars": {"days": 1},
    "overrides.macros": {"m": "1"},
    "selector_file.selectors": [{"name": "n", "definition": "a", "default": True}],
    "selector.definition": "c",
    "selector.name": "m",
    "definition.union": ["a", "c"],
    "definition.intersection": ["path:models", "c"],
    "definition.method": "fqn",
    **{f"{block}.value": "c" for block in ("definition", "term")},
    **{f"{block}.exclude": ["a"] for block in ("definition", "term")},
    **{f"{block}.{key}": 1 for block in ("definition", "term") for key in ("parents_depth", "children_depth")},
}
# Keys whose value is compared with something: one that does not hold, and the code of the error.
REJECTED: dict[str, tuple[Any, str]] = {
    "project.require_engine_version": (">=9", "engine-version"),
    "catalog.type": ("nessie", "not-supported"),
    "target.allow_after_reading": ("landing", "bad-value"),
    "openlineage.type": ("smoke", "bad-value"),
    "target.require_replayable": (True, "source-not-replayable"),
    **{f"{file}.version": (3, "bad-value") for file in ("source_file", "unit_test_file", "exposure_file")},
    "exposure_file.sinks": ([SINK], "unknown-connection"),
    "sink.changes": ("upserts", "setting-needs"),
    "sink_to.connection": ("other", "unknown-connection"),
    "sink_to.topic": ("shop.orders", "setting-conflict"),
    "source.name": ("other", "unknown-source"),
    "kafka.connection": ("other", "unknown-connection"),
    "watermark.column": ("other", "watermark-missing-column"),
    "column.name": ("nothing", "unknown-column"),
    "column.type": ("int", "column-type"),
    "column.data_type": ("int", "column-type"),
    "given.input": ("nothing", "unit-test-input"),
    "term.method": ("source", "selection-empty"),
}
# Keys whose example is about another place than that of their block.
ELSEWHERE: dict[str, tuple[Data, Callable[[Data], Files]]] = {
    "security.certificate": (SECURED, lambda top: _with_certificate(top, "key", "certificate")),
    "security.key": (SECURED, lambda top: _with_certificate(top, "certificate", "key")),
    "stream.on_upstream_delete": (PLACES["stream"][0], stream_of_a_model),
}
