"""Where a stream begins is fixed by its first build, also where that fails or reads nothing."""

from __future__ import annotations

import pytest

from engine.state import checkpoint as spark_checkpoint
from tests.kafka.conftest import COLUMNS, Kafka, event

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: shop
    tables:
      - {{name: events, format: kafka, connection: main, topic: {topic}, schema: "{columns}", starting_offsets: latest}}
      - {{name: wanted, format: json, path: wanted, schema: "kind string, from int", on_bad_record: fail}}
"""
PLAIN = """/*---
streams: [shop.events]
---*/
select e.id from {{ source('shop', 'events') }} e join {{ source('shop', 'wanted') }} w on e.kind = w.kind
where e.id >= w.from
"""
DEDUP = PLAIN.replace("[shop.events]", "{shop.events: {watermark: at delay 10 minutes, dedup: [KEY]}}")


def test_records_behind_the_first_beginning_are_never_passed_over(kafka: Kafka) -> None:
    lab, topic = kafka.lab, kafka.topic(partitions=2)
    lab.write("sources/shop.yml", SOURCES.format(topic=topic, columns=COLUMNS))
    lab.write("wanted/a.json", '{"kind": "paid", "from": "one"}\n')
    lab.model("plain", PLAIN)
    lab.model("once", DEDUP.replace("KEY", "kind"))
    kafka.broker.send(topic, [event(1)])
    failed = lab.run("build")
    assert (failed.code, failed.codes()) == (1, ["bad-record"] * 2)
    for name in ("plain", "once"):
        checkpoint = lab.state / name / "1" / "checkpoint"
        assert (lab.model_json(name)["batch"], spark_checkpoint.last_started(checkpoint)) == (None, 0)
    # `latest` was behind record 1. What comes now is read, whatever is changed before anything is written.
    kafka.broker.send(topic, [event(2), event(3)])
    lab.write("wanted/a.json", '{"kind": "paid", "from": 1}\n')
    lab.model("once", DEDUP.replace("KEY", "id"))
    lab.build()
    kafka.broker.send(topic, [event(4)])
    lab.build()
    assert [kafka.ids(), kafka.ids("once")] == [[2, 3, 4]] * 2


COPY = "/*---\nstreams: [{0}]\n---*/\nselect * from {{{{ ref('{0}') }}}}"
HOURS = """/*---
streams: {{again: {{watermark: at delay 10 minutes}}}}
windows: {{hour: 'tumbling(at, {0})'}}
---*/
select hour.start as hour, count(*) as n from {{{{ ref('again') }}}} group by hour
"""


@pytest.mark.nightly
def test_a_chain_over_an_empty_topic_continues_with_its_first_record(kafka: Kafka) -> None:
    lab, topic = kafka.lab, kafka.topic(partitions=2)
    lab.write("sources/shop.yml", SOURCES.format(topic=topic, columns=COLUMNS))
    lab.model("plain", "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}")
    lab.model("again", COPY.format("plain"))
    lab.model("hours", HOURS.format("1 hour"))
    lab.build()
    lab.build()
    # `latest` was fixed by the first build; nothing was read, and so edits need no full refresh.
    kafka.broker.send(topic, [event(1)])
    lab.model("plain", "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind from {{ source('shop', 'events') }}")
    lab.model("hours", HOURS.format("30 minutes"))
    lab.build()
    kafka.broker.send(topic, [event(2), event(3, "11:00")])
    lab.build()
    assert [kafka.ids(), kafka.ids("again")] == [[1, 2, 3]] * 2
    assert [r["n"] for r in lab.rows("hours")] == [2]
