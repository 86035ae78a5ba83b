"""Lengths of time below a second, which Spark takes for watermarks, windows and triggers."""

from __future__ import annotations

from pathlib import Path

from tests.project.small_projects import clean

TEXT = """/*---
streams: {shop.orders: {watermark: ts delay 500 milliseconds}}
windows: {tick: 'sliding(ts, 500 milliseconds, 250 milliseconds)'}
trigger: every 500 milliseconds
---*/
select tick.start as begins, count(*) as n from {{ source('shop', 'orders') }} group by tick
"""


def test_milliseconds_are_lengths_of_the_header(tmp_path: Path) -> None:
    model = clean(tmp_path, {"models/a.sql": TEXT}).model("a")
    assert model.inputs[0].watermark is not None
    assert model.inputs[0].watermark.delay == "500 milliseconds"
    assert "'500 milliseconds', '250 milliseconds'" in model.sql
    assert model.operation.trigger.interval == "500 milliseconds"
