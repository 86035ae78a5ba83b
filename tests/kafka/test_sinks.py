"""Sinks that deliver to topics: of a build, and docs/sinks-kafka.md, whose project delivers to a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from engine.cli.main import invoke
from tests.kafka.conftest import Kafka
from tests.lab import REPOSITORY, LabSession, event, share_session
from tests.pages.page_blocks import blocks_of, commands_of, put
from tests.services.kafka import Broker

pytestmark = pytest.mark.spark
PAGE = (REPOSITORY / "docs" / "sinks-kafka.md").read_text(encoding="utf-8")
MERGED = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
delete_when: kind = 'gone'
---*/
select id, at, kind from {{ source('shop', 'events') }}
"""


def committed(broker: Broker, topic: str) -> Iterator[tuple[Any, Any]]:
    """The records of a topic that a consumer of committed records sees."""
    consumer = Consumer({
        "bootstrap.servers": broker.address, "group.id": "test", "isolation.level": "read_committed",
        "enable.partition.eof": True, "enable.auto.commit": False,
    })  # fmt: skip
    for partition in broker.partitions(topic):
        consumer.assign([TopicPartition(topic, partition, 0)])
        while (message := consumer.poll(10)) is not None and message.error() is None:
            key, value = message.key(), message.value()
            yield (None if key is None else json.loads(key), None if value is None else json.loads(value))
    consumer.close()


def test_a_build_delivers_upserts_and_tombstones(kafka: Kafka) -> None:
    lab, topic = kafka.lab, kafka.topic(3)
    lab.model("merged", MERGED)
    sink = {"name": "out", "from": "merged", "to": {"connection": "main", "topic": topic}, "exclude": ["at"]}
    lab.write("models/sinks.yml", json.dumps({"sinks": [sink]}))
    lab.land("one", [event(number, number) for number in range(1, 4)])
    lab.build()
    assert len(list(committed(kafka.broker, topic))) == 3
    lab.land("two", [event(1, 10, "open"), event(2, 11, "gone")])
    lab.build()
    records = list(committed(kafka.broker, topic))
    assert ({"id": 2}, None) in records
    latest = {json.dumps(key): value for key, value in records}
    assert sorted((row["id"], row["kind"]) for row in latest.values() if row) == [(1, "open"), (3, "paid")]
    shown = json.loads(lab.run("sink", "show", "out", "--output", "json").out)
    assert (shown["place"], shown["commits"]) == (f"main: {topic}", 0)
    assert lab.run("sink", "reset", "out", "--to", "earliest").code == 0
    lab.build("-s", "sink:out")
    assert len(list(committed(kafka.broker, topic))) == len(records) + 2


def test_the_example_of_the_page_delivers(
    lab_session: LabSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = blocks_of(PAGE)
    with chdir(tmp_path), share_session(lab_session, own_lakes=True):
        assert invoke(["init", "shop"]) == 0
        with chdir("shop"):
            for block in blocks:
                if block.file:
                    put(block, Path())
            project = Path("project.yml")
            project.write_text(project.read_text().replace("localhost:9092", broker.address))
            for block in blocks:
                for command in commands_of(block) if block.language == "console" else ():
                    assert invoke(command.text.split()[1:]) == 0, capsys.readouterr()
    assert "waiting: 0 commits" in capsys.readouterr().out
    records = list(committed(broker, "shop.orders"))
    assert records
    assert all(key == {"order_id": value["order_id"]} for key, value in records)
    assert broker.partitions("headrace.shop.dev.orders_to_kafka") == (0,)
