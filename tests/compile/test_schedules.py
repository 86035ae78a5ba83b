"""The times of `schedule:`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.compile.types.cron import Schedule


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 6 * * mon-fri", "2026-11-27 06:00", "2026-11-30 06:00"),
        ("*/15 * * * *", "2026-01-01 10:14", "2026-01-01 10:15"),
        ("5/20 * * * *", "2026-01-01 10:25", "2026-01-01 10:45"),
        ("@hourly", "2026-12-31 23:30", "2027-01-01 00:00"),
        ("@weekly", "2026-11-25 00:00", "2026-11-29 00:00"),
        ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"),
        # crontab(5): both kinds of days are given, so that either counts
        ("0 12 13 * fri", "2026-11-25 00:00", "2026-11-27 12:00"),
        ("0 12 13 * fri", "2026-12-12 00:00", "2026-12-13 12:00"),
        ("30 4 1,15 jan-mar *", "2026-03-15 04:30", "2027-01-01 04:30"),
        ("0 0 * * 7", "2026-11-25 00:00", "2026-11-29 00:00"),
    ],
)
def test_the_next_time(text, after, expected):
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert Schedule.of(text).after(moment) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_day_that_no_month_has_never_comes():
    assert Schedule.of("0 0 31 2 *").after(datetime(2026, 1, 1, tzinfo=UTC)) is None
