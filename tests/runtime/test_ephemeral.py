"""Ephemeral models on Spark: streamed with their watermark inside another model, and in batch models and views."""

from __future__ import annotations

import pytest

from tests.lab import Lab, event
from tests.runtime.test_streams import hour

pytestmark = pytest.mark.spark

PAID = """/*---
materialized: ephemeral
streams:
  shop.events: {watermark: at delay 10 minutes, dedup: [id], max_files_per_trigger: 1}
---*/
select id, at, amount * 2 as doubled from {{ source('shop', 'events') }} where kind = 'paid'
"""
HOURLY = """/*---
streams: [paid]
windows: {hour: "tumbling(at, 1 hour)"}
---*/
select hour.start as hour, count(*) as n, sum(paid.doubled) as doubled from {{ ref('paid') }} group by hour
"""


def test_a_streamed_ephemeral_model_and_batch_readers_of_another(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.model("hourly", HOURLY)
    lab.model("named", "/*---\nmaterialized: ephemeral\n---*/\nselect hour, n from {{ ref('hourly') }} where n > 1")
    lab.model("stored", "select * from {{ ref('named') }}")
    lab.model("seen", "/*---\nmaterialized: view\n---*/\nselect n from {{ ref('named') }}")
    lab.land("a", [event(1, "10:00"), event(1, "10:00"), event(2, "10:30"), event(3, "10:40", "open")])
    lab.land("b", [event(4, "12:00")])
    lab.land("c", [event(5, "12:30")])
    # Late is what lies behind the watermark with which the batch before this one began.
    lab.land("d", [event(6, "10:59")])
    result = lab.build()
    built = result.model("hourly")
    assert (built["rows_in"], built["late"]) == (7, 1), "the watermark of the ephemeral model holds"
    assert [(r["hour"], r["n"], r["doubled"]) for r in lab.rows("hourly")] == [(hour(10), 2, 4.0)]
    assert [(r["hour"], r["n"]) for r in lab.rows("stored")] == [(hour(10), 2)]
    ran = sorted(e["node"] for e in result.events if e["event"] == "ModelFinished")
    assert ran == ["model.hourly", "model.seen", "model.stored"]
    assert lab.table("paid") is None
    shown = lab.run("show", "seen")
    assert shown.code == 0, shown.text
    assert lab.build().model("hourly")["status"] == "unchanged"
