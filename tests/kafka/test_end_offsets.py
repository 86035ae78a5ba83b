"""A bounded build of a model that streams a table and a topic ends while both go on growing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.kafka.conftest import Kafka, event

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: shop
    tables:
      - {{name: events, format: kafka, connection: main, topic: {topic}, schema: "id int", max_offsets_per_trigger: 150}}
      - {{name: orders, format: iceberg, table: {schema}.orders, schema: "id int"}}
"""
BOTH = """/*---
streams: [shop.events, shop.orders]
---*/
select id, 'event' as kind from {{ source('shop', 'events') }}
union all
select id, 'order' as kind from {{ source('shop', 'orders') }}
"""
# A build that does not end before the input does is what is looked for; that long it may take.
_SECONDS = 60


def test_a_build_ends_while_its_table_and_its_topic_grow(kafka: Kafka) -> None:
    lab, topic = kafka.lab, kafka.topic(partitions=2)
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table lake.{lab.schema}.orders (id int) using iceberg")
    lab.write("sources/shop.yml", SOURCES.format(topic=topic, schema=lab.schema))
    lab.model("both", BOTH)

    def order(number: int) -> None:
        spark.sql(f"insert into lake.{lab.schema}.orders values ({number})")

    orders = count()
    order(next(orders))
    kafka.broker.send(topic, [event(number) for number in range(100)])
    with _again_and_again(lambda n: kafka.broker.send(topic, [event(100 + n)]), 0.02) as events:
        lab.build()
        assert events.is_alive(), "it read for as long as somebody wrote"
    sent = 100 + events.done
    kinds = [(row["kind"], row["id"]) for row in lab.rows("both")]
    assert {("order", 0), *(("event", n) for n in range(100))} <= set(kinds)

    # The table alone has no end that could be fixed: what comes later is left for the next build.
    with _again_and_again(lambda _: order(next(orders)), 0.0) as committing:
        lab.build()
        assert committing.is_alive(), "it read for as long as somebody wrote"
    lab.build()
    assert lab.build().model("both")["status"] == "unchanged"
    kinds = sorted((row["kind"], row["id"]) for row in lab.rows("both"))
    assert kinds == [*(("event", n) for n in range(sent)), *(("order", n) for n in range(next(orders)))]


class _Writing(threading.Thread):
    """Writes until it is told to stop, or for too long."""

    def __init__(self, write: object, pause: float) -> None:
        super().__init__(daemon=True)
        self.write, self.pause, self.done = write, pause, 0
        self.enough = threading.Event()
        self.limit = threading.Timer(_SECONDS, self.enough.set)

    def run(self) -> None:
        self.limit.start()
        while not self.enough.wait(self.pause):
            self.write(self.done)  # type: ignore[operator]
            self.done += 1
        self.limit.cancel()


@contextmanager
def _again_and_again(write: object, pause: float) -> Iterator[_Writing]:
    thread = _Writing(write, pause)
    thread.start()
    yield thread
    thread.enough.set()
    thread.join()
