"""`stream: false`: what a topic holds, from its first record to now, as a batch."""

from __future__ import annotations

import pytest

from tests.kafka.conftest import Kafka, event

pytestmark = pytest.mark.spark

TOTAL = "select count(*) as n, sum(id) as ids from {{ source('shop', 'events') }}"


def total(kafka: Kafka) -> tuple[int, int]:
    ((row),) = kafka.lab.rows("total")
    return row["n"], row["ids"]


def test_a_bounded_read_is_up_to_date_until_the_topic_changes(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic, stream="false")
    kafka.lab.model("total", TOTAL)
    kafka.broker.send(topic, [event(n) for n in range(3)], 0)
    kafka.broker.send(topic, [event(n) for n in range(3, 5)], 1)
    kafka.lab.build()
    assert total(kafka) == (5, 10)
    assert not (kafka.lab.state / "total" / "1" / "checkpoint").exists()
    before = kafka.lab.snapshots()
    assert kafka.lab.build().model("total")["status"] == "unchanged"
    assert kafka.lab.snapshots() == before
    kafka.broker.send(topic, [event(5)], 1)
    assert kafka.lab.build().model("total")["status"] == "success"
    assert total(kafka) == (6, 15)
    kafka.broker.delete_records(topic, {0: 3})
    kafka.lab.build()
    assert total(kafka) == (3, 12)


def test_a_bounded_read_leaves_out_aborted_transactions(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.broker.send_in_transactions(topic, {'{"id": 1}': True, '{"id": 2}': False})
    kafka.source(topic, stream="false")
    kafka.lab.model("total", TOTAL)
    kafka.lab.build()
    assert total(kafka) == (1, 1)


def test_a_bounded_read_begins_where_it_is_told(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, stream="false", starting_offsets="{0: 3}")
    kafka.lab.model("total", TOTAL)
    kafka.broker.send(topic, [event(n) for n in range(5)])
    kafka.lab.build()
    assert total(kafka) == (2, 7)


def test_a_bounded_read_beside_a_stream_is_fresh_in_each_micro_batch(kafka: Kafka) -> None:
    names = kafka.topic()
    topic = kafka.topic()
    kafka.source(topic)
    kafka.lab.write(
        "sources/names.yml",
        "sources:\n  - name: shop2\n    tables:\n      - {name: names, format: kafka, connection: main, "
        f"topic: {names}, stream: false, schema: 'id int, name string'}}\n",
    )
    kafka.lab.model(
        "plain",
        "/*---\nstreams: [shop.events]\n---*/\nselect e.id, n.name from {{ source('shop', 'events') }} as e "
        "join {{ source('shop2', 'names') }} as n on n.id = e.id",
    )
    kafka.broker.send(names, [{"id": 1, "name": "one"}])
    kafka.broker.send(topic, [event(1)])
    kafka.lab.build()
    kafka.broker.send(names, [{"id": 2, "name": "two"}])
    kafka.broker.send(topic, [event(2)])
    kafka.lab.build()
    assert sorted((row["id"], row["name"]) for row in kafka.lab.rows("plain")) == [(1, "one"), (2, "two")]


def test_show_reads_a_stream_of_kafka_as_it_is_now(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1), event(2)])
    result = kafka.lab.run("show", "plain")
    assert result.code == 0, result.text
    assert "1" in result.out
    assert "2" in result.out
    assert kafka.lab.table("plain") is None
