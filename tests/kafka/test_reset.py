"""`--reset-checkpoint` for streams of Kafka and of tables: from now on through a kill, from a time, from the first row."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.kafka.conftest import Kafka, event
from tests.lab import Lab, killed_alone
from tests.services.kafka import Broker

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SOURCES = """
sources:
  - name: shop
    tables:
      - {{name: events, format: kafka, connection: main, topic: {topic}, schema: "id int"}}
      - {{name: orders, format: iceberg, table: {schema}.orders, schema: "id int"}}
"""
COPY = "/*---\nstreams: [shop.{0}]\n---*/\nselect id from {{{{ source('shop', '{0}') }}}}\n"
LATEST = COPY.replace("]\n", "]\nunique_key: id\n")
# After the new generation is saved, in and after the end of the old one, and before the end of the first micro-batch.
POINTS = {"k_copy": "renewed", "k_latest": "half discarded", "i_copy": "discarded", "i_latest": "started"}


def test_a_reset_of_kafka_and_of_tables(lab: Lab, broker: Broker) -> None:
    kafka = Kafka(lab, broker.start())
    topic, spark = kafka.topic(partitions=2), lab.session.spark  # type: ignore[union-attr]
    orders = f"lake.{lab.schema}.orders"
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table {orders} (id int) using iceberg")
    lab.write("sources/shop.yml", SOURCES.format(topic=topic, schema=lab.schema))
    for prefix, source in (("k", "events"), ("i", "orders")):
        lab.model(f"{prefix}_copy", COPY.format(source))
        lab.model(f"{prefix}_latest", LATEST.format(source))

    def add(*numbers: int) -> None:
        broker.send(topic, [event(number) for number in numbers])
        spark.sql(f"insert into {orders} values {', '.join(f'({number})' for number in numbers)}")

    def ids() -> list[list[int]]:
        return [lab.ids(name) for name in POINTS]

    add(1, 2)
    lab.build()
    time.sleep(0.01)
    moment = datetime.fromtimestamp(time.time(), UTC)
    add(3)
    assert ids() == [[1, 2]] * 4

    # now: what had come by then is a gap, also where nothing had been read when the build was killed.
    killed_alone(lab.root, "build", "--threads", "4", "--reset-checkpoint", "now", script=killing(POINTS))
    there = {name: sorted(path.name for path in (lab.state / name).iterdir() if path.is_dir()) for name in POINTS}
    assert there == {"k_copy": ["1", "2"], "k_latest": ["1", "2"], "i_copy": ["2"], "i_latest": ["2"]}
    assert (lab.state / "k_copy" / "1" / "model.json").exists()
    assert not (lab.state / "k_latest" / "1" / "model.json").exists()
    started = {name for name in POINTS if spark_checkpoint.query_id(lab.state / name / "2" / "checkpoint")}
    assert started == {"i_latest"}
    # Spark may have planned the first micro-batch by then; it has not ended.
    assert spark_checkpoint.last_committed(lab.state / "i_latest" / "2" / "checkpoint") is None
    add(4)
    assert lab.build().codes() == []
    assert ids() == [[1, 2, 4]] * 4
    assert {path.name for name in POINTS for path in (lab.state / name).iterdir() if path.is_dir()} == {"2"}

    # A time, and the first row: read again into a key; a copy refuses.
    keyed = ("-s", "k_latest i_latest")
    for said, numbers, rows in ((moment.isoformat(), [1, 2, 3, 4], 2), ("earliest", [1, 2, 3, 4], 4)):
        done = lab.build("--reset-checkpoint", said, *keyed)
        assert done.codes() == ["checkpoint-reset"] * 2
        assert [done.model(name)["rows_in"] for name in ("k_latest", "i_latest")] == [rows, rows], said
        assert ids() == [[1, 2, 4], numbers, [1, 2, 4], numbers]
    assert lab.run("build", "--reset-checkpoint", "earliest", "-s", "k_copy i_copy").codes() == ["reset-duplicates"] * 2
    add(5)
    lab.build()
    assert ids() == [[1, 2, 4, 5], [1, 2, 3, 4, 5], [1, 2, 4, 5], [1, 2, 3, 4, 5]]
