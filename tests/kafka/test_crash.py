"""kill -9 in a build that reads Kafka, then a build: every record is in the table once."""

from __future__ import annotations

import signal

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.kafka.conftest import Kafka, event
from tests.lab import run_alone
from tests.runtime.test_crash import POINTS

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("point", POINTS)
def test_a_batch_of_kafka_that_is_killed_is_written_once(kafka: Kafka, point: str) -> None:
    topic = kafka.topic(partitions=2)
    kafka.source(topic, max_offsets_per_trigger=4)
    kafka.stream("select id, _metadata.offset as place")
    kafka.broker.send(topic, [event(n) for n in range(10)])
    killed = run_alone(kafka.lab.root, "build", script=POINTS[point].format(batch=1, model="plain"))
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    checkpoint = kafka.lab.state / "plain" / "1" / "checkpoint"
    assert (spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)) == (1, 0)
    table = kafka.lab.table("plain")
    assert table is not None
    assert ("1" in {s.marker("batch-id") for s in table.history}) == (point != "before the commit")

    # What came meanwhile is in no batch that is repeated.
    kafka.broker.send(topic, [event(10), event(11)])
    kafka.lab.build()
    assert kafka.ids() == list(range(12))


def test_a_first_batch_that_must_be_repeated_is_not_repeated_over_a_gap(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.source(topic, max_offsets_per_trigger=4)
    kafka.stream("select id")
    kafka.broker.send(topic, [event(n) for n in range(10)])
    killed = run_alone(kafka.lab.root, "build", script=POINTS["after the record"].format(batch=0, model="plain"))
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    checkpoint = kafka.lab.state / "plain" / "1" / "checkpoint"
    assert spark_checkpoint.last_committed(checkpoint) is None
    assert spark_checkpoint.standing(checkpoint) == [{topic: {"0": 0}}]
    kafka.broker.delete_records(topic, {0: 2})
    failed = kafka.lab.run("build")
    assert (failed.code, failed.codes()) == (1, ["source-gap"]), failed.text
    assert f"{topic}-0: 0 to 1" in failed.out
