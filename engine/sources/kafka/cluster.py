"""What a Kafka cluster has, asked through the client in Spark's JVM: topics, their ids, their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError, near
from engine.sources.connection import Connection
from engine.sources.kafka.rejections import PATIENCE_SECONDS, Cause, not_readable, rejection
from engine.sources.kafka.topic_check import Topic
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession

_ADMIN = "org.apache.kafka.clients.admin"
_MOST_CAUSES = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster to be asked; every call ends within some seconds."""

    connection: Connection
    jvm: Any
    admin: Any

    @property
    def addresses(self) -> str:
        return self.connection.addresses

    def id(self) -> str:
        return str(self._wait(self.admin.describeCluster().clusterId()) or "")

    def names(self) -> tuple[str, ...]:
        """The names of all topics but Kafka's own."""
        return tuple(sorted(self._wait(self.admin.listTopics().names())))

    def matching(self, pattern: str) -> tuple[str, ...]:
        """The topics whose whole names match a Java pattern."""
        compiled = self.jvm.java.util.regex.Pattern.compile(pattern)
        return tuple(name for name in self.names() if compiled.matcher(name).matches())

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of some names.

        Raises:
            SetupError: kafka-topic if one does not exist, kafka-denied if the user may not read one.
        """
        java_names = self.jvm.java.util.ArrayList()
        for name in names:
            java_names.add(name)
        # Who may describe a topic and not read it would learn that in the middle of a micro-batch.
        options = getattr(self.jvm, f"{_ADMIN}.DescribeTopicsOptions")().includeAuthorizedOperations(True)
        futures = self.admin.describeTopics(java_names, options).topicNameValues()
        topics_by_name = {}
        for name in names:
            about = self._wait(futures.get(name), name)
            if not _reads(about.authorizedOperations()):
                raise not_readable(self.connection, name)
            partitions = tuple(sorted(int(p.partition()) for p in about.partitions()))
            topics_by_name[name] = Topic(name, about.topicId().toString(), partitions)
        return topics_by_name

    def offsets(
        self, topics: Iterable[Topic], *, first: bool, isolation: str = "read_uncommitted"
    ) -> dict[str, dict[int, int]]:
        """The first or the end offset of every partition, as consumers of an isolation level see them."""
        spec = getattr(self.jvm, f"{_ADMIN}.OffsetSpec")
        offset_specs = self.jvm.java.util.HashMap()
        keys = {}
        for topic in topics:
            for partition in topic.partitions:
                key = self.jvm.org.apache.kafka.common.TopicPartition(topic.name, partition)
                keys[topic.name, partition] = key
                offset_specs.put(key, spec.earliest() if first else spec.latest())
        level = getattr(self.jvm.org.apache.kafka.common.IsolationLevel, isolation.upper())
        listed_offsets = self.admin.listOffsets(offset_specs, getattr(self.jvm, f"{_ADMIN}.ListOffsetsOptions")(level))
        offsets_by_topic: dict[str, dict[int, int]] = {}
        for (name, partition), key in keys.items():
            offset = self._wait(listed_offsets.partitionResult(key), name).offset()
            offsets_by_topic.setdefault(name, {})[partition] = int(offset)
        return offsets_by_topic

    def _wait(self, future: Any, topic: str = "") -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return future.get(PATIENCE_SECONDS, self.jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError as error:
            causes = _causes(error)
        if any(cause.kind == "UnknownTopicOrPartitionException" for cause in causes):
            hint = near(topic, self.names()) or "The broker has no topics yet."
            message = f"the topic '{topic}' does not exist (connection '{self.connection.name}')"
            raise SetupError("kafka-topic", message, hint)
        raise rejection(self.connection, causes, topic)


def _reads(operations: Any) -> bool:
    """Whether reading is among the operations of a topic that a user may do; brokers before 2.3 do not say."""
    return operations is None or any(str(operation.name()) in {"READ", "ALL"} for operation in operations)


def _causes(error: Py4JJavaError) -> list[Cause]:
    causes: list[Cause] = []
    exception = error.java_exception
    while exception is not None and len(causes) < _MOST_CAUSES:
        causes.append(Cause(str(exception.getClass().getSimpleName()), str(exception.getMessage() or "")))
        exception = exception.getCause()
    return causes


@contextmanager
def cluster(session: SparkSession, connection: Connection) -> Iterator[Cluster]:
    """The cluster of a connection, for some questions.

    Raises:
        SetupError: kafka-unreachable if no broker answers; kafka-rejected if it takes no login or protocol;
            kafka-certificate if there is no TLS connection.
    """
    from py4j.protocol import Py4JJavaError

    jvm = jvm_of(session)
    settings = jvm.java.util.HashMap()
    for key, value in {**_bounded(connection.client), "client.id": "headrace"}.items():
        settings.put(key, value)
    try:
        admin = getattr(jvm, f"{_ADMIN}.AdminClient").create(settings)
    except Py4JJavaError as error:
        raise rejection(connection, _causes(error)) from None
    try:
        yield Cluster(connection, jvm, admin)
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(1))


def _bounded(client: Mapping[str, str]) -> dict[str, str]:
    shared = ("bootstrap.servers", "security.", "ssl.", "sasl.", "client.dns", "reconnect.", "retry.", "socket.")
    own = {key: value for key, value in client.items() if key.startswith(shared)}
    patience = str(PATIENCE_SECONDS * 1000 - 1000)
    return {**own, "default.api.timeout.ms": patience, "request.timeout.ms": str(PATIENCE_SECONDS * 500)}
