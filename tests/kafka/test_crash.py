"""kill -9 in a build that reads Kafka, then a build: every record is in the table once."""

from __future__ import annotations

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.kafka.conftest import COLUMNS, Kafka, event
from tests.lab import killed_alone

pytestmark = pytest.mark.spark

TABLE = (
    '      - {{name: {name}, format: kafka, connection: main, topic: {topic}, schema: "{columns}", '
    "max_offsets_per_trigger: 4}}\n"
)
MODEL = "/*---\nstreams: [shop.{0}]\n---*/\nselect id, _metadata.offset as place from {{{{ source('shop', '{0}') }}}}\n"
# The last is at its first micro-batch, of which the checkpoint has only where it began.
POINTS = {"before": ("written", 1), "behind": ("committed", 1), "noted": ("recorded", 1), "first": ("recorded", 0)}


@pytest.mark.gate
def test_a_batch_of_kafka_that_is_killed_is_written_once_and_never_over_a_gap(kafka: Kafka) -> None:
    lab, topic, short = kafka.lab, kafka.topic(partitions=2), kafka.topic()
    tables = [TABLE.format(name=n, topic=t, columns=COLUMNS) for n, t in (("events", topic), ("short", short))]
    lab.write("sources/shop.yml", "sources:\n  - name: shop\n    tables:\n" + "".join(tables))
    for name in POINTS:
        lab.model(name, MODEL.format("short" if name == "first" else "events"))
    for name in (topic, short):
        kafka.broker.send(name, [event(n) for n in range(10)])
    killed_alone(lab.root, "build", "--threads", "4", script=killing(POINTS))
    for name, (point, batch) in POINTS.items():
        checkpoint = lab.state / name / "1" / "checkpoint"
        logs = spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)
        assert logs == (batch, batch - 1 if batch else None), name
        table = lab.table(name)
        assert table is not None
        assert (str(batch) in {s.marker("batch-id") for s in table.history}) == (point != "written"), name
    assert spark_checkpoint.standing(lab.state / "first" / "1" / "checkpoint") == [{short: {"0": 0}}]

    # What came meanwhile is in no batch that is repeated; what is gone meanwhile stops the build before anything is started.
    kafka.broker.send(topic, [event(10), event(11)])
    kafka.broker.delete_records(short, {0: 2})
    failed = lab.run("build", "--threads", "4")
    assert (failed.code, failed.codes()) == (1, ["source-gap", "build-rejected"]), failed.text
    assert f"{short}-0: 0 to 1" in failed.out
    lab.build("--threads", "4", "--exclude", "first")
    assert [kafka.ids(name) for name in POINTS] == [list(range(12))] * 3 + [list(range(4))]
