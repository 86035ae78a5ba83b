"""What a cluster has, asked without Java: by librdkafka, where confluent-kafka is installed (the extra `kafka`).

It decides only whether a build has something to read. Whatever cannot be asked this way is left to the client in
Spark's JVM, with its errors: a topic pattern (Java's), settings that this client takes differently, no permission.
"""

from __future__ import annotations

import atexit
import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.sources.connection import native_settings
from engine.sources.spec import ClusterOffsets, TopicOffsets

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_PATIENCE_SECONDS = 4.0
_TURN_SECONDS = 0.05
# A topic that is recreated or gets a partition is seen by its new end or, at the latest, after so many seconds.
_DESCRIBED_SECONDS = 10.0
# The operations of a topic that let a user read it.
_READ = {"READ", "ALL"}
# The isolation level that sees the records of open transactions.
_ALL = "read_uncommitted"
_FINAL = ("_AUTHENTICATION", "_SSL")


def ask(
    addresses: str, security: Mapping[str, Any], topics_by_level: Mapping[str, Sequence[str]]
) -> dict[str, ClusterOffsets] | None:
    """Ask brokers for topics, all at once, by isolation level; None: it cannot be known this way."""
    with _client(addresses, security) as questions:
        if questions is None:
            return None
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        spec: Any = OffsetSpec
        try:
            return _ask_offsets(questions, addresses, spec.earliest(), spec.latest(), topics_by_level)
        except (KafkaException, TimeoutError, ValueError):
            questions.failed = True
    return None


# Of this process, by addresses and security: polls, plans and builds ask the same one. A client has connections and
# threads, and asks for the brokers' metadata before its first answer.
_clients: dict[tuple[str, tuple[tuple[str, str], ...]], Questions] = {}
atexit.register(_clients.clear)


@contextmanager
def _client(addresses: str, security: Mapping[str, Any]) -> Iterator[Questions | None]:
    """The client of a connection, which is kept until it fails; None: there is none in Python."""
    key = addresses, tuple(sorted((name, str(value)) for name, value in security.items()))
    questions = _clients.get(key) or _opened(addresses, security)
    if questions is None:
        yield None
        return
    _clients[key] = questions
    yield questions
    if questions.failed and _clients.get(key) is questions:
        del _clients[key]


def _opened(addresses: str, security: Mapping[str, Any]) -> Questions | None:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return None
    rejected: list[str] = []
    settings = native_settings(addresses, security, lambda error: rejected.extend({error.name()}.intersection(_FINAL)))
    try:
        return Questions(AdminClient(settings), rejected)
    except (KafkaException, ValueError):
        return None


def assigned_consumer(addresses: str, security: Mapping[str, Any], options: Mapping[str, Any]) -> Consumer | None:
    """Return a consumer that is given its partitions and commits nothing; None: there is no client in Python."""
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError:
        return None
    # Nothing joins the group: partitions are assigned.
    alone = {"enable.auto.commit": False, "enable.auto.offset.store": False, "group.id": "headrace"}
    try:
        return Consumer({**native_settings(addresses, security, lambda _: None), **alone, **options})
    except (KafkaException, ValueError):
        return None


def ends(
    addresses: str, security: Mapping[str, Any], topics_by_level: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, TopicOffsets]] | None:
    """Ask where topics end, by isolation level; their first offsets are left out. The parameters are those of `ask`."""
    with _client(addresses, security) as questions:
        if questions is None:
            return None
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        spec: Any = OffsetSpec
        try:
            topics = _recent_topics(questions, topics_by_level)
            latest = {
                level: _listed(questions, topics, level, names, spec.latest())()
                for level, names in topics_by_level.items()
            }
        except (KafkaException, TimeoutError, ValueError):
            questions.failed = True
            return None
    return {
        level: {name: TopicOffsets(_id(topics[name].topic_id), {}, latest[level][name]) for name in names}
        for level, names in topics_by_level.items()
    }


