"""Kafka as a target of sinks, on a real broker: transactions, positions, tombstones, fencing; no Spark."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from engine.errors import EngineError
from engine.sinks import delivery as deliveries
from engine.sinks.delivery import deliver
from engine.sinks.json_rows import json_rows
from engine.sinks.kafka import KafkaTarget, progress_topic
from engine.sinks.target import SinkSpec, Written
from tests.services.kafka import Broker
from tests.sinks.conftest import Delivery

pytestmark = pytest.mark.slow


@dataclass(slots=True)
class TopicDelivery(Delivery):
    """A table of the lake, and the sink that delivers it to a topic of its own."""

    server: Any = None
    broker: Any = None
    topic: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        pass

    @property
    def spec(self) -> SinkSpec:
        return SinkSpec("orders", f"shop/dev/{self.topic}", self.columns, self.key, self.unique, self.create)

    def target(self) -> Any:
        client = {"bootstrap.servers": self.broker.address, "log_level": 0, "error_cb": lambda _: None}
        return KafkaTarget(self.spec, "main", client, self.topic)

    def records(self) -> list[tuple[Any, Any]]:
        """What a consumer of committed records sees, in the order of partitions."""
        consumer = Consumer({
            "bootstrap.servers": self.broker.address, "group.id": "test", "isolation.level": "read_committed",
            "enable.partition.eof": True, "enable.auto.commit": False,
        })  # fmt: skip
        partitions = self.broker.partitions(self.topic)
        consumer.assign([TopicPartition(self.topic, number, 0) for number in partitions])
        found: dict[int, list[tuple[Any, Any]]] = {number: [] for number in partitions}
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(5)
            assert message is not None
            if message.error():
                ended += 1
                continue
            texts = (message.key(), message.value())
            found[message.partition()].append(tuple(None if text is None else json.loads(text) for text in texts))  # type: ignore[arg-type]
        consumer.close()
        return [record for number in partitions for record in found[number]]

    def latest(self) -> list[tuple[Any, ...]]:
        """The table that the records add up to."""
        rows = {json.dumps(key): value for key, value in self.records()}
        return sorted(tuple(value.values()) for value in rows.values() if value is not None)


@pytest.fixture
def delivery(tmp_path: Path, broker: Broker) -> TopicDelivery:
    return TopicDelivery(tmp_path, broker=broker)


def test_appended_merged_and_deleted_rows(delivery: TopicDelivery) -> None:
    delivery.append((1, "a"), (2, None), (3, 'c "quoted" \\ \n'))
    assert delivery.deliver() == Written(3)
    assert delivery.records() == [({"id": row[0]}, {"id": row[0], "name": row[1]}) for row in delivery.stored()]
    assert delivery.deliver() == Written()
    delivery.table.delete("id = 1")
    assert delivery.deliver().deleted == 1
    assert delivery.records()[-1] == ({"id": 1}, None)
    delivery.append((4, "d"))
    delivery.table.upsert(delivery.arrow([(2, "b")]), join_cols=["id"])
    delivery.deliver()
    assert delivery.latest() == delivery.stored()
    config = delivery.broker.partitions(progress_topic(delivery.spec.identity))
    assert config == (0,)


def test_a_sink_without_a_key_sends_each_row(delivery: TopicDelivery) -> None:
    delivery.key = ()
    delivery.append((1, "a"), (1, "a"))
    assert delivery.deliver() == Written(2)
    assert delivery.records() == [(None, {"id": 1, "name": "a"})] * 2


def test_a_topic_that_does_not_exist_is_created_only_if_it_may(delivery: TopicDelivery) -> None:
    delivery.append((1, "a"))
    delivery.create = False
    with pytest.raises(EngineError, match="does not exist") as raised:
        delivery.deliver()
    assert raised.value.diagnostics[0].code == "sink-table"
    delivery.broker.create(delivery.topic, 3)
    assert delivery.deliver() == Written(1)


def test_an_older_process_is_fenced_and_what_it_had_open_is_gone(delivery: TopicDelivery) -> None:
    delivery.append((1, "a"))
    delivery.deliver()
    delivery.append((2, "b"))
    old = delivery.target()
    old.check()
    before = old.position()
    assert before is not None
    # It sends, and is overtaken before it commits.
    producer = old._open()
    producer.begin_transaction()
    producer.produce(delivery.topic, b'"lost"', b'{"id":9}')
    producer.flush(30)
    assert delivery.deliver() == Written(1)
    with pytest.raises(EngineError) as raised, old._errors():
        producer.commit_transaction(30)
    assert raised.value.diagnostics[0].code == "sink-fenced"
    assert [value["id"] for _, value in delivery.records()] == [1, 2]


def test_transactions_of_bounded_size_continue_at_their_position(
    delivery: TopicDelivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "ROWS", 1)
    delivery.append((1, "a"), (2, "b"))
    delivery.append((3, "c"))
    target, whole = delivery.target(), delivery.committed()
    real, sent = target.deliver, []

    def dies(transaction: Any) -> Written:
        if len(sent) == 2:
            raise KeyboardInterrupt
        sent.append(transaction)
        return real(transaction)

    monkeypatch.setattr(target, "deliver", dies)
    with pytest.raises(KeyboardInterrupt):
        deliver(delivery.spec, whole, target, from_now=False)
    position = delivery.position()
    assert position is not None
    assert position.reading is not None
    delivery.deliver()
    assert sorted(value["id"] for _, value in delivery.records()) == [1, 2, 3]


def test_two_rows_of_a_key_in_a_commit_are_rejected_and_nothing_is_sent(delivery: TopicDelivery) -> None:
    delivery.unique = False
    delivery.append((1, "a"), (1, "b"))
    with pytest.raises(EngineError, match="the same key") as raised:
        delivery.deliver()
    assert raised.value.diagnostics[0].code == "sink-key"
    assert delivery.records() == []


def test_a_position_can_be_set(delivery: TopicDelivery) -> None:
    delivery.append((1, "a"))
    delivery.deliver()
    position = delivery.position()
    assert position is not None
    target = delivery.target()
    target.reset(type(position)(position.table, None, key=position.key, columns=position.columns))
    target.close()
    assert delivery.deliver() == Written(1)
    assert len(delivery.records()) == 2


def test_brokers_that_do_not_answer(delivery: TopicDelivery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sinks.kafka._CALL_SECONDS", 1.0)
    delivery.append((1, "a"))
    target = KafkaTarget(
        delivery.spec, "main", {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "error_cb": print}, "t"
    )
    with pytest.raises(EngineError) as raised:
        target.check()
    assert raised.value.diagnostics[0].code == "sink-unreachable"


def test_values_as_json() -> None:
    at = datetime(2024, 5, 1, 10, 0, 0, 123456, UTC)
    rows = pa.RecordBatch.from_pylist(
        [
            {"i": 1, "b": True, "f": 1.5, "s": "\u00e9\t", "d": date(2024, 2, 29), "at": at, "local": at.replace(tzinfo=None),
             "price": Decimal("12.30"), "tiny": Decimal("0.00000001"), "raw": b"x", "list": [1, None], "record": {"n": Decimal("2.0")}},
            {"f": float("nan"), "s": ""},
        ],
        schema=pa.schema([
            ("i", pa.int64()), ("b", pa.bool_()), ("f", pa.float64()), ("s", pa.string()), ("d", pa.date32()),
            ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("price", pa.decimal128(6, 2)),
            ("tiny", pa.decimal128(12, 8)), ("raw", pa.binary()), ("list", pa.list_(pa.int32())),
            ("record", pa.struct([("n", pa.decimal128(4, 1))])),
        ]),
    )  # fmt: skip
    first, second = map(json.loads, json_rows(rows, rows.schema.names))
    assert first == {
        "i": 1, "b": True, "f": 1.5, "s": "\u00e9\t", "d": "2024-02-29", "at": "2024-05-01T10:00:00.123456Z",
        "local": "2024-05-01T10:00:00.123456", "price": "12.30", "tiny": "0.00000001", "raw": "eA==", "list": [1, None],
        "record": {"n": "2.0"},
    }  # fmt: skip
    assert second == dict.fromkeys(first) | {"f": "NaN", "s": ""}
    assert json_rows(rows.slice(0, 1).select(["i", "f"]), ["i"]) == ['{"i":1}']
