"""Whether a text is a schedule of cron: minute, hour, day of the month, month, day of the week."""

from __future__ import annotations

import re

NAMED = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")
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


def _field(text: str, what: str, least: int, most: int, names: dict[str, int]) -> str:
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or not _fits(match, least, most, names):
            article = "an" if what == "hour" else "a"
            return f"'{part}' is not {article} {what} ({least} to {most})"
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
