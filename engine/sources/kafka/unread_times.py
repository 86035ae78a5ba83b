"""When the oldest records that a stream has not read were written: Kafka's timestamp of them, asked without Java."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.sources.connection import read_connection
from engine.sources.kafka.native_client import assigned_consumer
from engine.sources.kafka.topic_offsets import ISOLATION, client_of, names_of, stand_of
from engine.sources.spec import ClusterOffsets, Place, SourceSpec

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_PATIENCE_SECONDS = 4.0
_STEP_SECONDS = 0.2
# One record a partition is wanted, and no more than that is fetched ahead.
_ONE_RECORD = {
    "queued.min.messages": 1,
    "fetch.message.max.bytes": 65536,
    "fetch.wait.max.ms": 10,
    "enable.partition.eof": True,
    # Behind what retention has deleted the oldest record that is left counts.
    "auto.offset.reset": "earliest",
}
_MOST_KNOWN = 10_000

# topic, partition
Partition = tuple[str, int]
# connection, isolation level, topic, id of the topic, partition, offset
_Record = tuple[str, str, str, str, int, int]


@dataclass(frozen=True, slots=True)
class UnreadTimes:
    """Times of the oldest unread records; consumers and times are kept between calls. Used by one thread."""

    _consumers: dict[tuple[str, str], Consumer] = field(default_factory=dict)
    _times_by_record: dict[_Record, float] = field(default_factory=dict)

    def oldest(
        self, spec: SourceSpec, place: Place, offsets: Sequence[Mapping[str, Any]], now: ClusterOffsets
    ) -> dict[Partition, float]:
        """Return when the oldest unread record of each partition was written, in seconds since 1970.

        Omitted: nothing is unread, the broker does not answer, there are no timestamps, or only marks of transactions.
        Raises ProjectError, SetupError: the connection is not valid.
        """
        connection, level = str(spec.settings["connection"]), client_of(spec)[ISOLATION]
        records = {
            (topic, partition): (connection, level, topic, now.topics[topic].id, partition, offset)
            for (topic, partition), offset in _unread(spec, offsets, now).items()
        }
        missing = {place_: record for place_, record in records.items() if record not in self._times_by_record}
        if missing:
            times = self._ask_times(
                connection, level, place, {place_: record[-1] for place_, record in missing.items()}
            )
            if len(self._times_by_record) > _MOST_KNOWN:
                self._times_by_record.clear()
            self._times_by_record.update({missing[place_]: moment for place_, moment in times.items()})
        return {
            place_: self._times_by_record[record]
            for place_, record in records.items()
            if record in self._times_by_record
        }

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()

    def _ask_times(
        self, connection: str, level: str, place: Place, positions: Mapping[Partition, int]
    ) -> dict[Partition, float]:
        key = connection, level
        consumer = self._consumers.pop(key, None) or _opened(connection, level, place)
        if consumer is None:
            return {}
        from confluent_kafka import KafkaException

        try:
            times = _times(consumer, positions)
        except (KafkaException, RuntimeError):
            return {}
        self._consumers[key] = consumer
        return times


def _unread(spec: SourceSpec, offsets: Sequence[Mapping[str, Any]], now: ClusterOffsets) -> dict[Partition, int]:
    stands = [stand for offset in offsets if (stand := stand_of(offset)) is not None]
    unread_positions = {}
    for name in names_of(spec):
        topic = now.topics[name]
        mine = [stand[name] for stand in stands if name in stand]
        for partition, end in topic.end.items():
            first = topic.first.get(partition, 0)
            # A partition that is new to the stream is read from its first record.
            reached = min((stand[partition] for stand in mine if partition in stand), default=first)
            if max(reached, first) < end:
                unread_positions[name, partition] = max(reached, first)
    return unread_positions


def _opened(connection: str, level: str, place: Place) -> Consumer | None:
    settings = place.connection(connection)
    addresses = read_connection(connection, settings).addresses
    return assigned_consumer(addresses, settings.get("security") or {}, {**_ONE_RECORD, ISOLATION: level})


def _times(consumer: Consumer, positions: Mapping[Partition, int]) -> dict[Partition, float]:
    from confluent_kafka import TopicPartition

    consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in positions.items()])
    times: dict[Partition, float] = {}
    waiting = set(positions)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while waiting and time.monotonic() < deadline:
            if (message := consumer.poll(_STEP_SECONDS)) is None:
                continue
            place = _place(message)
            if place is None or place not in waiting:
                continue
            waiting.discard(place)
            consumer.incremental_unassign([TopicPartition(*place)])
            if (moment := _written_at(message)) is not None:
                times[place] = moment
    finally:
        consumer.unassign()
    return times


def _place(message: Message) -> Partition | None:
    """The partition of a record, or of an error of one; None: it is of all."""
    topic, partition = message.topic(), message.partition()
    return (topic, partition) if topic is not None and partition is not None and partition >= 0 else None


def _written_at(message: Message) -> float | None:
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    if message.error() is not None:
        return None
    kind, milliseconds = message.timestamp()
    return milliseconds / 1000 if kind != TIMESTAMP_NOT_AVAILABLE else None
