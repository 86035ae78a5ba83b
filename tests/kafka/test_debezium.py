"""Change records of Debezium and tombstones, from a real broker."""

from __future__ import annotations

import json

import pytest

from tests.kafka.conftest import Kafka, event
from tests.sources.debezium_records import change, digits, tombstone

pytestmark = pytest.mark.spark

LINES = [
    change("r", {"id": 1}, {"id": 1, "name": "Ada", "credit": digits(150)}, snapshot="true"),
    change("r", {"id": 2}, {"id": 2, "name": "Alan", "credit": digits(-1)}, snapshot="last"),
    change("d", {"id": 1}, lsn=120),
    tombstone({"id": 1}),
    '{"key": {"serverName": "crm"}, "value": {"ts_ms": 1714550400000}}',
]


def test_a_topic_keeps_a_table(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, schema="id int, name string, credit decimal(12,2)", value="{format: debezium, key: [id]}")
    kafka.stream("select *")
    for key, value in ((record["key"], record["value"]) for record in map(json.loads, LINES)):
        kafka.broker.send(topic, [value], key=json.dumps(key))
    result = kafka.lab.build()
    assert result.codes() == []
    assert result.model("plain")["skipped"] == 2
    assert [(r["id"], r["name"], str(r["credit"])) for r in kafka.lab.rows("plain")] == [(2, "Alan", "-0.01")]


def test_tombstones_of_other_topics_are_skipped_on_request(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, on_tombstone="ignore", on_bad_record="drop")
    kafka.stream("select id, at, amount")
    kafka.broker.send(topic, [event(1), None, event(2)], key="k")
    # Without a key it is no tombstone.
    kafka.broker.send(topic, [None])
    result = kafka.lab.build()
    assert result.model("plain")["skipped"] == 1
    assert result.model("plain")["bad_records"] == {"shop.events": 1}
    assert kafka.ids() == [1, 2]
