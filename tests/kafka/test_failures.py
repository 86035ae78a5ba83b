"""What can go wrong between a build and Kafka; each test causes it for real, and shows that it happened."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.kafka.conftest import Kafka, event
from tests.lab import Result

pytestmark = pytest.mark.spark


# What a plan finds out without Java.
_PLANNED = {"source-gap", "source-replaced", "source-shrunk", "source-changed"}


def failed(kafka: Kafka, code: str, *words: str) -> Result:
    """A build that fails with one code and some words, and changes no table."""
    before = committed(kafka)
    planned = kafka.lab.run("plan")
    result = kafka.lab.run("build")
    assert result.code == 1
    (found,) = [e for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"] or [{}]
    assert found.get("code") == code, result.text
    assert found["hint"]
    for word in words:
        assert word in found["message"], found["message"]
    if code in _PLANNED:
        assert found["message"] in planned.text, planned.text
    assert committed(kafka) == before
    return result


def committed(kafka: Kafka) -> dict[str, int]:
    """The current snapshot of every table that has one."""
    return {name: snapshot for name, snapshot in kafka.lab.snapshots().items() if snapshot is not None}


def test_a_broker_that_is_down_at_the_start_is_told_soon(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.stop()
    try:
        begin = time.monotonic()
        failed(kafka, "kafka-unreachable", kafka.broker.address, "main")
        assert time.monotonic() - begin < 20
    finally:
        kafka.broker.start()
    kafka.broker.send(topic, [event(1)])
    kafka.lab.build()
    assert kafka.ids() == [1]


@pytest.mark.nightly
def test_something_else_that_listens_there_is_told_within_half_a_minute(kafka: Kafka) -> None:
    kafka.source(kafka.topic())
    kafka.stream("select id")
    text = (kafka.lab.root / "project.yml").read_text()
    # A broker that speaks without TLS never answers a client that wants TLS.
    secured = text.replace("'}}", "', security: {protocol: SSL}}}")
    kafka.lab.write("project.yml", secured)
    begin = time.monotonic()
    failed(kafka, "kafka-rejected", kafka.broker.address)
    assert time.monotonic() - begin < 60


def test_a_topic_that_does_not_exist_is_told_with_its_likes(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(f"{topic}x")
    kafka.stream("select id")
    result = failed(kafka, "kafka-topic", f"'{topic}x' does not exist")
    assert f"Did you mean '{topic}'" in result.text


@pytest.mark.nightly
def test_a_broker_that_restarts_in_the_middle_only_delays_a_build(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, max_offsets_per_trigger=10)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(n) for n in range(200)])
    checkpoint = kafka.lab.state / "plain" / "1" / "checkpoint"
    seen: dict[str, int] = {}

    def restart() -> None:
        while (spark_checkpoint.last_committed(checkpoint) or 0) < 2:
            time.sleep(0.02)
        kafka.broker.stop(kill=True)
        seen["stopped"] = spark_checkpoint.last_committed(checkpoint) or 0
        time.sleep(8)
        seen["before it came back"] = spark_checkpoint.last_committed(checkpoint) or 0
        kafka.broker.start()

    fault = threading.Thread(target=restart)
    fault.start()
    try:
        result = kafka.lab.run("build")
    finally:
        fault.join()
    assert seen["stopped"] < 19, "the build was over before the broker stopped"
    assert seen["before it came back"] < 19, "the build did not need the broker"
    assert result.code == 0, result.text
    assert kafka.ids() == list(range(200))


def test_records_deleted_before_they_were_read_fail_or_are_counted(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(n) for n in range(5)], partition=0)
    kafka.lab.build()
    kafka.broker.send(topic, [event(n) for n in range(5, 10)], partition=0)
    kafka.broker.delete_records(topic, {0: 8})
    assert kafka.broker.offsets(topic, first=True)[0] == 8
    failed(kafka, "source-gap", "3 offsets of 'shop.events' were deleted", f"{topic}-0: 5 to 7")
    kafka.source(topic, fail_on_data_loss="false")
    result = kafka.lab.build()
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert (found["code"], found["level"]) == ("source-gap", "warning")
    assert f"{topic}-0: 5 to 7" in found["message"]
    assert kafka.ids() == [0, 1, 2, 3, 4, 8, 9]
    assert kafka.lab.build().codes() == []


def test_a_topic_that_was_deleted_and_made_again_is_another_topic(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(n) for n in range(3)])
    kafka.lab.build()
    kafka.broker.delete(topic)
    kafka.broker.create(topic)
    # Longer than the old one was: offsets alone would show nothing.
    kafka.broker.send(topic, [event(n) for n in range(10, 15)])
    failed(kafka, "source-replaced", f"'{topic}'", "deleted and recreated")
    kafka.lab.build("-f", "-s", "plain")
    assert kafka.ids() == [10, 11, 12, 13, 14]


def test_the_rows_of_a_topic_that_was_replaced_can_be_kept(kafka: Kafka) -> None:
    topic, other = kafka.topic(), kafka.topic()
    kafka.sources(topic, {"events": {}, "both": {"topic": None, "topics": f"[{topic}, {other}]"}})
    kafka.stream("select id")
    kafka.stream("select id", name="two", source="both")
    kafka.lab.model(
        "total",
        "/*---\nstreams: [shop.events]\nunique_key: kind\noutput_mode: update\n---*/\n"
        "select kind, count(*) as id from {{ source('shop', 'events') }} group by kind\n",
    )
    kafka.broker.send(topic, [event(n) for n in range(3)])
    kafka.broker.send(other, [event(3)])
    kafka.lab.build()
    reset = ("--reset-checkpoint", "earliest")
    # As long as the topic is the one that was read, its rows would be added again.
    assert "reset-duplicates" in kafka.lab.run("build", "-s", "plain", *reset).codes()
    kafka.broker.delete(topic)
    kafka.broker.create(topic)
    kafka.broker.send(topic, [event(n) for n in range(10, 12)])

    # Plan and build reject it in the same words, and the hint is a command that works.
    (found,) = failed_alone(kafka, "plain")
    planned = kafka.lab.run("plan", "-s", "plain")
    command = "engine build -s plain --reset-checkpoint earliest"
    assert found["code"] == "source-replaced"
    assert command in found["hint"]
    assert command in planned.text
    # One of two topics is the one that was read; totals would begin at zero.
    for name, code in (("two", "reset-duplicates"), ("total", "reset-totals")):
        (found,) = failed_alone(kafka, name)
        assert found["code"] == "source-replaced"
        assert "--reset-checkpoint" not in found["hint"]
        rejected = kafka.lab.run("build", "-s", name, *reset)
        assert rejected.codes()[-1] == code, rejected.text
    assert "reset" in kafka.lab.run("plan", "-s", "plain", *reset).text
    kafka.lab.build("-s", "plain", *reset)
    assert kafka.ids() == [0, 1, 2, 10, 11]
    kafka.broker.send(topic, [event(12)])
    kafka.lab.build("-s", "plain")
    assert kafka.ids() == [0, 1, 2, 10, 11, 12]
    assert kafka.ids("two") == [0, 1, 2, 3]


def failed_alone(kafka: Kafka, name: str) -> list[dict[str, Any]]:
    """The errors of a build of one model, which fails."""
    result = kafka.lab.run("build", "-s", name)
    assert result.code == 1, result.text
    return [e for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"]


def test_a_broker_that_lost_what_was_read_is_told(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(n) for n in range(3)])
    kafka.lab.build()
    kafka.broker.stop()
    data = kafka.broker.folder / "data" / f"{topic}-0"
    for path in data.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    kafka.broker.start()
    assert kafka.broker.offsets(topic) == {0: 0}
    failed(kafka, "source-shrunk", f"'{topic}' up to offset 3", "ends at 0")


def test_another_beginning_counts_for_the_first_build_only(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, starting_offsets="earliest")
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1), event(2)])
    kafka.lab.build()
    kafka.broker.send(topic, [event(3)])
    kafka.source(topic, starting_offsets="latest")
    result = kafka.lab.build()
    (found,) = [e for e in result.events if e["event"] == "Diagnosed"]
    assert (found["code"], found["level"]) == ("source-start", "warning")
    assert kafka.ids() == [1, 2, 3]
    kafka.source(topic, starting_offsets="earliest")
    kafka.lab.build()
    assert kafka.ids() == [1, 2, 3]


def test_poison_ends_a_build_and_says_where_it_is(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1)], partition=1)
    kafka.lab.build()
    kafka.broker.send(topic, ["{not json"], partition=1)
    failed(
        kafka,
        "bad-record",
        f"topic {topic}, partition 1, offset 1",
        "not a JSON object; write one per line or message",
    )


def test_dropped_poison_is_counted(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, on_bad_record="drop")
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1), "{not json", "null", "[1]", {"id": "x"}, None, event(2)])
    found = kafka.lab.build().model("plain")
    assert kafka.ids() == [1, 2]
    assert found["bad_records"] == {"shop.events": 5}


def test_quarantined_poison_keeps_its_bytes_and_its_place_once(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, on_bad_record="quarantine")
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1), "{not json", b"\xff{", event(2)])
    kafka.lab.build()
    kafka.lab.build()
    assert kafka.ids() == [1, 2]
    rows = sorted(kafka.lab.rows("plain__quarantine"), key=lambda row: row["raw"])
    assert [(row["raw"], row["reason"]) for row in rows] == [
        (b"{not json", "not a JSON object; write one per line or message"),
        (b"\xff{", "it is not UTF-8"),
    ]
    assert topic in rows[0]["origin"]


def test_another_topic_or_cluster_is_another_source(kafka: Kafka) -> None:
    topic, other = kafka.topic(), kafka.topic()
    kafka.source(topic, fail_on_data_loss="false")
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1)])
    kafka.broker.send(other, [event(2)])
    kafka.lab.build()

    def rejected() -> str:
        result = kafka.lab.run("build")
        assert (result.code, result.codes()) == (1, ["source-changed"]), result.text
        assert kafka.ids() == [1]
        return result.text

    kafka.source(other, fail_on_data_loss="false")
    assert f"({topic}) to" in rejected()
    # What a pattern names is asked of the cluster.
    kafka.source(None, topic_pattern=f"{other}.*", fail_on_data_loss="false")
    assert f"no longer reads the topic '{topic}'" in rejected()
    kafka.source(topic, fail_on_data_loss="false")
    path = kafka.lab.state / "plain" / "1" / "model.json"
    state = json.loads(path.read_text())
    (known,) = state["sources"].values()
    cluster, known["cluster"] = known["cluster"], "another"
    path.write_text(json.dumps(state))
    assert "read from another Kafka cluster (another)" in rejected()
    known["cluster"] = cluster
    path.write_text(json.dumps(state))
    kafka.lab.build()
    assert kafka.ids() == [1]
