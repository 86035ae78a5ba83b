"""Waits for records behind the ends of topics: a broker answers a consumer's fetch as soon as there is one.

Nothing of the records is used. A partition to which more comes than is looked at is taken up again at its end, so that
its records are not all read twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.sources.kafka.native_client import assigned_consumer

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_WATCHING = {
    # The broker holds a fetch for so long: a partition that is taken up elsewhere waits for the next one.
    "fetch.wait.max.ms": 500,
    # What is not looked at is not fetched: so many records of a partition, and no large ones beside them.
    "queued.min.messages": 100,
    "fetch.message.max.bytes": 4096,
    "fetch.queue.backoff.ms": 100,
    "auto.offset.reset": "latest",
}
_MOST_RECORDS = 1000

# topic, partition
Partition = tuple[str, int]


@dataclass(slots=True)
class Arrivals:
    """A consumer at the ends of some partitions; used by one thread."""

    _consumer: Consumer
    _at: dict[Partition, int] = field(default_factory=dict)

    def stand_at(self, ends: Mapping[Partition, int]) -> None:
        """Wait from now on for records behind these offsets.

        Raises:
            confluent_kafka.KafkaException: the client is of no use any more.
        """
        from confluent_kafka import TopicPartition

        if ends.keys() != self._at.keys():
            self._consumer.assign([TopicPartition(*place, offset) for place, offset in ends.items()])
        else:
            moved = [TopicPartition(*place, offset) for place, offset in ends.items() if self._at[place] != offset]
            if moved:
                self._consumer.incremental_unassign([TopicPartition(p.topic, p.partition) for p in moved])
                self._consumer.incremental_assign(moved)
        self._at = dict(ends)

    def wait(self, seconds: float) -> bool:
        """Return whether a record came, in at most so many seconds."""
        first = self._consumer.consume(1, seconds)
        found = [message for message in first if message.error() is None]
        if not found:
            return False
        more = self._consumer.consume(_MOST_RECORDS, 0.0)
        for message in (*found, *(message for message in more if message.error() is None)):
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if topic is not None and partition is not None and offset is not None:
                self._at[topic, partition] = offset + 1
        return True

    def close(self) -> None:
        self._consumer.close()


def arrivals(addresses: str, security: Mapping[str, Any], isolation: str) -> Arrivals | None:
    """Return what waits for records as an isolation level shows them; None: there is no client in Python."""
    consumer = assigned_consumer(addresses, security, {**_WATCHING, "isolation.level": isolation})
    return Arrivals(consumer) if consumer is not None else None
