"""Kafka topics into Iceberg tables, end to end, on a real broker."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from tests.kafka.conftest import Kafka, event

pytestmark = pytest.mark.spark


def test_json_records_become_rows_once(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic)
    kafka.stream("select id, at, amount")
    kafka.broker.send(topic, [event(n) for n in range(10)])
    first = kafka.lab.build().model("plain")
    assert (first["rows_in"], first["rows_out"]) == (10, 10)
    assert kafka.ids() == list(range(10))
    before = kafka.lab.snapshots()
    assert kafka.lab.build().model("plain")["status"] == "unchanged"
    assert kafka.lab.snapshots() == before
    kafka.broker.send(topic, [event(10)])
    assert kafka.lab.build().model("plain")["rows_in"] == 1
    assert kafka.ids() == list(range(11))


@pytest.mark.parametrize(("form", "expected"), [("string", "{not json"), ("bytes", b"{not json")])
def test_text_and_bytes_come_as_they_are(kafka: Kafka, form: str, expected: object) -> None:
    topic = kafka.topic()
    kafka.source(topic, schema=None, value=f"{{format: {form}}}")
    kafka.stream("select value, _metadata.offset as place")
    kafka.broker.send(topic, ["{not json", ""])
    kafka.lab.build()
    assert sorted((row["place"], row["value"]) for row in kafka.lab.rows("plain")) == [
        (0, expected),
        (1, type(expected)()),
    ]


def test_metadata_says_where_a_record_came_from_and_no_star_has_it(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic, schema="id int")
    kafka.stream(
        "select *, cast(_metadata.key as string) as key, _metadata.topic as topic, _metadata.partition as partition, "
        "_metadata.offset as place, _metadata.timestamp as written, cast(_metadata.headers[0].value as string) as header"
    )
    kafka.stream("select *", "star")
    kafka.broker.send(topic, [{"id": 7}], partition=1, key="k", headers=[("h", b"v")], timestamp=1_700_000_000_000)
    kafka.lab.build()
    (row,) = kafka.lab.rows("plain")
    assert row == {
        "id": 7, "key": "k", "topic": topic, "partition": 1, "place": 0,
        "written": datetime.fromtimestamp(1_700_000_000, UTC), "header": "v",
    }  # fmt: skip
    assert kafka.lab.rows("star") == [{"id": 7}]


def test_a_micro_batch_takes_as_many_records_as_the_source_says(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, max_offsets_per_trigger=4)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(n) for n in range(10)])
    kafka.lab.build()
    found = [e["rows_in"] for e in kafka.lab.run("build").events if e["event"] == "BatchCommitted"]
    assert found == []
    assert kafka.ids() == list(range(10))
    batches = {s.marker("batch-id") for s in kafka.lab.table("plain").history}  # type: ignore[union-attr]
    assert batches == {"0", "1", "2"}


STARTS = [
    ({"starting_offsets": "latest"}, [6, 7]),
    ({"starting_offsets": "earliest"}, [0, 1, 2, 3, 4, 5, 6, 7]),
    ({"starting_offsets": "{0: 2}"}, [1, 3, 4, 5, 6, 7]),
    ({"starting_offsets": "{0: 2, 1: latest}"}, [4, 6, 7]),
    ({"starting_timestamp": "2024-05-01T12:00:03+02:00"}, [3, 4, 5, 6, 7]),
    ({"starting_timestamp": "'2030-01-01 00:00:00'"}, [6, 7]),
]


def test_a_stream_begins_where_it_is_told(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.sources(topic, {f"start{number}": said for number, (said, _) in enumerate(STARTS)})
    for number in range(len(STARTS)):
        kafka.stream("select id", f"from{number}", f"start{number}")
    ten = datetime(2024, 5, 1, 10, 0, tzinfo=UTC).timestamp()
    for number in range(6):
        kafka.broker.send(topic, [event(number)], partition=number % 2, timestamp=int((ten + number) * 1000))
    kafka.lab.build()
    kafka.broker.send(topic, [event(6)], partition=0)
    kafka.broker.send(topic, [event(7)], partition=1)
    kafka.lab.build()
    for number, (said, expected) in enumerate(STARTS):
        assert kafka.ids(f"from{number}") == expected, said


def test_several_topics_a_pattern_and_chosen_partitions(kafka: Kafka) -> None:
    mark = uuid.uuid4().hex[:6]
    topics = [kafka.broker.create(f"{mark}-{name}", 2) for name in ("a", "b")]
    for number, topic in enumerate(topics):
        kafka.broker.send(topic, [event(number * 10)], partition=0)
        kafka.broker.send(topic, [event(number * 10 + 1)], partition=1)
    for keys, expected in (
        ({"topics": f"[{', '.join(topics)}]"}, [0, 1, 10, 11]),
        ({"topic_pattern": f"{mark}-.*"}, [0, 1, 10, 11]),
        ({"assign": f"{{{topics[1]}: [1]}}"}, [11]),
    ):
        kafka.source(None, **keys)
        name = f"from_{next(iter(keys))}"
        kafka.stream("select id", name)
        kafka.lab.build("-s", name)
        assert kafka.ids(name) == expected, keys


def test_new_topics_of_a_pattern_and_new_partitions_are_read_from_their_first_record(kafka: Kafka) -> None:
    mark = uuid.uuid4().hex[:6]
    first = kafka.broker.create(f"{mark}-a")
    kafka.source(None, topic_pattern=f"{mark}-.*", starting_offsets="latest")
    kafka.stream("select id")
    kafka.lab.build()
    kafka.broker.send(first, [event(1)])
    kafka.lab.build()
    second = kafka.broker.create(f"{mark}-b")
    kafka.broker.widen(first, 3)
    assert kafka.broker.partitions(first) == (0, 1, 2)
    kafka.broker.send(second, [event(2)])
    kafka.broker.send(first, [event(3)], partition=2)
    result = kafka.lab.build()
    assert kafka.ids() == [1, 2, 3]
    assert result.codes() == ["source-new-topic"]
    assert kafka.lab.build().codes() == []


def test_records_of_aborted_transactions_never_appear(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.broker.send_in_transactions(topic, {'{"id": 0}': True, '{"id": 1}': False, '{"id": 2}': True})
    kafka.source(topic)
    kafka.stream("select id")
    kafka.lab.build()
    assert kafka.ids() == [0, 2]
    assert kafka.lab.build().model("plain")["rows_in"] == 0
    kafka.source(topic, options='{consumer.isolation.level: "read_uncommitted"}')
    kafka.stream("select id", "dirty")
    kafka.lab.build("-s", "dirty")
    assert kafka.ids("dirty") == [0, 1, 2]


def test_a_record_of_5_mb_is_a_row(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="10000000")
    kafka.source(topic)
    kafka.stream("select id, length(kind) as size")
    kafka.broker.send(topic, [event(1), event(2, kind="x" * 5_000_000), event(3)])
    kafka.lab.build()
    assert sorted((row["id"], row["size"]) for row in kafka.lab.rows("plain")) == [(1, 4), (2, 5_000_000), (3, 4)]


def test_an_empty_topic_gives_an_empty_table_and_later_rows(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    kafka.source(topic)
    kafka.stream("select id")
    kafka.lab.build()
    assert kafka.ids() == []
    kafka.broker.send(topic, [event(1)])
    kafka.lab.build()
    assert kafka.ids() == [1]


WINDOWED = """/*---
streams:
  shop.events:
    watermark: at delay 10 minutes
    dedup: [id]
windows:
  hour: tumbling(at, 1 hour)
---*/
select hour.start as hour, count(*) as n from {{ source('shop', 'events') }} group by hour
"""


def test_windows_close_over_a_topic_and_repeats_count_once(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic, max_offsets_per_trigger=4)
    kafka.lab.model("hourly", WINDOWED)
    kafka.broker.send(topic, [event(1, "10:05"), event(2, "10:50"), event(2, "10:50"), event(3, "11:40")], partition=0)
    kafka.broker.send(topic, [event(4, "13:15")], partition=0)
    kafka.lab.build()
    found = sorted((row["hour"].hour, row["n"]) for row in kafka.lab.rows("hourly"))
    assert found == [(10, 2), (11, 1)]
