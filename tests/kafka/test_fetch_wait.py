"""How long Kafka's consumer waits for records behind the end: a micro-batch has to wait for it."""

from __future__ import annotations

import pytest

from engine.sources.kafka import topics
from engine.sources.spec import Place, SourceSpec
from tests.kafka.conftest import Kafka
from tests.lab import LabSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "10"),
        ({"consumer.fetch.max.wait.ms": "700"}, "700"),
    ],
    ids=["default", "declared"],
)
def test_the_wait_is_short_unless_the_source_says_otherwise(
    kafka: Kafka, lab_session: LabSession, options: dict[str, str], expected: str
) -> None:
    topic = kafka.topic()
    value = {"format": "json", "schema": "id int"}
    settings = {"connection": "main", "topic": topic, "value": value}
    spec = SourceSpec("shop.events", "kafka", "id int", options=options, settings=settings)
    place = Place(kafka.lab.root, lambda _: {"bootstrap_servers": kafka.broker.address})

    frame = topics.read_stream(lab_session.spark, spec, place)

    relation = frame._jdf.queryExecution().analyzed().collectLeaves().head()
    assert relation.extraOptions().get("kafka.fetch.max.wait.ms") == expected
