"""A record that comes to a topic ends the wait for one."""

from __future__ import annotations

import threading
import time

import pytest

from engine.sources.kafka.topic_offsets import arrivals
from tests.kafka.conftest import Kafka

# The broker is Java too, and runs in the process that has the others of its tests.
pytestmark = pytest.mark.spark


def test_a_record_ends_the_wait_and_what_was_there_does_not(kafka: Kafka) -> None:
    broker = kafka.broker
    first, second = kafka.topic(partitions=2), kafka.topic()
    broker.send(first, ["a", "b"], partition=0)
    waiting = arrivals(broker.address, {}, "read_committed")
    assert waiting is not None
    waiting.stand_at({(first, 0): 2, (first, 1): 0, (second, 0): 0})
    assert not waiting.wait(2.0)
    for topic, partition in ((first, 1), (second, 0), (first, 0)):
        sender = threading.Timer(0.3, broker.send, (topic, ["c"]), {"partition": partition})
        sender.start()
        begin = time.monotonic()
        assert waiting.wait(30.0), (topic, partition)
        assert time.monotonic() - begin < 20
        sender.join()
    # What is read meanwhile is behind: only the next record counts.
    waiting.stand_at({(first, 0): 3, (first, 1): 1, (second, 0): 1})
    assert not waiting.wait(1.0)
    # Records of a transaction that is aborted are no input.
    broker.send_in_transactions(second, {"x": False})
    assert not waiting.wait(2.0)
    waiting.close()
