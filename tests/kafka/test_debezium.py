"""Change records of Debezium and tombstones, from a real broker."""

from __future__ import annotations

import json

import pytest

from tests.kafka.conftest import Kafka, event
from tests.sources.debezium_records import CUSTOMERS, UNAVAILABLE, change, digits, of, struct, tombstone

pytestmark = pytest.mark.spark

LINES = [
    change("r", {"id": 1}, {"id": 1, "name": "Ada", "credit": digits(150)}, snapshot="true"),
    change("r", {"id": 2}, {"id": 2, "name": "Alan", "credit": digits(-1)}, snapshot="last"),
    change("d", {"id": 1}, lsn=120),
    tombstone({"id": 1}),
    '{"key": {"serverName": "crm"}, "value": {"ts_ms": 1714550400000}}',
]
# A change record that is not flattened.
LINES_VALUE = json.dumps(json.loads(LINES[0])["value"])


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


def flat(number: int, *, schema: bool = True, **values: object) -> str:
    row = {"id": number, "name": None, "credit": None, "ddl": None, **values}
    fields = {**CUSTOMERS, "ddl": of("string"), **{name: of("string") for name in values if name.startswith("__")}}
    return json.dumps({"schema": struct(fields), "payload": row} if schema else row)


def test_flattened_records_keep_a_table(kafka: Kafka) -> None:
    topic = kafka.topic()
    value = "{format: debezium, key: [id], flattened: true}"
    kafka.source(
        topic, schema="id int, name string, credit decimal(12,2), ddl string", value=value, on_bad_record="drop"
    )
    kafka.stream("select *")
    key = {
        number: json.dumps({"schema": struct({"id": of("int32")}), "payload": {"id": number}}) for number in range(9)
    }
    records = [
        (1, flat(1, name="Ada", credit=digits(150))), (2, flat(2, name="Alan", ddl="x")), (3, flat(3, name="Grace")),
        (4, flat(4, name="Kurt")), (1, flat(1, name="Ada L", credit=UNAVAILABLE)),
        # Deleted in either form, and of a row that is not there.
        (3, None), (4, flat(4, __deleted="true")), (5, flat(5, __op="u", __deleted="false", name=UNAVAILABLE)),
    ]  # fmt: skip
    for number, record in records:
        kafka.broker.send(topic, [record], key=key[number])
    kafka.broker.send(topic, [LINES_VALUE], key=key[1])
    result = kafka.lab.build()
    assert result.codes() == ["bad-records"]
    assert sorted((r["id"], r["name"], str(r["credit"]), r["ddl"]) for r in kafka.lab.rows("plain")) == [
        (1, "Ada L", "1.50", None), (2, "Alan", "None", "x")
    ]  # fmt: skip
    assert (result.model("plain")["bad_records"], result.model("plain")["quarantined"]) == ({"shop.events": 1}, 1)


def test_a_record_without_a_value_deletes_its_row(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, on_tombstone="delete", key="[id]", on_bad_record="quarantine")
    kafka.stream("select *")
    # As text and as an object; the key is the record's.
    for key, record in (("1", event(1)), ('{"id": 2}', event(2)), ("3", event(7)), ("x", event(4)), ("4", event(4))):
        kafka.broker.send(topic, [record], key=key)
    kafka.broker.send(topic, [event(5)])
    kafka.broker.send(topic, [None], key="4")
    result = kafka.lab.build()
    assert result.codes() == ["bad-records"]
    assert kafka.ids() == [1, 2, 3]
    assert sorted(r["reason"] for r in kafka.lab.rows("plain__quarantine")) == [
        "it has no key", "the key of the record is not of type int"
    ]  # fmt: skip
    for key, record in (("1", None), ('{"id": 2}', None), ('{"no": 3}', None), ("1", event(1))):
        kafka.broker.send(topic, [record], key=key)
    kafka.lab.build()
    assert kafka.ids() == [1, 3]
    assert len(kafka.lab.rows("plain__quarantine")) == 3


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
