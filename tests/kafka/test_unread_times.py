"""When the oldest unread record of a topic was written, for the lag of a stream."""

from __future__ import annotations

from typing import Any

import pytest

from engine.sources.kafka.topic_offsets import topics_now
from engine.sources.kafka.unread_times import UnreadTimes
from engine.sources.spec import Place, SourceSpec
from tests.kafka.conftest import Kafka
from tests.lab import shortest_seconds, wait_until

# The broker is Java too, and runs in the process that has the others of its tests.
pytestmark = pytest.mark.spark


def test_the_oldest_unread_record_of_each_partition(kafka: Kafka) -> None:
    broker = kafka.broker
    topic = kafka.topic(partitions=3)
    for number in range(3):
        broker.send(topic, [f"a{number}"], partition=0, timestamp=1_000_000 + number * 1000)
    broker.send(topic, ["b"], partition=1, timestamp=5_000_000)
    place = Place(kafka.lab.root, lambda _: {"bootstrap_servers": broker.address})
    times = UnreadTimes()

    def oldest(*offsets: dict[str, Any], **settings: Any) -> dict[int, float]:
        spec = SourceSpec("shop.events", "kafka", "", settings={"connection": "main", **settings})
        now = topics_now({"one": spec}, place)["one"]
        return {partition: moment for (_, partition), moment in times.oldest(spec, place, offsets, now).items()}

    assert oldest(topic=topic) == {0: 1000.0, 1: 5000.0}
    assert oldest({topic: {"0": 1, "1": 1, "2": 0}}, topic=topic) == {0: 1001.0}
    assert oldest({topic: {"0": 2, "1": 1}}, {topic: {"0": 3, "1": 0}}, topic=topic) == {0: 1002.0, 1: 5000.0}
    assert oldest({topic: {"0": 3, "1": 1, "2": 0}}, topic=topic) == {}
    assert oldest({topic: {"1": 0}}, assign={topic: [1]}) == {1: 5000.0}
    # What retention has deleted is not waited for.
    broker.delete_records(topic, {0: 2})
    assert oldest({topic: {"0": 0, "1": 1, "2": 0}}, topic=topic) == {0: 1002.0}
    # Records of aborted transactions are never seen, and the marks of transactions are not records.
    aborted = kafka.topic()
    broker.send_in_transactions(aborted, {"x": False, "y": False})
    assert oldest(topic=aborted) == {}

    def read_again() -> None:
        assert oldest({topic: {"0": 0, "1": 1, "2": 0}}, topic=topic) == {0: 1002.0}

    assert shortest_seconds(read_again, limit=1.0) < 1.0

    broker.stop()
    spec = SourceSpec("shop.events", "kafka", "", settings={"connection": "main", "topic": topic})
    broker.start()
    broker.send(topic, ["c"], partition=2, timestamp=7_000_000)
    # The kept client meets the connection that the broker has closed: the first answer may be that nobody can tell.
    asked = wait_until(lambda: topics_now({"one": spec}, place))
    behind = ({topic: {"0": 3, "1": 1, "2": 0}},)
    assert wait_until(lambda: times.oldest(spec, place, behind, asked["one"])) == {(topic, 2): 7000.0}
    times.close()
