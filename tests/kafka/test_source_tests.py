"""Tests of a topic: it is read from its first record to where it ends when the tests begin."""

from __future__ import annotations

import pytest

from tests.kafka.conftest import COLUMNS, Kafka, event
from tests.runtime.test_source_tests import ended

pytestmark = pytest.mark.spark

TOPIC = """
sources:
  - name: shop
    tables:
      - name: events
        format: kafka
        connection: main
        topic: {topic}
        schema: "{columns}"
        columns:
          id:
            tests: [not_null, unique, {{unique: {{name: paid_once, where: "kind = 'paid'"}}}}]
"""


def test_a_topic_is_read_to_where_it_ends(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    kafka.lab.write("sources/shop.yml", TOPIC.format(topic=topic, columns=COLUMNS))
    kafka.stream("select id")
    kafka.broker.send(topic, [event(1), event(2)], 0)
    kafka.broker.send(topic, [event(3)], 1)
    assert set(ended(kafka.lab.build()).values()) == {("pass", 0)}
    kafka.broker.send(topic, [event(2, kind="sent")], 1)
    failed = kafka.lab.run("build")
    assert ended(failed) == {
        "source_not_null_shop_events_id": ("pass", 0),
        "source_unique_shop_events_id": ("fail", 1),
        "paid_once": ("pass", 0),
    }
    assert (failed.model("plain")["status"], kafka.ids()) == ("skipped", [1, 2, 3])

    # Where a stream begins behind the newest record, everything that is there is looked at.
    for start, status in (("latest", "fail"), ("{0: -1, 1: 1}", "fail"), ("{0: 1, 1: 0}", "fail"), ("{0: 2}", "pass")):
        text = TOPIC.format(topic=topic, columns=COLUMNS).replace(
            "schema:", f"starting_offsets: {start}\n        schema:"
        )
        kafka.lab.write("sources/shop.yml", text)
        result = kafka.lab.run("test", "-s", "source_unique_shop_events_id")
        assert ended(result)["source_unique_shop_events_id"][0] == status, (start, result.text)
