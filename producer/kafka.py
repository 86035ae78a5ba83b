"""Sends what lands in each hour to a Kafka topic, in the same order, instead of writing files.

One call is one transaction: all of its events are there, or none. The topic has one partition, which keeps the order,
and each event carries the hour in which it landed, so that the next call goes on behind the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from producer.flights import ProducerError
from producer.landing import Landed

if TYPE_CHECKING:
    from confluent_kafka import Message

HOUR = "landed"
_PATIENCE_SECONDS = 30.0


def send(servers: str, topic: str, by_hour: Mapping[str, list[Landed]]) -> int:
    """Send the hours that come after the last one in the topic, and return how many they are."""
    client = _client()
    last = last_hour(servers, topic)
    new = [name for name in by_hour if last is None or name > last]
    producer = client.Producer({**_settings(servers), "transactional.id": f"producer-of-{topic}"})
    try:
        producer.init_transactions(_PATIENCE_SECONDS)
        producer.begin_transaction()
        for name in new:
            for landed in by_hour[name]:
                headers = [(HOUR, name.encode())]
                producer.produce(topic, landed.event.line, landed.event.id, headers=headers)
                producer.poll(0)
        producer.commit_transaction(_PATIENCE_SECONDS)
    except client.KafkaException as error:
        raise _failed(servers, error) from error
    return len(new)


def last_hour(servers: str, topic: str) -> str | None:
    """The hour of the newest event in the topic; None if there is no event yet. The topic is made if it is missing."""
    client = _client()
    try:
        admin = client.admin.AdminClient(_settings(servers))
        if topic not in admin.list_topics(timeout=_PATIENCE_SECONDS).topics:
            admin.create_topics([client.admin.NewTopic(topic, 1)])[topic].result(_PATIENCE_SECONDS)
            return None
        message = _last_message(client, servers, topic)
    except client.KafkaException as error:
        raise _failed(servers, error) from error
    headers = dict(message.headers() or []) if message else {}
    name = headers.get(HOUR, b"")
    return name.decode() if isinstance(name, bytes) and name else None


def _last_message(client: Any, servers: str, topic: str) -> Message | None:
    settings = {**_settings(servers), "group.id": "producer", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = client.Consumer(settings)
    try:
        begin, end = consumer.get_watermark_offsets(client.TopicPartition(topic, 0), timeout=_PATIENCE_SECONDS)
        if begin == end:
            return None
        # What stands last is the mark of a transaction's end.
        consumer.assign([client.TopicPartition(topic, 0, max(begin, end - 2))])
        message: Message | None = consumer.poll(_PATIENCE_SECONDS)
        return message if message is not None and message.error() is None else None
    finally:
        consumer.close()


def _settings(servers: str) -> dict[str, Any]:
    return {"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda _: None}


def _client() -> Any:
    try:
        import confluent_kafka.admin
    except ImportError:
        raise ProducerError(
            "the package confluent-kafka is missing: pip install confluent-kafka, or make kafka"
        ) from None
    return confluent_kafka


def _failed(servers: str, error: Exception) -> ProducerError:
    return ProducerError(f"Kafka at {servers}: {error.args[0].str() if error.args else error}")
