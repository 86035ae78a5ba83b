"""`engine backfill` of a stream of a topic: records between where it began and where it is, and no others."""

from __future__ import annotations

import pytest

from tests.kafka.conftest import Kafka, event
from tests.lab import Lab

pytestmark = pytest.mark.spark

SELECT = "select id, at, AMOUNT as amount"
COMMAND = ("backfill", "plain", "--from", "2024-05-01", "--yes")


def test_records_that_were_not_read_stay_unread_and_deleted_ones_are_missed(kafka: Kafka, lab: Lab) -> None:
    topic = kafka.topic(partitions=2)
    kafka.broker.send(topic, [event(number) for number in (1, 2)])
    kafka.source(topic, starting_offsets="latest")
    kafka.stream(SELECT.replace("AMOUNT", "amount"))
    lab.build()
    kafka.broker.send(topic, [event(number) for number in (3, 4, 5)])
    lab.build()
    kafka.stream(SELECT.replace("AMOUNT", "amount * 10"))
    lab.build()
    kafka.broker.send(topic, [event(number) for number in (6, 7)])

    def amounts() -> dict[int, float]:
        rows = lab.rows("plain")
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row["amount"] for row in rows}

    result = lab.run(*COMMAND)
    assert result.code == 0, result.text
    assert amounts() == {3: 30, 4: 40, 5: 50}
    lab.build()
    assert amounts() == {3: 30, 4: 40, 5: 50, 6: 60, 7: 70}
    kafka.stream(SELECT.replace("AMOUNT", "amount"))
    lab.build()
    kafka.broker.delete_records(topic, kafka.broker.offsets(topic))
    result = lab.run(*COMMAND)
    assert (result.code, result.codes()) == (1, ["source-gap"])
    assert amounts() == {3: 30, 4: 40, 5: 50, 6: 60, 7: 70}
