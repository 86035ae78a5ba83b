"""`engine source inspect`: the declaration it prints is one that works."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fixtures import read_rows
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


COLUMNS = dict(read_rows(Path(__file__).parent / "fixtures/columns.txt", "types", 2))


def test_a_column_has_a_type_only_if_each_value_comes_back_as_it_was_written(lab: Lab):
    columns = [text.split(" ") for text in COLUMNS]
    longest = max(map(len, columns))
    rows = [",".join(f"c{i}" for i in range(len(columns)))]
    rows += [",".join(c[n] if n < len(c) else "" for c in columns) for n in range(longest)]
    lab.write("landing/a/x.csv", "\n".join(rows) + "\n")
    lab.write("sources/f.yml", "sources:\n  - name: f\n    tables:\n      - {name: a, format: csv, path: landing/a}\n")
    text = inspected(lab, "f.a")
    found = re.findall(r"(c\d+) ((?:[a-z]+)(?:\(\d+, ?\d+\))?)", declared(text)["schema"])
    assert {columns_text: kind for columns_text, (_, kind) in zip(COLUMNS, found, strict=True)} == COLUMNS
    # With the declaration that was printed, each text is there as it was.
    lab.write("sources/f.yml", text)
    lab.model("read", "select * from {{ source('f', 'a') }}\n")
    lab.build()
    read = sorted(lab.rows("read"), key=lambda row: str(row["c1"]))
    assert {row["c0"] for row in read} >= {"0042", "1"}
    assert sorted(row["c8"] for row in read if row["c8"] is not None) == [1.5, 2.25, 3.0]
    assert {str(row["c9"]) for row in read if row["c9"] is not None} == {"1.50", "2.25", "13.00"}


JSON_ROWS = [
    {"zip": "94107", "year": "2024", "month": "2024-05", "clock": "10:30", "at": "2024-05-01T10:00:00Z", "n": 1, "x": 1.5,
     "deep": {"zip": "10115", "at": "2024-05-01 10:00:00"}, "list": ["10115", "2024"], "times": ["2024-05-01T10:00:00Z"],
     "items": [{"zip": "01234", "at": "2024-05-01T10:00:00Z"}], "mixed": "2024-05-01T10:00:00Z"},
    {"zip": None, "year": "2025", "mixed": "2024"},
]  # fmt: skip


def test_strings_of_json_are_times_only_if_each_is_one(lab: Lab):
    lab.land("x", JSON_ROWS, "landing/b")
    path = lab.root / "landing/b/x.json"
    path.write_text(path.read_text() + '{"long": 0.12345678901234567890, "n": 2}\n{"long": 0.5}\n')
    lab.write("sources/f.yml", "sources:\n  - name: f\n    tables:\n      - {name: b, format: json, path: landing/b}\n")
    columns = declared(inspected(lab, "f.b"))["schema"]
    assert columns == (
        "at timestamp, clock string, deep struct<at: timestamp, zip: string>, "
        "items array<struct<at: timestamp, zip: string>>, list array<string>, long string, mixed string, month string, "
        "n bigint, times array<timestamp>, x double, year string, zip string"
    )


@pytest.mark.parametrize("text", ['[\n  {"id": 1},\n  {"id": 2}\n]\n', '[{"id": 1}, {"id": 2}]', ' \n[{"id":1}]\n'])
def test_an_array_is_told_with_what_to_do(lab: Lab, text: str):
    lab.write("landing/b/x.json", text)
    lab.write("sources/f.yml", "sources:\n  - name: f\n    tables:\n      - {name: b, format: json, path: landing/b}\n")
    refused = lab.run("source", "inspect", "f.b")
    assert (refused.code, refused.codes()) == (1, ["source-unreadable"]), refused.text
    assert "x.json is a JSON array" in refused.text
    assert "one object per line" in refused.text


def test_settings_that_cannot_be_read_are_named_at_their_place(lab: Lab):
    lab.write("project.yml", "name: shop\ntargets: {dev: {connections: {main: {bootstrap_servers: '127.0.0.1:9'}}}}\n")
    lab.write(
        "sources/s.yml",
        "sources:\n  - name: raw\n    tables:\n"
        "      - {name: a, format: kafka, connection: main, topic: t, value: {format: avro}}\n",
    )
    result = lab.run("source", "inspect", "raw.a")
    assert result.code == 1
    assert result.codes() == ["missing-key"], result.text
    assert '"file": "sources/s.yml", "line": 4, "column": 69' in result.text


def test_the_lateness_of_files_is_measured_by_their_arrival(lab: Lab):
    schema = "id int, at timestamp"
    lab.write("sources/f.yml", f"sources: [{{name: f, tables: [{{name: e, format: csv, path: landing, schema: '{schema}', on_bad_record: drop}}]}}]\n")  # fmt: skip
    files = ("1,2024-05-01 10:00:00\n2,2024-05-01 10:30:00\n", "3,2024-05-01 10:20:00\n4,2024-05-01 11:00:00\n", "5,\nx,2024-05-01 09:00:00\n6,2024-05-01 10:00:00\n")  # fmt: skip
    for number, text in enumerate(files):
        path = lab.write(f"landing/{number}.csv", f"id,at\n{text}")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    result = lab.run("source", "inspect", "f.e", "--lateness", "at")
    assert (result.code, result.out.splitlines()) == (
        0,
        [
            "5 rows of f.e, 2 of them behind an earlier arrival",
            "Ignored: 1 row without 'at', 1 bad record",
            "    50 %  on time",
            "    95 %  at most 1 hour late",
            "    99 %  at most 1 hour late",
            "  99.9 %  at most 1 hour late",
            "     all  at most 1 hour late",
            "Suggestion: watermark: at delay 1 hour",
        ],
    )
    for column, said in (
        ("att", "Columns: id, at."),
        ("id", "'id' is int, not a timestamp"),
        ("at +", "--lateness at +"),
    ):
        wrong = lab.run("source", "inspect", "f.e", "--lateness", column)
        assert (wrong.code, said in wrong.text) == (2, True), wrong.text


def test_the_lateness_of_a_topic_is_measured_by_the_times_of_its_records(shop: Shop):  # noqa: F811
    topic = shop.topic()
    shop.source("orders", "json", topic, "schema: id int, at timestamp")
    for time in ("10:00:00", "10:05:00", "10:04:30"):
        shop.broker.send(topic, [json.dumps({"id": 1, "at": f"2024-05-01 {time}"})])
    result = shop.lab.run("source", "inspect", "shop.orders", "--lateness", "at")
    assert result.code == 0, result.text
    assert result.out.splitlines()[0] == "3 rows of shop.orders, 1 of them behind an earlier arrival"
    assert result.out.splitlines()[-1] == "Suggestion: watermark: at delay 30 seconds"


def test_a_table_does_not_record_arrivals(lab: Lab):
    lab.write("sources/f.yml", "sources: [{name: f, tables: [{name: r, format: rate, dev_only: true}]}]\n")
    result = lab.run("source", "inspect", "f.r", "--lateness", "timestamp")
    assert result.code == 2
    assert "'f.r' does not record when its rows arrived" in result.text
