"""The example project with its events on a broker: the tables of the file target, from another source."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from confluent_kafka import Consumer, TopicPartition

from engine.compile import compile_project
from engine.project import load_project
from producer.__main__ import main as produce
from tests.example import golden
from tests.example.test_build import (
    FILES,
    arrived,
    check_streams_of_two,
    departed_once,
    flights,
    golden_hours,
    hourly_replay,
    hourly_rows,
)
from tests.lab import Lab
from tests.services.kafka import Broker

pytestmark = pytest.mark.spark
__all__ = ["flights"]


@pytest.fixture
def on_kafka(flights: Lab, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The example with two days of flights in files and, in the same order, in topics of its own."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP", broker.start().address)
    project = (flights.root / "project.yml").read_text()
    project = re.sub(r"path: \.engine/kafka/lake", f"path: {flights.lake_path}", project)
    flights.write("project.yml", project.replace("state: .engine/kafka/state", "state: .engine/state"))
    for path in (flights.root / "sources").glob("*.yml"):
        path.write_text(path.read_text().replace("topic: flights.", f"topic: {topics(flights)}."))
    send(flights, broker, "--days", "2")
    return flights


def topics(lab: Lab) -> str:
    return f"flights-{lab.schema}"


def send(lab: Lab, broker: Broker, *arguments: str) -> None:
    out = ["--out", str(lab.root / "landing")]
    assert produce([*out, "--kafka", broker.address, "--topics", topics(lab), *arguments]) == 0


def micro_batches(lab: Lab, broker: Broker, *, after: int = 0) -> tuple[list[list[golden.Row]], int]:
    """The topic's events in parts of as many offsets as a micro-batch takes, and where the topic ends."""
    (source,) = [
        s for s in compile_project(load_project(lab.root), target="kafka").manifest.sources if s.table == "departures"
    ]
    topic, limit = source.spec.settings["topic"], source.spec.settings["max_offsets_per_trigger"]
    settings = {"bootstrap.servers": broker.address, "group.id": "golden", "enable.auto.commit": False}
    consumer = Consumer(settings)
    end = broker.offsets(topic)[0]
    consumer.assign([TopicPartition(topic, 0, after)])
    parts: dict[int, list[golden.Row]] = {}
    place = after
    while place < end - 1:  # behind the last event there is the mark of the transaction
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        place = message.offset() + 1
        value = message.value()
        assert value is not None
        parts.setdefault((message.offset() - after) // limit, []).append(golden.flat(json.loads(value)))
    consumer.close()
    return [parts[number] for number in sorted(parts)], end


@pytest.mark.nightly
def test_the_tables_from_kafka_equal_golden_numbers_also_after_more_events(
    on_kafka: Lab, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    result = on_kafka.build("--target", "kafka")
    batches, end = micro_batches(on_kafka, broker)
    landed = golden.read_batches(on_kafka.root / "landing" / "departures", FILES)
    assert [row for batch in batches for row in batch] == [row for batch in landed for row in batch]
    once, replay = departed_once(), hourly_replay()
    first = once.run(batches)
    expected = replay.run([first])
    assert expected
    assert result.model("flights")["rows_in"] == sum(map(len, batches))
    assert hourly_rows(on_kafka) == golden_hours(expected)
    events = {row["id"]: row for row in first}
    assert Counter(r["flight_id"] for r in on_kafka.rows("flights")) == Counter(events.keys())
    routes = Counter((e["origin"], e["destination"]) for e in events.values())
    assert {(r["origin"], r["destination"]): r["flights"] for r in on_kafka.rows("routes")} == routes
    check_streams_of_two(on_kafka, events.values(), arrived(on_kafka))

    before = on_kafka.snapshots()
    on_kafka.build("--target", "kafka")
    assert on_kafka.snapshots() == before

    send(on_kafka, broker, "--days", "2")
    assert broker.offsets(f"{topics(on_kafka)}.departures")[0] == end, "an hour that is there was sent again"
    send(on_kafka, broker, "--more", "3")
    new, _ = micro_batches(on_kafka, broker, after=end)
    assert new
    third = on_kafka.build("--target", "kafka")
    assert third.model("flights")["rows_in"] == sum(map(len, new))
    expected += replay.run([once.run(new)])
    assert hourly_rows(on_kafka) == golden_hours(expected)
