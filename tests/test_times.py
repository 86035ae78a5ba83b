"""Lengths of time and times, as texts."""

from __future__ import annotations

import pytest

from engine.times import duration_seconds, duration_text, parse_duration, time_millis, time_text


@pytest.mark.parametrize(
    ("text", "normal", "seconds"),
    [
        ("1 hour", "1 hours", 3600),
        (" 90Minutes ", "90 minutes", 5400),
        ("2 weeks", "2 weeks", 1209600),
        ("500 milliseconds", "500 milliseconds", 0.5),
        ("1 Millisecond", "1 milliseconds", 0.001),
    ],
)
def test_durations_are_read_in_units_of_one_length(text: str, normal: str, seconds: float) -> None:
    assert parse_duration(text) == normal
    assert duration_seconds(normal) == seconds


@pytest.mark.parametrize("text", ["1 month", "1.5 hours", "-1 day", "hour", "1 hour 5 minutes", ""])
def test_what_is_not_a_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (1, "1 second"), (5400, "90 minutes"), (3600, "1 hour"), (172800, "2 days"),
     (604800, "7 days"), (0.5, "500 milliseconds"), (0.0005, "500 microseconds"), (-3600, "-1 hours")],
)  # fmt: skip
def test_a_length_is_shown_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_time_is_shown_in_utc_with_milliseconds_if_it_has_any() -> None:
    assert time_text(1_357_042_200_000) == "2013-01-01 12:10:00"
    assert time_text(1_357_042_200_050) == "2013-01-01 12:10:00.050"


@pytest.mark.parametrize(
    ("text", "millis", "shown"),
    [
        ("2013-01-01T12:10:00.000Z", 1357042200000, "2013-01-01 12:10:00"),
        ("1970-01-01T00:00:00.000Z", 0, "1970-01-01 00:00:00"),
        ("1969-12-31T23:59:59.999Z", -1, "1969-12-31 23:59:59.999"),
        ("2026-11-27T19:00:04+01:00", 1795802404000, "2026-11-27 18:00:04"),
        ("9999-12-31T23:59:59Z", 253402300799000, "9999-12-31 23:59:59"),
        ("+10000-01-01T00:00:00Z", 253402300800000, "+10000-01-01 00:00:00"),
        # 2024-05-18 in milliseconds, read as seconds.
        ("+56347-11-17T02:40:00Z", 1716000000000 * 1000, "+56347-11-17 02:40:00"),
        ("-0043-03-15T12:00:00Z", -63517780800000, "-0043-03-15 12:00:00"),
    ],
)
def test_times_of_any_year(text: str, millis: int, shown: str) -> None:
    assert time_millis(text) == millis
    assert time_text(millis) == shown


@pytest.mark.parametrize("text", ["", "now", "2013-13-01T00:00:00Z", "12:10:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$|now|month|12:10"):
        time_millis(text)
