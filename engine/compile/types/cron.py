"""Schedules of cron: minute, hour, day of the month, month, day of the week; in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905 (read more easily than a list)
_DAYS = "sun mon tue wed thu fri sat".split()  # noqa: SIM905
# what the field is, its least and greatest number, and the names that may stand for numbers
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of the week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)
_DIGITS = 9
_SUNDAY = 7
# A 29th of February that is a given day of the week comes within 40 years.
_MOST_DAYS = 40 * 366
_PART = re.compile(r"(?P<first>\*|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>[0-9]{1,9}))?")


def fault(text: str) -> str:
    """What is wrong with a schedule; empty if nothing is."""
    if text.lower() in NAMED:
        return ""
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        return f"it has {len(parts)} fields and not {len(_FIELDS)}"
    faults = (_field(part, *field) for part, field in zip(parts, _FIELDS, strict=True))
    return next(filter(None, faults), "")


def _field(text: str, unit: str, least: int, most: int, names: dict[str, int]) -> str:
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or not _fits(match, least, most, names):
            article = "an" if unit == "hour" else "a"
            return f"'{part}' is not {article} {unit} ({least} to {most})"
    return ""


def _fits(match: re.Match[str], least: int, most: int, names: dict[str, int]) -> bool:
    step = int(match["step"] or 1)
    if match["first"] == "*":
        return match["last"] is None and step > 0
    first = _number(match["first"], names)
    last = _number(match["last"], names) if match["last"] else first
    return first is not None and last is not None and least <= first <= last <= most and step > 0


def _number(text: str, names: dict[str, int]) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else names.get(text)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a schedule; where days of the month and of the week are given, either counts (crontab(5))."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    @classmethod
    def of(cls, text: str) -> Schedule:
        parts = NAMED.get(text.lower(), text.lower()).split()
        minutes, hours, days, months, weekdays = (
            _numbers(part, least, most, names)
            for part, (_, least, most, names) in zip(parts, _FIELDS, strict=True)
        )  # fmt: skip
        week = frozenset(0 if day == _SUNDAY else day for day in weekdays)
        either = not parts[2].startswith("*") and not parts[4].startswith("*")
        return cls(text, minutes, hours, days, months, week, either)

    def after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment; None: there is none (a 31st of February)."""
        start = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = start.replace(hour=0, minute=0)
        for _ in range(_MOST_DAYS):
            if self._is_day(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        if (candidate := day.replace(hour=hour, minute=minute)) >= start:
                            return candidate
            day += timedelta(days=1)
        return None

    def _is_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % _SUNDAY in self.weekdays
        return of_month or of_week if self.either else of_month and of_week


def _numbers(text: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(text)
        first = least if match["first"] == "*" else _number(match["first"], names)
        last = _number(match["last"], names) if match["last"] else first
        if match["first"] == "*" or (match["step"] and not match["last"]):
            last = most
        if first is None or last is None:
            raise ValueError(text)
        numbers.update(range(first, last + 1, int(match["step"] or 1)))
    return frozenset(numbers)
