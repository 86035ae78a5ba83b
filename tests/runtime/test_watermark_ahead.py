"""A watermark that a row in the future has moved ahead of the clock: all rows after it are late, and the build says so."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from engine.errors import Level
from engine.runtime.inputs.watermark_lag import ahead_of_clock
from tests.lab import Lab
from tests.projects import sources_yaml

NOW = datetime(2024, 5, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("watermark", "days"),
    [
        (None, ""),
        ("1970-01-01T00:00:00.000Z", ""),
        ("2024-05-19T11:59:00.000Z", ""),
        ("2024-05-19T12:30:00.000Z", "1 day ahead"),
        ("2099-01-01T00:00:00.000Z", "27,255 days ahead"),
        ("+56347-11-17T03:03:24.000Z", "days ahead"),
    ],
)
def test_a_day_ahead_of_the_clock_is_warned_of(watermark: str | None, days: str) -> None:
    model = SimpleNamespace(name="hourly", stateful=True)
    found = ahead_of_clock(model, watermark, NOW)  # type: ignore[arg-type]
    assert (found is None) == (not days)
    if found is not None:
        assert (found.code, found.level) == ("watermark-ahead", Level.WARNING)
        assert days in found.message
        assert (watermark or "").replace("T", " ").removesuffix(".000Z") in found.message


def test_without_state_no_row_is_late() -> None:
    assert ahead_of_clock(SimpleNamespace(name="rows", stateful=False), "2099-01-01T00:00:00.000Z", NOW) is None  # type: ignore[arg-type]


SOURCE = sources_yaml(events="id bigint, ts bigint")
HOURLY = """/*---
streams:
  shop.events: {{watermark: {{column: at, as: timestamp_seconds(ts), delay: 10 minutes{more}}}}}
windows:
  hour: tumbling(at, 1 hour)
---*/
select hour.start as hour, count(*) as n from {{{{ source('shop', 'events') }}}} group by hour
"""


@pytest.mark.spark
def test_milliseconds_that_are_read_as_seconds(lab: Lab) -> None:
    lab.write("sources/shop.yml", SOURCE)
    lab.model("hourly", HOURLY.format(more=""))
    second = 1_716_000_000
    lab.land("a", [{"id": 1, "ts": second}, {"id": 2, "ts": second + 60}])
    assert lab.build().codes() == []
    lab.land("b", [{"id": 3, "ts": second * 1000}])
    built = lab.build()
    assert built.codes() == ["watermark-ahead"]
    assert "+56347-11-17 02:30:00" in built.text
    lab.land("c", [{"id": 4, "ts": second + 7200}])
    built = lab.build()
    assert built.codes() == ["watermark-ahead"]
    assert built.model("hourly")["late"] == 1
    # What the warning says to do.
    lab.model(
        "hourly", HOURLY.format(more=", max_future: 1 hour").replace("10 minutes, ", "10 minutes, on_null: drop, ")
    )
    lab.write("sources/shop.yml", SOURCE.replace('ts bigint"}', 'ts bigint", on_bad_record: drop}'))
    built = lab.build("--full-refresh")
    assert "watermark-ahead" not in built.codes()
    assert built.model("hourly")["bad_records"] == {"shop.events": 1}
