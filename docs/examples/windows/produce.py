"""Sends clicks to the topic `clicks`: python produce.py [how many | late].

Needs confluent-kafka and a broker (KAFKA_BOOTSTRAP). The click of a number is always the same. Each call continues
after the last click in the topic. `late` sends one click that is an hour late.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "clicks"
KEYS = ("home", "search", "cart")
SETTINGS = {"bootstrap.servers": os.environ.get("KAFKA_BOOTSTRAP", "localhost:9092")}


def click(number: int, late: timedelta = timedelta()) -> dict[str, object]:
    """Click `number`: one every 40 seconds. Each tenth is 7 minutes late, and from 15 to 30, 45 to 60.. all go home."""
    usual = timedelta(seconds=430) if number % 10 == 9 else timedelta()
    at = datetime(2024, 5, 1, 12, tzinfo=UTC) + timedelta(seconds=40 * number) - usual - late
    key = KEYS[number % 3] if number // 15 % 2 == 0 else KEYS[0]
    return {"id": number, "timestamp": at.isoformat().replace("+00:00", "Z"), "key": key}


def end() -> int:
    """How many clicks the topic has; it is made if it is missing."""
    admin = AdminClient(SETTINGS)
    if TOPIC not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
        return 0
    consumer = Consumer({**SETTINGS, "group.id": "produce"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)[1])
    finally:
        consumer.close()


def main(word: str = "90") -> None:
    """Send the next clicks."""
    first, count = end(), 1 if word == "late" else int(word)
    late = timedelta(hours=1) if word == "late" else timedelta()
    producer = Producer(SETTINGS)
    for number in range(first, first + count):
        producer.produce(TOPIC, json.dumps(click(number, late)))
    producer.flush(30)
    print(f"topic {TOPIC}: clicks {first} to {first + count - 1}")


if __name__ == "__main__":
    main(*sys.argv[1:])
