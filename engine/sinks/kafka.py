"""Kafka as a target: rows as JSON and the position, in one transaction of a producer.

The position is in a compacted topic of the sink's own: in a shared one, the open transaction of another sink would hide
committed positions from a reader. `init_transactions` comes before the position is read: it aborts what an older
producer with the same id has open, and fences that producer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from engine import kill_points
from engine.errors import EngineError, RunError, SetupError, StateError
from engine.package_source import install_hint
from engine.sinks.json_rows import json_rows
from engine.sinks.position import Position
from engine.sinks.target import Change, ChangeKind, SinkSpec, Transaction, Written

if TYPE_CHECKING:
    from confluent_kafka import Producer

_CALL_SECONDS: Final = 30.0
# The most that a broker allows unless it is configured otherwise, and what it always allows.
_TRANSACTION_MS: Final = (900_000, 60_000)
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME: Final = 249
_FENCED: Final = ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")


def progress_topic(identity: str) -> str:
    return _NOT_IN_NAME.sub("_", f"headrace.{identity.replace('/', '.')}")[:_LONGEST_NAME]


class KafkaTarget:
    """A topic, over one connection; `client` are settings of librdkafka."""

    def __init__(self, spec: SinkSpec, name: str, client: Mapping[str, Any], topic: str) -> None:
        try:
            import confluent_kafka  # noqa: F401
        except ImportError as error:
            message = "the Python package confluent-kafka is not installed"
            raise SetupError("sink-unreachable", message, install_hint("kafka")) from error
        self._spec, self._name, self._client, self._topic = spec, name, dict(client), topic
        self._progress = progress_topic(spec.identity)
        self._producer: Producer | None = None
        self._timeout = _TRANSACTION_MS[0] / 1000

    def check(self) -> None:
        """Make sure that the topic exists, and fence older producers of the sink.

        Raises:
            SetupError: `sink-table`, `sink-unreachable`.
            RunError: `sink-failed`.
        """
        with self._errors():
            topics = self._topics()
            if self._topic not in topics:
                if not self._spec.create:
                    message = f"the topic '{self._topic}' of the connection '{self._name}' does not exist"
                    raise SetupError("sink-table", message, "Create it, or write 'create: true' in the sink.")
                self._create(self._topic, partitions=-1, config={"cleanup.policy": "compact"} if self._spec.key else {})
            self._open()

    def position(self) -> Position | None:
        from confluent_kafka import Consumer, TopicPartition

        with self._errors():
            if self._progress not in self._topics():
                return None
            own = {"group.id": "headrace", "enable.auto.commit": False, "isolation.level": "read_committed",
                   "enable.partition.eof": True, "auto.offset.reset": "earliest"}  # fmt: skip
            consumer = Consumer({**self._client, **own})
            try:
                first, _ = consumer.get_watermark_offsets(TopicPartition(self._progress, 0), timeout=_CALL_SECONDS)
                consumer.assign([TopicPartition(self._progress, 0, first)])
                return self._last_position(consumer)
            finally:
                consumer.close()

    def begin(self, position: Position) -> None:
        self.deliver(Transaction(position, iter(()), position))

    def reset(self, position: Position) -> None:
        with self._errors():
            self._open()
        self.deliver(Transaction(position, iter(()), position))

    def deliver(self, transaction: Transaction) -> Written:
        """Send changes and position.

        Raises:
            StateError: `sink-fenced`: another process delivers.
            RunError: `sink-key`: two rows of a commit have the same key, or a row has none; `sink-failed`.
        """
        from confluent_kafka import KafkaException

        begin = time.monotonic()
        with self._errors(begin):
            producer = self._open()
            producer.begin_transaction()
            try:
                written = self._send(producer, transaction)
                kill_points.reach("sink written", self._spec.name)
                self._produce(producer, self._progress, self._spec.identity, transaction.after.to_json())
                kill_points.reach("sink committing", self._spec.name)
                producer.commit_transaction(_CALL_SECONDS)
            except BaseException as error:
                fenced = isinstance(error, KafkaException) and _code(error) in _FENCED
                if not fenced:
                    self._abort(producer)
                raise
        return written

    def close(self) -> None:
        self._producer = None

    def _send(self, producer: Producer, transaction: Transaction) -> Written:
        # Keys of rows that are gone, unless a later change brings them back: a rewritten file has most of them again.
        removed: dict[str, None] = {}
        checked: set[str] = set()
        upserted, commit = 0, 0
        for change in transaction.changes:
            keys = self._keys(change)
            if change.kind is ChangeKind.REMOVE:
                removed.update(dict.fromkeys(keys or ()))
                continue
            if change.commit != commit:
                commit, checked = change.commit, set()
            if commit and keys is not None:
                self._check_repeated(keys, checked)
            for index, value in enumerate(json_rows(change.rows, self._spec.names)):
                key = keys[index] if keys is not None else None
                if key is not None:
                    removed.pop(key, None)
                self._produce(producer, self._topic, key, value)
            upserted += change.rows.num_rows
        for key in removed:
            self._produce(producer, self._topic, key, None)
        return Written(upserted, len(removed))

    def _keys(self, change: Change) -> list[str] | None:
        """The keys of rows as JSON; None: the sink has none. Raises RunError: `sink-key`: a row has none."""
        if not self._spec.key:
            return None
        columns = [change.rows.column(change.rows.schema.get_field_index(name)) for name in self._spec.key]
        if change.kind is ChangeKind.UPSERT and any(column.null_count for column in columns):
            message = f"a row for the sink '{self._spec.name}' has NULL in its key ({', '.join(self._spec.key)})"
            raise RunError("sink-key", message, "Filter such rows in the model, or write another 'key:' in the sink.")
        return json_rows(change.rows, self._spec.key)

    def _check_repeated(self, keys: list[str], checked: set[str]) -> None:
        before = len(checked)
        checked.update(keys)
        if len(checked) != before + len(keys):
            listed = ", ".join(self._spec.key)
            message = f"several rows of the table have the same key ({listed}) of the sink '{self._spec.name}'"
            hint = "Add columns to 'key:' of the sink, or write 'unique_key:' in the model; test it with 'unique'."
            raise RunError("sink-key", message, hint)

    def _produce(self, producer: Producer, topic: str, key: str | None, value: str | None) -> None:
        while True:
            try:
                producer.produce(topic, value, key)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def _open(self) -> Producer:
        """Return the producer; the first call fences older ones, and makes the topic of positions."""
        from confluent_kafka import KafkaException, Producer

        if self._producer is not None:
            return self._producer
        if self._progress not in self._topics():
            self._create(self._progress, partitions=1, config={"cleanup.policy": "compact"})
        for timeout in _TRANSACTION_MS:
            own = {"transactional.id": f"headrace/{self._spec.identity}", "transaction.timeout.ms": timeout,
                   "linger.ms": 20, "compression.type": "lz4", "queue.buffering.max.messages": 500_000}  # fmt: skip
            producer = Producer({**self._client, **own})
            try:
                producer.init_transactions(_CALL_SECONDS)
            except KafkaException as error:
                if _code(error) != "INVALID_TRANSACTION_TIMEOUT" or timeout == _TRANSACTION_MS[-1]:
                    raise
            else:
                self._producer, self._timeout = producer, timeout / 1000
                return producer
        raise AssertionError

    def _last_position(self, consumer: Any) -> Position | None:
        """The newest position of the sink that is committed."""
        from confluent_kafka import KafkaError, KafkaException

        content: str | None = None
        deadline = time.monotonic() + _CALL_SECONDS
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if (error := message.error()) is not None:
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name in librdkafka
                    raise KafkaException(error)
                return Position.from_json(self._spec.name, content) if content is not None else None
            if message.key() == self._spec.identity.encode() and message.value() is not None:
                content = message.value().decode()
        raise self._unreachable("the topic of its position could not be read in time")

    def _topics(self) -> Mapping[str, Any]:
        from confluent_kafka.admin import AdminClient

        topics: Mapping[str, Any] = AdminClient(self._client).list_topics(timeout=_CALL_SECONDS).topics
        return topics

    def _create(self, topic: str, *, partitions: int, config: Mapping[str, str]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        admin = AdminClient(self._client)
        futures = admin.create_topics([NewTopic(topic, partitions, -1, config=dict(config))])
        try:
            futures[topic].result(_CALL_SECONDS)
        except KafkaException as error:
            if _code(error) != "TOPIC_ALREADY_EXISTS":
                message = f"the topic '{topic}' cannot be created: {_text(error)}"
                raise SetupError("sink-table", message, "Create it, or allow the user to.") from error
        deadline = time.monotonic() + _CALL_SECONDS
        while topic not in self._topics() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _abort(self, producer: Producer) -> None:
        from confluent_kafka import KafkaException

        # If this fails, the next producer of the sink aborts it.
        with suppress(KafkaException):
            producer.abort_transaction(_CALL_SECONDS)
        self._producer = None

    @contextmanager
    def _errors(self, begin: float | None = None) -> Iterator[None]:
        """What Kafka reports is an error of the sink.

        A transaction that took longer than its timeout is reported as fenced, although nobody else delivers.
        """
        from confluent_kafka import KafkaException

        try:
            yield
        except EngineError:
            raise
        except KafkaException as error:
            code = _code(error)
            if code in _FENCED and begin is not None and time.monotonic() - begin >= self._timeout:
                message = f"a transaction of the sink '{self._spec.name}' took longer than {self._timeout:g} seconds"
                hint = "Raise transaction.max.timeout.ms of the brokers. Nothing of it was delivered."
                raise RunError("sink-failed", message, hint) from error
            if code in _FENCED:
                message = f"another process delivers the sink '{self._spec.name}'"
                raise StateError("sink-fenced", message, "End one of them. Nothing was delivered twice.") from error
            if code in {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "_AUTHENTICATION"}:
                raise self._unreachable(_text(error)) from error
            message = f"Kafka rejects the sink '{self._spec.name}': {_text(error)}"
            raise RunError(
                "sink-failed", message, "Nothing of it was delivered; the next build tries again."
            ) from error

    def _unreachable(self, why: str) -> SetupError:
        message = f"the brokers of the connection '{self._name}' do not answer: {why}"
        hint = "Start them, or correct 'bootstrap_servers' and 'security' of the connection in project.yml."
        return SetupError("sink-unreachable", message, hint)


def _code(error: Any) -> str:
    return str(error.args[0].name())


def _text(error: Any) -> str:
    return str(error.args[0].str())
