"""Avro on a topic, with a registry, through whole builds."""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import fastavro
import pytest

from tests.fault_injection.points import reached
from tests.lab import Lab
from tests.services.kafka import Broker
from tests.services.registry import Gateway, RegistryPart

pytestmark = pytest.mark.spark

PROJECT = """
name: lab
version: "1"
target: dev
targets:
  dev:
    catalog: {{type: sqlite, name: lake, path: {lake}}}
    schema: {schema}
    spark: {{master: "local[2]"}}
    connections: {{main: {{bootstrap_servers: "{broker}"}}}}
    schema_registries: {{main: {{url: "{registry}"}}}}
"""
SOURCE = """
sources:
  - name: shop
    tables:
      - name: {name}
        format: kafka
        topic: {topic}
        connection: main
        value: {value}
{more}
"""
MODEL = "/*---\nstreams: [shop.{name}]\n---*/\nselect * from {{{{ source('shop', '{name}') }}}}\n"
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "item", "type": {"type": "record", "name": "item", "fields": [{"name": "name", "type": "string"}, {"name": "n", "type": "long"}]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "marks", "type": {"type": "map", "values": "int"}},
    ],
}  # fmt: skip
NEWER = {**ORDER, "fields": [{"name": "source", "type": "string", "default": "shop"}, *ORDER["fields"]]}
DDL = "id int, at timestamp, amount double, item struct<name: string, n: bigint>, tags array<string>, marks map<string, int>"


def event(number: int) -> dict[str, Any]:
    amount = None if number % 3 == 0 else number / 4
    item = {"name": f"größe {number}", "n": number << 33}
    return {
        "id": number,
        "at": 1_700_000_000_123 + number,
        "amount": amount,
        "item": item,
        "tags": ["a"] * (number % 3),
        "marks": {"k": number},
    }


def as_json(row: dict[str, Any]) -> str:
    from datetime import UTC, datetime

    return json.dumps({**row, "at": datetime.fromtimestamp(row["at"] / 1000, UTC).isoformat()})


@dataclass
class Shop:
    """A project that reads topics of a broker, with a gateway before the registry."""

    lab: Lab
    broker: Broker
    registry: RegistryPart
    gateway: Gateway

    def source(self, name: str, value: str, topic: str, *more: str) -> None:
        text = SOURCE.format(name=name, topic=topic, value=value, more="\n".join(f"        {line}" for line in more))
        self.lab.write(f"sources/{name}.yml", text)
        self.lab.model(f"{name}_table", MODEL.format(name=name))

    def topic(self) -> str:
        return self.broker.create(f"t{uuid.uuid4().hex[:8]}", 2)

    def send(self, topic: str, schema: Any, rows: list[dict[str, Any]]) -> int:
        """Register a schema, and send rows of it."""
        number = self.registry.register(f"{topic}-value", schema)
        self.broker.send(topic, [framed(number, schema, row) for row in rows])
        return number

    def ids(self, name: str) -> list[int]:
        return self.lab.ids(f"{name}_table")


def framed(number: int, schema: Any, row: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), row)
    return b"\0" + number.to_bytes(4, "big") + stream.getvalue()


@pytest.fixture
def shop(lab: Lab, broker: Broker, registry: RegistryPart) -> Iterator[Shop]:
    with Gateway(registry.url).serving() as gateway:
        text = PROJECT.format(
            lake=lab.lake_path, schema=lab.schema, broker=broker.start().address, registry=gateway.url
        )
        lab.write("project.yml", text)
        yield Shop(lab, broker, registry, gateway)


AVRO = "{format: avro, schema_registry: main}"


def test_json_and_avro_give_equal_tables_from_the_same_events(shop: Shop):
    avro, text = shop.topic(), shop.topic()
    rows = [event(number) for number in range(500)]
    shop.send(avro, ORDER, rows[:250])
    shop.send(avro, NEWER, [{"source": "later", **row} for row in rows[250:]])
    shop.broker.send(text, map(as_json, rows))
    plain = shop.topic()
    shop.broker.send(plain, [framed(0, ORDER, row)[5:] for row in rows])
    shop.lab.write("sources/order.avsc", json.dumps(ORDER))
    shop.source("binary", AVRO, avro, f"schema: {json.dumps(DDL)}")
    shop.source("named", AVRO.replace("main", f"main, subject: {avro}-value"), avro, f"schema: {json.dumps(DDL)}")
    shop.source("plain", "{format: avro, schema_file: order.avsc}", plain)
    shop.source("text", "json", text, f"schema: {json.dumps(DDL)}")
    built = shop.lab.build()
    assert built.model("binary_table")["batches"] == 1, "two schemas in one micro-batch"
    found = {name: sorted(map(repr, shop.lab.rows(f"{name}_table"))) for name in ("binary", "named", "plain", "text")}
    assert len(found["binary"]) == 500
    assert found["binary"] == found["named"] == found["plain"] == found["text"]


