"""When the next window closes, for the sentence after a build."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from engine.compile.nodes.model_settings import TimeWindow
from engine.runtime.inputs.watermark_lag import moment
from engine.runtime.writer.query_progress import next_close

HOUR, DAY = (TimeWindow("tumbling", "at", size) for size in ("1 hours", "1 days"))
SLIDING = TimeWindow("sliding", "at", "1 hours", "20 minutes")


def model(window: TimeWindow, delay: str = "30 minutes") -> SimpleNamespace:
    return SimpleNamespace(inputs=[SimpleNamespace(watermark=SimpleNamespace(delay=delay))], windows={"w": window})


@pytest.mark.parametrize(
    ("window", "watermark", "end", "passed"),
    [
        (HOUR, "2013-03-01T10:20:00.000Z", "10:00", None),
        (HOUR, "2013-03-01T10:20:00.000Z", "11:00", "11:30"),
        (HOUR, "2013-03-01T11:00:00.000Z", "12:00", "12:30"),
        (SLIDING, "2013-03-01T10:25:00.000Z", "10:40", "11:10"),
        (DAY, "2013-03-01T10:25:00.000Z", "2013-03-02 00:00", "00:30"),
    ],
)
def test_the_next_end_after_the_watermark_and_the_time_that_closes_it(
    window: TimeWindow, watermark: str, end: str, passed: str | None
) -> None:
    text = next_close(model(window), watermark, 5)  # type: ignore[arg-type]
    if passed is None:
        assert f"ends at 2013-03-01 {end}" not in text
    else:
        assert f"{end} closes when event time passes" in text
        assert text.endswith(passed)


def test_the_time_of_a_window_may_be_any_sql() -> None:
    read = TimeWindow("tumbling", "to_timestamp(at, 'yyyy')", "1 hours")
    assert "ends at 2013-03-01 11:00" in next_close(model(read), "2013-03-01T10:20:00.000Z", 5)  # type: ignore[arg-type]


def test_nothing_is_said_where_it_would_be_a_guess() -> None:
    hour = model(HOUR)
    assert next_close(hour, None, 5) == ""  # type: ignore[arg-type]
    assert next_close(hour, "2013-03-01T10:20:00.000Z", 0) == ""  # type: ignore[arg-type]
    shifted = TimeWindow("tumbling", "at", "1 hours", start="15 minutes")
    assert next_close(model(shifted), "2013-03-01T10:20:00.000Z", 5) == ""  # type: ignore[arg-type]
    assert next_close(model(TimeWindow("session", "at", "5 minutes")), "2013-03-01T10:20:00.000Z", 5) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "watermark", ["12345-01-01T00:00:00.000Z", "+12345-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]
)
def test_event_time_that_ran_away_says_nothing_and_stops_nothing(watermark: str) -> None:
    assert next_close(model(HOUR), watermark, 5) == ""  # type: ignore[arg-type]


def test_a_time_beyond_pythons_years_is_the_nearest_that_there_is() -> None:
    assert moment(1_500_000) == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert moment(10**18) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert moment(-(10**18)) == datetime(1, 1, 1, tzinfo=UTC)
