"""Which texts Spark reads as a date or a timestamp where a literal says so: `date '2026-01-31'`.

As DateTimeUtils.stringToDate and parseTimestampString do; what is doubtful counts as one.
"""

from __future__ import annotations

import re
from datetime import date as calendar

_DAY = re.compile(r"[+-]?(?P<year>\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?P<rest>[ T].*)?)?)?", re.DOTALL)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.\d*)?)?)?(?P<zone>\D.*)?", re.DOTALL
)
_SPECIAL = ("epoch", "now", "today", "tomorrow", "yesterday")
_LAST_YEAR, _HOURS, _SIXTY = 9999, 24, 60


def is_moment(text: str, *, date: bool) -> bool:
    """Whether Spark may read a text as a date, or else as a timestamp."""
    text = text.strip()
    if text.lower().startswith(_SPECIAL):
        return True
    match = _DAY.fullmatch(text)
    if match is None:
        # A timestamp may be a time of today.
        return not date and _is_time(text.removeprefix("T")) and ":" in text
    if not _is_day(match["year"], match["month"], match["day"]):
        return False
    rest = (match["rest"] or "")[1:].strip()
    return date or not rest or _is_time(rest)


def _is_day(year: str, month: str | None, day: str | None) -> bool:
    try:
        # The years that Python has no calendar for have the same months.
        calendar(int(year) if 0 < int(year) <= _LAST_YEAR else 2000, int(month or 1), int(day or 1))
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    return hour < _HOURS and minute < _SIXTY and second < _SIXTY
