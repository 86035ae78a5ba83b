"""Lengths of time and times in texts: `10 minutes`, `2013-01-01 12:10:00`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION = re.compile(r"([0-9]{1,9})\s*(millisecond|second|minute|hour|day|week)s?$")
# The units whose length never varies.
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SHOWN = ("day", "hour", "minute", "second")
_MICROS = 1_000_000
# The calendar repeats after 400 years; a time that was given in the wrong unit is beyond Python's last one.
CYCLE_YEARS, CYCLE_DAYS, LAST_YEAR = 400, 146_097, 9999
_CYCLE_MILLIS = CYCLE_DAYS * SECONDS["day"] * 1000
_TIME = re.compile(r"([+-]?[0-9]{4,6})(-.+)")


def parse_duration(text: str) -> str | None:
    """Normalise a duration ('1 hour' -> '1 hours'); None if it is not one. The number is whole and not negative."""
    match = _DURATION.match(text.strip().lower())
    return f"{int(match[1])} {match[2]}s" if match else None


def duration_seconds(text: str) -> float:
    """Return the seconds of a duration from `parse_duration`; whole but for milliseconds."""
    number, unit = text.split()
    if unit == "milliseconds":
        return int(number) / 1000
    return int(number) * SECONDS[unit.rstrip("s")]


def in_words(duration: str) -> str:
    """A duration of `parse_duration` as one writes it: `1 hour`, not `1 hours`."""
    return duration.removesuffix("s") if duration.startswith("1 ") else duration


def duration_text(seconds: float) -> str:
    exact = round(seconds * _MICROS)
    for unit in _SHOWN:
        count, rest = divmod(exact, SECONDS[unit] * _MICROS)
        if exact and not rest:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    if exact and not exact % 1000:
        return f"{exact // 1000} millisecond{'' if exact == 1000 else 's'}"  # noqa: PLR2004 - one
    return f"{exact} microseconds" if exact else "0 seconds"


def time_text(milliseconds: int) -> str:
    """Return milliseconds since 1970 as UTC text, with milliseconds if it has any: `2013-01-01 12:10:00`."""
    cycles, rest = divmod(milliseconds, _CYCLE_MILLIS)
    moment = datetime.fromtimestamp(rest / 1000, UTC).replace(tzinfo=None)
    text = moment.isoformat(" ", "milliseconds" if milliseconds % 1000 else "seconds")
    return f"{year_text(moment.year + cycles * CYCLE_YEARS)}{text[4:]}"


def year_text(year: int) -> str:
    """Return a year as Spark and Java print it: `2013`, `+52000`, `-0005`."""
    sign = "-" if year < 0 else "+" if year > LAST_YEAR else ""
    return f"{sign}{abs(year):04}"


def time_millis(text: str) -> int:
    """Parse a time as Java prints it, in UTC unless it has a zone; raise ValueError if it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    cycles, year = divmod(int(match[1]) - 2000, CYCLE_YEARS)
    moment = datetime.fromisoformat(f"{2000 + year}{match[2]}")
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000) + cycles * _CYCLE_MILLIS
