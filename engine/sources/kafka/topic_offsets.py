"""Where topics begin and end, asked without Java, what a stream has not read of them, and waiting for more.

Nothing of the records is used. A partition with more than is looked at is taken up again at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engine.sources.connection import consumer_options, read_connection
from engine.sources.kafka import native_client, topic_check
from engine.sources.kafka.native_client import assigned_consumer
from engine.sources.kafka.topic_check import Topic
from engine.sources.spec import ClusterOffsets, Place, Resumption, SourceSpec
from engine.sources.values.declared_value import value_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

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

        Raises confluent_kafka.KafkaException: the client is of no use any more.
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
        arrived = [message for message in first if message.error() is None]
        if not arrived:
            return False
        more = self._consumer.consume(_MOST_RECORDS, 0.0)
        for message in (*arrived, *(message for message in more if message.error() is None)):
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


ISOLATION = "isolation.level"


def topics_now(specs: Mapping[str, SourceSpec], place: Place) -> dict[str, ClusterOffsets]:
    """What sources have, asked without Java; those that only Java's client knows are omitted."""
    offsets_by_source: dict[str, ClusterOffsets] = {}
    for connection, mine, topics_by_level in _by_connection(specs):
        settings = place.connection(connection)
        addresses = read_connection(connection, settings).addresses
        answers = native_client.ask(addresses, settings.get("security") or {}, topics_by_level) or {}
        for name, spec in mine.items():
            if (cluster_offsets := answers.get(client_of(spec)[ISOLATION])) is not None:
                offsets_by_source[name] = _assigned_offsets(spec, cluster_offsets)
    return offsets_by_source


@dataclass(frozen=True, slots=True)
class PolledTopics:
    # By connection and isolation level.
    _arrivals: dict[tuple[str, str], Arrivals] = field(default_factory=dict)

    def ends(self, specs: Mapping[str, SourceSpec], place: Place) -> dict[str, Hashable]:
        """Return a value of each source that differs when there are new records, partitions or topics.

        Those that only Java's client knows are omitted, and those of a connection that cannot be asked now.

        Raises ProjectError, SetupError: a connection is not valid.
        """
        ends_by_source: dict[str, Hashable] = {}
        for connection, mine, topics_by_level in _by_connection(specs):
            settings = place.connection(connection)
            addresses = read_connection(connection, settings).addresses
            security = settings.get("security") or {}
            answers = native_client.ends(addresses, security, topics_by_level) or {}
            for level, of_level in answers.items():
                ends = {(name, p): end for name, topic in of_level.items() for p, end in topic.end.items()}
                self._stand_at(connection, level, addresses, security, ends)
            for name, spec in mine.items():
                if (topics := answers.get(client_of(spec)[ISOLATION])) is not None:
                    assigned = _assigned_offsets(spec, ClusterOffsets("", topics)).topics
                    ends_by_source[name] = tuple(
                        (topic, now.id, tuple(now.end.items())) for topic, now in assigned.items()
                    )
        return ends_by_source

    def wait(self, seconds: float) -> bool:
        """Return whether something came, in at most so many seconds; at once if nobody can tell."""
        from confluent_kafka import KafkaException

        for key, arrivals_of in list(self._arrivals.items()):
            try:
                if arrivals_of.wait(seconds / len(self._arrivals)):
                    return True
            except (KafkaException, RuntimeError):
                del self._arrivals[key]
        return False

    @property
    def waits(self) -> bool:
        return bool(self._arrivals)

    def _stand_at(
        self, connection: str, level: str, addresses: str, security: Mapping[str, Any],
        ends: Mapping[tuple[str, int], int],
    ) -> None:  # fmt: skip
        from confluent_kafka import KafkaException

        standing = self._arrivals.pop((connection, level), None) or arrivals(addresses, security, level)
        if standing is None:
            return
        try:
            standing.stand_at(ends)
        except (KafkaException, RuntimeError):
            return
        self._arrivals[connection, level] = standing


def _by_connection(
    specs: Mapping[str, SourceSpec],
) -> Iterator[tuple[str, dict[str, SourceSpec], dict[str, list[str]]]]:
    fixed = {name: spec for name, spec in specs.items() if "topic_pattern" not in spec.settings}
    for connection in dict.fromkeys(str(spec.settings["connection"]) for spec in fixed.values()):
        mine = {name: spec for name, spec in fixed.items() if str(spec.settings["connection"]) == connection}
        topics_by_level: dict[str, list[str]] = {}
        for spec in mine.values():
            topics_by_level.setdefault(client_of(spec)[ISOLATION], []).extend(names_of(spec))
        yield connection, mine, topics_by_level


