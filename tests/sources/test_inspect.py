"""`engine source inspect`: the declaration it prints is one that works."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.lab import Lab
from tests.sources.test_avro_kafka import AVRO, ORDER, Shop, as_json, event, shop  # noqa: F401 - a fixture

pytestmark = pytest.mark.spark


def declared(text: str) -> dict[str, Any]:
    (source,) = yaml.safe_load(text)["sources"]
    (table,) = source["tables"]
    table["schema"] = " ".join(table["schema"].split())
    return table


def inspected(lab: Lab, name: str) -> str:
    result = lab.run("source", "inspect", name)
    assert result.code == 0, result.text
    return result.out


def test_the_columns_of_a_registry_need_no_java(shop: Shop, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    topic = shop.topic()
    schema = json.loads(json.dumps(ORDER))
    schema["fields"][0]["doc"] = "Unique."
    shop.registry.register(f"{topic}-value", schema)
    shop.source("orders", AVRO, topic)
    monkeypatch.setattr(
        "engine.runtime.operations.inspect_source.spark_session", lambda *_, **__: pytest.fail("starts Java")
    )
    text = inspected(shop.lab, "shop.orders")
    assert declared(text) == {
        "name": "orders",
        "format": "kafka",
        "topic": topic,
        "connection": "main",
        "value": {"format": "avro", "schema_registry": "main"},
        "schema": "id int, at timestamp, amount double, item struct<name: string, n: bigint>, tags array<string>, marks map<string, int>",
        "columns": {"id": "Unique."},
    }
    assert "unknown-columns" in shop.lab.run("compile").codes()
    shop.lab.write("sources/orders.yml", text)
    result = shop.lab.run("compile")
    assert (result.code, result.codes()) == (0, [])


def test_the_columns_of_json_on_a_topic_are_seen_in_a_sample(shop: Shop):  # noqa: F811
    topic = shop.topic()
    shop.source("orders", "json", topic)
    empty = shop.lab.run("source", "inspect", "shop.orders")
    assert empty.code == 1
    assert "sample-empty" in empty.text
    shop.broker.send(topic, [as_json(event(1)), as_json(event(2)), "no json", None])
    assert shop.lab.run("compile").codes() == ["missing-key"]
    text = inspected(shop.lab, "shop.orders")
    schema = declared(text)["schema"]
    assert "at timestamp" in schema
    assert "item struct<n: bigint, name: string>" in schema
    shop.lab.write("sources/orders.yml", text)
    assert shop.lab.run("compile").codes() == []


def test_the_columns_of_files_are_seen_in_them(lab: Lab):
    lab.write("landing/a/x.csv", "id,at,name\n1,2024-01-01 10:00:00,a\n2,2024-01-01 11:00:00,b\n")
    lab.land("x", [{"id": 1, "odd name": {"a": 1.5}}], "landing/b")
    files = "sources:\n  - name: f\n    tables:\n      - {name: a, format: csv, path: landing/a}\n      - {name: b, format: json, path: landing/b, options: {allowComments: true}}\n"
    lab.write("sources/f.yml", files)
    assert declared(inspected(lab, "f.a"))["schema"] == "id int, at timestamp, name string"
    found = declared(inspected(lab, "source.f.b"))
    assert found["schema"] == "id bigint, `odd name` struct<a: double>"
    assert found["options"] == {"allowComments": "true"}
    assert found["path"] == "landing/b"


def test_a_source_that_is_not_there_is_told(lab: Lab):
    lab.write(
        "sources/f.yml",
        "sources:\n  - name: f\n    tables:\n      - {name: abc, format: json, path: landing/x, schema: id int}\n",
    )
    unknown, missing = lab.run("source", "inspect", "f.abd"), lab.run("source", "inspect", "f.abc")
    assert (unknown.code, missing.code) == (2, 1)
    assert "f.abc" in unknown.text
    assert "source-folder-missing" in missing.text
