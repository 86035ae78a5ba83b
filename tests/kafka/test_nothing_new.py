"""Whether a topic has anything new is asked without Java, where confluent-kafka is installed; doubt is left to Java."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from engine.sources.kafka import native_client
from tests.fault_injection.points import reached
from tests.kafka.conftest import Kafka, event
from tests.lab import Result
from tests.services.kafka import PASSWORD, USER

pytestmark = pytest.mark.spark


def built(kafka: Kafka) -> tuple[Result, bool]:
    """A build, and whether it began a stream in Spark."""
    with reached("resuming", lambda *_: None) as begun:
        result = kafka.lab.run("build")
    return result, bool(begun)


def status(kafka: Kafka) -> tuple[str, bool]:
    """Status of the model after a build, and whether Spark began its stream."""
    result, begun = built(kafka)
    assert result.code == 0, result.text
    return result.model("plain")["status"], begun


def planned(kafka: Kafka) -> dict[str, Any]:
    """What the plan says of the model."""
    (line,) = kafka.lab.run("plan", "--output", "json").text.strip().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.nightly_cases("True")
@pytest.mark.parametrize("transactions", [False, True])
def test_a_topic_without_news_is_not_read(kafka: Kafka, transactions: bool) -> None:
    topic = kafka.topic(partitions=1 if transactions else 3)
    kafka.source(topic)
    kafka.stream("select id")

    if transactions:
        kafka.broker.send_in_transactions(topic, {json.dumps(event(1)): True, json.dumps(event(-1)): False})
    else:
        kafka.broker.send(topic, [event(1)])
    assert status(kafka) == ("success", True)
    assert planned(kafka)["unchanged"] is True
    assert status(kafka) == ("unchanged", False)
    kafka.broker.send(topic, [event(2)])
    reads = planned(kafka)["reads"]
    assert [(found["what"], found["new"] > 0) for found in reads] == [("offsets", True)]
    assert status(kafka) == ("success", True)
    assert status(kafka) == ("unchanged", False)
    assert sorted(kafka.ids()) == [1, 2]


def test_other_partitions_than_those_of_the_source_do_not_count(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(None, assign=f"{{{topic}: [0]}}")
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1)], partition=0)
    assert status(kafka) == ("success", True)
    kafka.broker.send(topic, [event(2)], partition=1)
    assert status(kafka) == ("unchanged", False)
    kafka.broker.send(topic, [event(3)], partition=0)
    assert status(kafka) == ("success", True)
    assert sorted(kafka.ids()) == [1, 3]


def recreate(kafka: Kafka, topic: str) -> None:
    kafka.broker.delete(topic)
    kafka.broker.create(topic, 1)
    kafka.broker.send(topic, [event(9)])


def widen(kafka: Kafka, topic: str) -> None:
    kafka.broker.widen(topic, 2)


def read_more(kafka: Kafka, topic: str) -> None:
    kafka.source(topic, starting_offsets="latest")


DOUBTS: dict[str, tuple[Callable[[Kafka, str], None], int, list[str]]] = {
    "a topic of the same length that was recreated": (recreate, 1, ["source-replaced"]),
    "a partition without records": (widen, 0, []),
    "another beginning": (read_more, 0, ["source-start"]),
}


@pytest.mark.nightly_except("a topic of the same length that was recreated")
@pytest.mark.parametrize("what", DOUBTS)
def test_what_is_not_as_it_was_is_left_to_java_unless_it_forbids_the_build(kafka: Kafka, what: str) -> None:
    change, code, codes = DOUBTS[what]
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1)])
    assert status(kafka) == ("success", True)
    change(kafka, topic)
    result, begun = built(kafka)
    # What forbids the build is known before Java.
    assert (result.code, result.codes(), begun) == (code, codes, code == 0)
    assert kafka.ids() == [1]


def test_a_login_is_taken(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1)])
    monkeypatch.setenv("ENGINE_SECRET_KAFKA", PASSWORD)
    text = (kafka.lab.root / "project.yml").read_text().split("    connections:")[0]
    password = "{{ env_var('ENGINE_SECRET_KAFKA') }}"
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": USER, "password": password}
    said = json.dumps({"bootstrap_servers": kafka.broker.login_address, "security": security})
    kafka.lab.write("project.yml", f"{text}    connections: {{main: {said}}}\n")
    assert status(kafka) == ("success", True)
    assert status(kafka) == ("unchanged", False)


def test_without_the_client_java_is_asked(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic()
    kafka.source(topic)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1)])
    kafka.lab.build()
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.setattr(native_client, "_clients", {})
    assert planned(kafka)["unchanged"] is None
    assert status(kafka) == ("unchanged", True)
