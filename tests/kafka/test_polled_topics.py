"""Where topics end, as `engine start` asks for it all the time, by a client that is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Hashable
from threading import Timer

import pytest

from engine.sources.kafka import native_client
from engine.sources.kafka.topic_offsets import topics_now
from engine.sources.kafka.topics import PolledTopics
from engine.sources.spec import Place, SourceSpec
from tests.kafka.conftest import Kafka
from tests.lab import wait_until

# The broker is Java too, and runs in the process that has the others of its tests.
pytestmark = pytest.mark.spark


@pytest.mark.nightly
def test_ends_change_with_records_partitions_and_topics_and_survive_the_broker(kafka: Kafka) -> None:
    broker = kafka.broker
    topic, other = kafka.topic(), kafka.topic(partitions=2)
    specs = {
        "one": _spec(topic=topic),
        "both": _spec(topics=[topic, other]),
        "part": _spec(assign={other: [0]}),
        "pattern": _spec(topic_pattern="t-.*"),
    }
    place = Place(kafka.lab.root, lambda _: {"bootstrap_servers": broker.address})
    polled = PolledTopics()

    def now() -> dict[str, Hashable]:
        return polled.ends(specs, place)

    first = now()
    assert first.keys() == {"one", "both", "part"}
    assert now() == first
    clients = list(native_client._clients.values())
    broker.send(other, [json.dumps({"id": 1})], partition=1)
    second = now()
    assert (second["one"], second["part"]) == (first["one"], first["part"])
    assert second["both"] != first["both"]
    broker.widen(topic, 2)
    assert wait_until(lambda: now()["one"] != second["one"])
    topics_now({"one": specs["one"]}, place)
    assert list(native_client._clients.values()) == clients, "plans and polls share a client"

    # The broker tells what comes behind the ends, however much that is, and nothing else.
    now()
    assert polled.waits
    assert not polled.wait(1.0)
    for partition, count in ((0, 1), (1, 5_000), (0, 1)):
        sending = Timer(0.5, broker.send, (other, ["x"] * count), {"partition": partition})
        sending.start()
        begin = time.monotonic()
        assert wait_until(lambda: polled.wait(0.5))
        assert time.monotonic() - begin < 5.0
        sending.join()
        now()
        assert wait_until(lambda: not polled.wait(1.0))

    broker.stop()
    assert wait_until(lambda: now() == {})
    broker.start()
    assert wait_until(lambda: now().keys() == first.keys())


def _spec(**settings: object) -> SourceSpec:
    return SourceSpec("shop.events", "kafka", "", settings={"connection": "main", **settings})