@dataclass(slots=True)
class Questions:
    """`rejected` is filled when a broker takes no login or no certificate: the client would try on by itself."""

    admin: Any
    rejected: Sequence[str]
    recent_topics: dict[str, Any] = field(default_factory=dict)
    described_at: float = 0.0
    failed: bool = False

    def wait_for(self, future: Future[Any]) -> Any:
        """The answer of a call. Raises TimeoutError: there is none in time, or there will be none."""
        deadline = time.monotonic() + _PATIENCE_SECONDS + 1
        while not future.done():
            if self.rejected or time.monotonic() > deadline:
                raise TimeoutError(*self.rejected)
            wait((future,), _TURN_SECONDS)
            self.admin.poll(0)
        return future.result()


def _recent_topics(questions: Questions, topics_by_level: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Topics as they are, or were some seconds ago."""
    now = time.monotonic()
    missing = any(name not in questions.recent_topics for names in topics_by_level.values() for name in names)
    if missing or now - questions.described_at >= _DESCRIBED_SECONDS:
        questions.recent_topics, questions.described_at = _described(questions, topics_by_level)(), now
    return questions.recent_topics


def _described(questions: Questions, topics_by_level: Mapping[str, Sequence[str]]) -> Callable[[], dict[str, Any]]:
    from confluent_kafka import TopicCollection

    names = sorted({name for some in topics_by_level.values() for name in some})
    described = questions.admin.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=_PATIENCE_SECONDS
    )

    def answers() -> dict[str, Any]:
        topics = {name: questions.wait_for(future) for name, future in described.items()}
        for name, topic in topics.items():
            # Brokers before 2.3 do not say. Java's client explains what forbids it.
            operations = topic.authorized_operations
            if operations and not _READ.intersection(operation.name for operation in operations):
                raise ValueError(name)
        return topics

    return answers


def _listed(
    questions: Questions, topics: Mapping[str, Any], isolation: str, names: Sequence[str], spec: Any
) -> Callable[[], dict[str, dict[int, int]]]:
    from confluent_kafka import IsolationLevel, TopicPartition

    partitions = [TopicPartition(name, p.id) for name in names for p in topics[name].partitions]
    futures = questions.admin.list_offsets(
        dict.fromkeys(partitions, spec),
        isolation_level=IsolationLevel[isolation.upper()],
        request_timeout=_PATIENCE_SECONDS,
    )

    def answers() -> dict[str, dict[int, int]]:
        offsets: dict[str, dict[int, int]] = {name: {} for name in names}
        for partition, future in sorted(futures.items(), key=lambda item: item[0].partition):
            offsets[partition.topic][partition.partition] = int(questions.wait_for(future).offset)
        return offsets

    return answers


def _ask_offsets(
    questions: Questions, addresses: str, earliest: Any, latest: Any, topics_by_level: Mapping[str, Sequence[str]]
) -> dict[str, ClusterOffsets]:
    asked_at = time.monotonic()
    cluster = questions.admin.describe_cluster(request_timeout=_PATIENCE_SECONDS)
    described_topics = _described(questions, topics_by_level)()
    # All at once: each answer is a way to the brokers and back.
    listed = {
        isolation: (
            _listed(questions, described_topics, isolation, topics, earliest),
            _listed(questions, described_topics, isolation, topics, latest),
            _listed(questions, described_topics, _ALL, topics, latest) if isolation != _ALL else None,
        )
        for isolation, topics in topics_by_level.items()
    }
    identity = str(questions.wait_for(cluster).cluster_id or "")
    answers = {}
    for isolation, (earliest_now, latest_now, written_now) in listed.items():
        first, end = earliest_now(), latest_now()
        written = written_now() if written_now is not None else end
        topics_now = {
            name: TopicOffsets(_id(described_topics[name].topic_id), first[name], end[name], written[name])
            for name in topics_by_level[isolation]
        }
        answers[isolation] = ClusterOffsets(identity, topics_now, addresses, asked_at)
    return answers


def _id(uuid: Any) -> str:
    """An id as Java's client writes it."""
    halves = (uuid.get_most_significant_bits(), uuid.get_least_significant_bits())
    octets = b"".join((bits % 2**64).to_bytes(8, "big") for bits in halves)
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")
