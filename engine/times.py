"""Lengths of time and times in texts: `10 minutes`, `2013-01-01 12:10:00`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION = re.compile(r"([0-9]{1,9})\s*(second|minute|hour|day|week)s?$")
# The units whose length never varies.
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SHOWN = ("day", "hour", "minute", "second")
_MICROS = 1_000_000


def parse_duration(text: str) -> str | None:
    """Normalise a duration ('1 hour' -> '1 hours'), or None if it is not one; the number is whole and not negative."""
    match = _DURATION.match(text.strip().lower())
    return f"{int(match[1])} {match[2]}s" if match else None


def duration_seconds(text: str) -> int:
    """The length of a duration made by `parse_duration`, in seconds."""
    number, unit = text.split()
    return int(number) * SECONDS[unit.rstrip("s")]


def duration_text(seconds: float) -> str:
    """A length of time in its largest whole unit: `90 minutes`."""
    exact = round(seconds * _MICROS)
    for unit in _SHOWN:
        count, rest = divmod(exact, SECONDS[unit] * _MICROS)
        if exact and not rest:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{exact} microseconds" if exact else "0 seconds"


def time_text(milliseconds: int) -> str:
    """A time (milliseconds since 1970) in UTC, with milliseconds if it has any: `2013-01-01 12:10:00`."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)
    return moment.isoformat(" ", "milliseconds" if milliseconds % 1000 else "seconds")
