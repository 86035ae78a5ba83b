"""The cells of the handbook's table of guarantees that no other test shows: sources that are not files, by output."""

from __future__ import annotations

import time

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.fault_injection.points import killing
from tests.kafka.conftest import Kafka, event
from tests.lab import Lab, killed_alone
from tests.projects import sources_yaml
from tests.services.kafka import Broker

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: shop
    tables:
      - {{name: events, format: kafka, connection: main, topic: {topic}, schema: "id int, kind string"}}
      - {{name: whole, format: kafka, connection: main, topic: {topic}, schema: "id int, kind string", stream: false}}
      - {{name: orders, format: iceberg, table: {schema}.orders, schema: "id int, kind string"}}
"""
LATEST = "/*---\nstreams: [{0}]\nunique_key: id\n---*/\nselect id, kind from {{{{ source('shop', '{1}') }}}}\n"
RANKING = (
    "/*---\nstreams: [{0}]\noutput_mode: complete\n---*/\n"
    "select kind, count(*) as n from {{{{ source('shop', '{1}') }}}} group by kind\n"
)
COPY = "/*---\nstreams: [{0}]\n---*/\nselect id, kind from {{{{ source('shop', '{1}') }}}}\n"
TABLE = "select id, kind from {{{{ source('shop', '{0}') }}}}\n"
VIEW = "/*---\nmaterialized: view\n---*/\nselect * from {{{{ ref('{0}') }}}}\n"  # of a table: views read nothing else
STREAMS = ("k_latest", "k_ranking", "i_copy", "i_latest", "i_ranking")
# All of them have committed a micro-batch with rows, and none has noted it.
KILL = killing(dict.fromkeys(STREAMS, ("committed", 1)))


@pytest.mark.gate
def test_kafka_and_tables_take_effect_once_in_every_output(lab: Lab, broker: Broker) -> None:
    kafka = Kafka(lab, broker.start())
    topic, spark = kafka.topic(), lab.session.spark  # type: ignore[union-attr]
    orders = f"lake.{lab.schema}.orders"
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    spark.sql(f"create table {orders} using iceberg as select 1 as id, 'paid' as kind")
    lab.write("sources/shop.yml", SOURCES.format(topic=topic, schema=lab.schema))
    for name, text in (("latest", LATEST), ("ranking", RANKING)):
        lab.model(f"k_{name}", text.format("shop.events", "events"))
        lab.model(f"i_{name}", text.format("shop.orders", "orders"))
    lab.model("i_copy", COPY.format("shop.orders", "orders"))
    for prefix, source in (("k", "whole"), ("i", "orders")):
        lab.model(f"{prefix}_table", TABLE.format(source))
        lab.model(f"{prefix}_view", VIEW.format(f"{prefix}_table"))
    broker.send(topic, [event(1)])
    lab.build()
    broker.send(topic, [event(2), event(3, kind="open")])
    spark.sql(f"insert into {orders} values (2, 'paid'), (3, 'open')")
    killed_alone(lab.root, "build", "--threads", "5", "-s", " ".join(STREAMS), script=KILL)
    for model in STREAMS:
        checkpoint = lab.state / model / "1" / "checkpoint"
        assert (spark_checkpoint.last_started(checkpoint), spark_checkpoint.last_committed(checkpoint)) == (1, 0), model
        table = lab.table(model)
        assert table is not None
        assert table.history[0].marker("batch-id") == "1", model

    lab.build()
    rows = [(1, "paid"), (2, "paid"), (3, "open")]
    for model in ("k_latest", "k_table", "i_copy", "i_latest", "i_table"):
        assert sorted((r["id"], r["kind"]) for r in lab.rows(model)) == rows, model
    for model in ("k_ranking", "i_ranking"):
        assert {r["kind"]: r["n"] for r in lab.rows(model)} == {"paid": 2, "open": 1}, model
    for model in ("k_view", "i_view"):
        assert sorted(map(tuple, spark.table(f"lake.{lab.schema}.{model}").collect())) == rows, model
    again = lab.snapshots()
    lab.build()
    assert lab.snapshots() == again


NOT_REPLAYABLE = sources_yaml(
    clock={"format": "rate", "rows_per_second": 10},
    clock_whole={"format": "rate", "rows_per_second": 3, "stream": False},
    other={"format": "spark.rate-micro-batch", "schema": "value bigint", "options": {"rowsPerBatch": 4}},
    other_whole={"format": "spark.xml", "path": "landing/x", "schema": "value bigint", "options": {"rowTag": "event"}},
)


def test_a_clock_and_other_readers_reach_every_output(lab: Lab) -> None:
    lab.write("sources/shop.yml", NOT_REPLAYABLE)
    lab.write("landing/x/a.xml", "<all><event><value>1</value></event><event><value>2</value></event></all>")
    for source in ("clock", "other"):
        keyed = LATEST.replace("id, kind", "value").replace("unique_key: id", "unique_key: value")
        lab.model(f"{source}_latest", keyed.format(f"shop.{source}", source))
        counted = RANKING.replace("kind, count", "value % 2 as odd, count").replace("group by kind", "group by all")
        lab.model(f"{source}_ranking", counted.format(f"shop.{source}", source))
        lab.model(f"{source}_table", TABLE.replace("id, kind", "value").format(f"{source}_whole"))
        lab.model(f"{source}_view", VIEW.format(f"{source}_table"))
    lab.build()
    time.sleep(1.1)
    lab.build()
    spark = lab.session.spark  # type: ignore[union-attr]
    for source, least in (("clock", 10), ("other", 8)):
        values = sorted(r["value"] for r in lab.rows(f"{source}_latest"))
        assert values == list(range(len(values)))
        assert len(values) >= least
        assert sum(r["n"] for r in lab.rows(f"{source}_ranking")) >= least
    assert sorted(r["value"] for r in lab.rows("other_table")) == [1, 2]
    assert [r["value"] for r in lab.rows("clock_table")] == list(range(30))
    assert spark.table(f"lake.{lab.schema}.other_view").count() == 2
    assert spark.table(f"lake.{lab.schema}.clock_view").count() == 30
