"""Sends CloudEvents in Avro to the topic `cloudevents`: python send.py [how many].

Needs confluent-kafka and fastavro, a broker (KAFKA_BOOTSTRAP) and a schema registry (SCHEMA_REGISTRY). An event of a
number is always the same; a call goes on behind the last one in the topic.
"""

from __future__ import annotations

import io
import json
import os
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "cloudevents"
SOURCES = ("/shop/web", "/shop/app", "/stock")
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "CloudEvent",
    "namespace": "io.cloudevents",
    "fields": [{"name": n, "type": "string"} for n in ("specversion", "id", "source", "type", "time", "data")],
}


def event(number: int) -> dict[str, str]:
    """Event `number`: one every ten minutes, from three sources in turn."""
    at = datetime(2024, 5, 1, tzinfo=UTC) + timedelta(minutes=10 * number)
    return {
        "specversion": "1.0",
        "id": f"event-{number}",
        "source": SOURCES[number % len(SOURCES)],
        "type": "shop.order.paid" if number % 2 else "shop.order.placed",
        "time": at.isoformat().replace("+00:00", "Z"),
        "data": json.dumps({"order": number // 2, "amount": number % 7 + 0.5}),
    }


def register(registry: str, subject: str) -> int:
    """The id that the registry gives the schema."""
    body = json.dumps({"schema": json.dumps(SCHEMA)}).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(f"{registry}/subjects/{subject}/versions", body, headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return int(json.load(response)["id"])


def end(servers: str) -> int:
    """How many events the topic has; it is made if it is missing."""
    admin = AdminClient({"bootstrap.servers": servers})
    if TOPIC not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(30)
        return 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "send"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)[1])
    finally:
        consumer.close()


def main(count: int) -> None:
    """Send the next events."""
    servers = os.environ.get("KAFKA_BOOTSTRAP", "localhost:9092")
    registry = os.environ.get("SCHEMA_REGISTRY", "http://localhost:8081")
    first = end(servers)
    frame = b"\0" + register(registry, f"{TOPIC}-value").to_bytes(4, "big")
    schema = fastavro.parse_schema(SCHEMA)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(first, first + count):
        value = io.BytesIO()
        fastavro.schemaless_writer(value, schema, event(number))
        producer.produce(TOPIC, frame + value.getvalue(), event(number)["id"])
    producer.flush(30)
    print(f"topic {TOPIC}: events {first} to {first + count - 1}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