def _assigned_offsets(spec: SourceSpec, cluster_offsets: ClusterOffsets) -> ClusterOffsets:
    topics = {name: cluster_offsets.topics[name] for name in names_of(spec)}
    for name, assigned in (spec.settings.get("assign") or {}).items():
        topic = topics[name]
        first, end, written = (
            {p: offsets[p] for p in assigned if p in offsets}
            for offsets in (topic.first, topic.end, topic.written or {})
        )
        topics[name] = replace(topic, first=first, end=end, written=written)
    return replace(cluster_offsets, topics=topics)


def resumption(
    spec: SourceSpec, stored_facts: Mapping[str, Any], offsets: Sequence[Mapping[str, Any]], now: ClusterOffsets
) -> Resumption:
    """Decide whether a stream can resume, without Java. Raises StateError: as a build would."""
    stands = [stand for offset in offsets if (stand := stand_of(offset)) is not None]
    return topic_check.resume(spec, _Asked(now), topics_of(now), stored_facts, stands)


def topics_of(now: ClusterOffsets) -> dict[str, Topic]:
    return {name: Topic(name, topic.id, tuple(topic.end)) for name, topic in now.topics.items()}


@dataclass(frozen=True, slots=True)
class _Asked:
    now: ClusterOffsets

    @property
    def addresses(self) -> str:
        return self.now.addresses

    def id(self) -> str:
        return self.now.cluster

    def names(self) -> tuple[str, ...]:
        """Return none: whether a topic that is not read any more is still there is left to Java's client."""
        return ()

    def offsets(self, topics: Iterable[Topic], *, first: bool) -> dict[str, dict[int, int]]:
        topics_now = {topic.name: self.now.topics[topic.name] for topic in topics}
        return {name: dict(topic.first if first else topic.written or {}) for name, topic in topics_now.items()}


def same_start(spec: SourceSpec, stored_facts: Mapping[str, Any], now: ClusterOffsets) -> bool:
    """Whether a stream reads the topics of its last start, in the same cluster, with the same beginning.

    A registry may have another schema by now than the one that the table's columns are of.
    """
    if "schema_registry" in value_of(spec):
        return False
    topics = {name: topic.id for name, topic in now.topics.items()}
    return dict(stored_facts) == topic_check.remembered(spec, topics, now.cluster)


def is_new(stored_facts: Mapping[str, Any], now: ClusterOffsets) -> bool:
    """Whether a stream has read none of the topics that are there: all were created since, in the same cluster."""
    read = set(stored_facts.get("topics", {}).values())
    return bool(read) and stored_facts.get("cluster") == now.cluster and not read & {t.id for t in now.topics.values()}


def unread(now: ClusterOffsets, offsets: Sequence[Mapping[str, Any]]) -> int | None:
    """Return how many offsets are unread, marks of transactions included; None: not begun, or behind the end."""
    reached = [offset for item in offsets if (offset := stand_of(item)) is not None]
    count = 0
    for name, topic in now.topics.items():
        mine = [topics[name] for topics in reached if name in topics]
        if not mine or any(set(partitions) != set(topic.end) for partitions in mine):
            return None
        behind = [topic.end[p] - offset for partitions in mine for p, offset in partitions.items()]
        if min(behind, default=0) < 0:
            return None
        count += sum(topic.end[p] - min(partitions[p] for partitions in mine) for p in topic.end)
    return count


def stand_of(offset: Mapping[str, Any]) -> dict[str, dict[int, int]] | None:
    """An offset of Spark's Kafka source, {"topic": {"0": 17}}; None if it is one of another source."""
    try:
        return {topic: {int(p): int(o) for p, o in partitions.items()} for topic, partitions in offset.items()}
    except (AttributeError, TypeError, ValueError):
        return None


def names_of(spec: SourceSpec) -> tuple[str, ...]:
    settings = spec.settings
    return (settings["topic"],) if "topic" in settings else tuple(settings.get("topics") or settings["assign"])


def client_of(spec: SourceSpec) -> dict[str, str]:
    return {ISOLATION: "read_committed", **consumer_options(spec.options)}
