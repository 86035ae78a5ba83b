"""Lengths of time and times, as texts."""

from __future__ import annotations

import pytest

from engine.times import duration_seconds, duration_text, parse_duration, time_text


@pytest.mark.parametrize(
    ("text", "normal", "seconds"),
    [("1 hour", "1 hours", 3600), (" 90Minutes ", "90 minutes", 5400), ("2 weeks", "2 weeks", 1209600)],
)
def test_durations_are_read_in_units_of_one_length(text: str, normal: str, seconds: int) -> None:
    assert parse_duration(text) == normal
    assert duration_seconds(normal) == seconds


@pytest.mark.parametrize("text", ["1 month", "1.5 hours", "-1 day", "hour", "1 hour 5 minutes", ""])
def test_what_is_not_a_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (1, "1 second"), (5400, "90 minutes"), (3600, "1 hour"), (172800, "2 days"),
     (604800, "7 days"), (0.5, "500000 microseconds"), (-3600, "-1 hours")],
)  # fmt: skip
def test_a_length_is_shown_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_time_is_shown_in_utc_with_milliseconds_if_it_has_any() -> None:
    assert time_text(1_357_042_200_000) == "2013-01-01 12:10:00"
    assert time_text(1_357_042_200_050) == "2013-01-01 12:10:00.050"