def test_the_first_build_settles_the_columns_and_a_full_refresh_settles_them_anew(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    # Three builds of one process within the seconds for which what a subject holds is kept.
    monkeypatch.setattr("engine.sources.registry._SUBJECT_SECONDS", 0.0)
    topic = shop.topic()
    shop.send(topic, ORDER, [event(1)])
    shop.source("orders", AVRO, topic)
    first = shop.lab.build()
    assert "unknown-columns" in first.codes()
    shop.send(topic, NEWER, [{"source": "later", **event(2)}])
    shop.lab.build()
    assert shop.ids("orders") == [1, 2]
    assert "source" not in shop.lab.rows("orders_table")[0]
    assert "source" not in shop.lab.model_json("orders_table")["settled"]["shop.orders"]
    shop.lab.build("--full-refresh")
    assert {row["id"]: row["source"] for row in shop.lab.rows("orders_table")} == {1: "shop", 2: "later"}


def test_a_schema_that_was_not_known_when_the_query_began_is_looked_up(shop: Shop):
    """It is of another subject, so that only the record itself tells of it."""
    topic = shop.topic()
    known = shop.send(topic, ORDER, [event(n) for n in range(10)])
    other = shop.registry.register(f"{topic}-other", NEWER)
    shop.broker.send(topic, [framed(other, NEWER, {"source": "x", **event(10)}), framed(known, ORDER, event(11))])
    shop.source("orders", AVRO, topic, f"schema: {json.dumps(DDL)}")
    shop.lab.build()
    assert shop.ids("orders") == list(range(12))
    assert [path for path in shop.gateway.asked if path.startswith("/schemas/ids/")] == [f"/schemas/ids/{other}"]


@pytest.mark.nightly
def test_windows_over_avro_and_show(shop: Shop):
    topic = shop.topic()
    rows = [{**event(n), "at": 1_700_000_000_000 + n * 60_000} for n in range(120)]
    known = shop.send(topic, ORDER, rows[:60])
    other = shop.registry.register(f"{topic}-other", NEWER)
    shop.broker.send(topic, [framed(other, NEWER, {"source": "x", **row}) for row in rows[60:]])
    shop.source("orders", AVRO, topic, f"schema: {json.dumps(DDL)}")
    header = "streams: {shop.orders: {watermark: at delay 2 hours}}\nwindows: {hour: 'tumbling(at, 1 hour)'}"
    shop.lab.model(
        "hourly",
        f"/*---\n{header}\n---*/\nselect hour.start as hour_start, count(*) as n from {{{{ source('shop', 'orders') }}}} group by hour\n",
    )
    shown = shop.lab.run("show", "hourly", "--output", "json")
    counts = [json.loads(line)["n"] for line in shown.out.splitlines() if '"n"' in line]
    assert sum(counts) == 120
    later = {**event(999), "at": 1_700_000_000_000 + 600 * 60_000}
    shop.broker.send(topic, [framed(known, ORDER, later)])
    shop.lab.build()
    assert sorted(row["n"] for row in shop.lab.rows("hourly")) == sorted(counts)


def test_bad_records_are_quarantined_with_their_reason(shop: Shop):
    topic = shop.topic()
    number = shop.send(topic, ORDER, [event(1)])
    good = framed(number, ORDER, event(2))
    bad = [b"{}", good[:-1], b"\0\x7f\0\0\0" + good[5:], good[:3]]
    shop.broker.send(topic, [*bad, good])
    shop.source("orders", AVRO, topic, "on_bad_record: quarantine")
    shop.lab.build()
    assert shop.ids("orders") == [1, 2]
    found = {bytes(row["raw"]): row["reason"] for row in shop.lab.rows("orders_table__quarantine")}
    assert set(found) == set(bad)
    words = ["wrong magic byte 0x7B", "truncated or corrupt", "unknown schema id 2130706432", "truncated: 3 of the 5"]
    assert all(found[raw].startswith(word) for raw, word in zip(bad, words, strict=True))
    before = shop.lab.snapshots()
    shop.lab.build()
    assert shop.lab.snapshots() == before


@pytest.mark.nightly
def test_a_bad_record_ends_the_build_and_is_named(shop: Shop):
    topic = shop.topic()
    shop.send(topic, ORDER, [event(1)])
    shop.broker.send(topic, [b"\0\x7f\0\0\0"], partition=1)
    shop.source("orders", AVRO, topic)
    result = shop.lab.run("build")
    assert result.code == 1
    assert "unknown schema id 2130706432" in result.text
    assert topic in result.text


@pytest.mark.nightly
def test_a_registry_that_refuses_or_is_down_stops_the_build_and_the_next_goes_on(shop: Shop):
    topic = shop.topic()
    number = shop.send(topic, ORDER, [event(1)])
    text = (shop.lab.root / "project.yml").read_text()
    shop.lab.write("project.yml", text.replace(f'"{shop.gateway.url}"', f'"{shop.gateway.url}", timeout: 2 seconds'))
    more = (f"schema: {json.dumps(DDL)}", "on_bad_record: quarantine", "max_offsets_per_trigger: 1")
    shop.source("orders", AVRO, topic, *more)
    shop.gateway.status = 403
    refused = shop.lab.run("build")
    assert (refused.code, shop.gateway.refused) == (1, 1)
    assert "registry-auth" in refused.codes()
    shop.gateway.status = None
    with shop.gateway.down():
        begin = time.monotonic()
        down = shop.lab.run("build")
        assert time.monotonic() - begin < 20
    assert (down.code, "registry-unreachable" in down.codes()) == (1, True), down.text
    assert f"'main' at {shop.gateway.url} cannot be reached" in down.text
    assert shop.lab.table("orders_table") is None
    shop.lab.build()
    other = shop.registry.register(f"{topic}-other", NEWER)
    records = [framed(number, ORDER, event(2)), framed(other, NEWER, {"source": "x", **event(3)})]
    shop.broker.send(topic, records, partition=0)

    # In the middle: it goes when the first of two micro-batches is written; the second has an id that is not known.
    with ExitStack() as stack, reached("ended", lambda *_: stack.enter_context(shop.gateway.down())) as seen:
        middle = shop.lab.run("build")
    assert len(seen) == 1
    assert (middle.code, "registry-unreachable" in middle.codes()) == (1, True), middle.text
    assert shop.ids("orders") == [1, 2]
    assert shop.lab.table("orders_table__quarantine") is None or shop.lab.rows("orders_table__quarantine") == []
    shop.lab.build()
    assert shop.ids("orders") == [1, 2, 3]
