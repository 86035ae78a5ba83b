"""Rules for dates and times that several warehouses share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine_import.dialects.syntax.call import UNITS, Call
from engine_import.dialects.syntax.literals import quoted
from engine_import.dialects.syntax.time_formats import from_strftime, from_to_char
from engine_import.dialects.syntax.warehouse import Noted

_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": 1, "WEEK": 7}
_UNCLEAR = "the pattern of times has no counterpart in Spark: not translated"
# The number of a day in a week, as Spark has it for Sunday = 1.
FROM_SUNDAY_0: Final = "(dayofweek({0}) - 1)"


def times(count: str, factor: int) -> str:
    if factor == 1:
        return count
    return str(int(count) * factor) if count.lstrip("-").isdigit() else f"{_in_brackets(count)} * {factor}"


def negative(count: str) -> str:
    if count.isdigit():
        return f"-{count}"
    return count[1:] if count.startswith("-") and count[1:].isdigit() else f"-{_in_brackets(count)}"


def _in_brackets(text: str) -> str:
    return text if text.replace("_", "a").replace(".", "a").isalnum() else f"({text})"


def date_plus(call: Call, count: str, unit: str) -> str | None:
    """Return a date with an interval added, still a date; None for units below a day."""
    if unit in _DAYS:
        return call.fill("date_add({0}, {count})", count=times(count, _DAYS[unit]))
    if unit in _MONTHS:
        return call.fill("add_months({0}, {count})", count=times(count, _MONTHS[unit]))
    return None


def boundaries(call: Call, start: int, end: int, unit: str) -> str | None:
    """Return the number of unit bounds between two times, as most warehouses count; Spark counts whole units."""
    first, last = call[start].text, call[end].text
    if not unit:
        return None
    if unit == "DAY":
        return call.fill("datediff({b}, {a})", a=first, b=last)
    if unit in ("MILLISECOND", "MICROSECOND"):
        return call.fill("timestampdiff({u}, {a}, {b})", u=unit, a=first, b=last)
    template = "timestampdiff({u}, date_trunc('{u}', {a}), date_trunc('{u}', {b}))".replace("'{u}'", f"'{unit}'")
    return call.fill(template, u=unit, a=first, b=last)


def unit_first(call: Call) -> str | None:
    return boundaries(call, 1, 2, call[0].unit) if len(call) == 3 else None  # noqa: PLR2004 - unit, start, end


def whole_units(call: Call) -> str | None:
    """Translate DuckDB's date_sub(unit, start, end): whole units, as Spark counts."""
    unit = call[0].unit
    return call.fill("timestampdiff({u}, {1}, {2})", u=unit) if unit and len(call) == 3 else None  # noqa: PLR2004 - unit, start, end


def added(call: Call) -> str | None:
    unit = call[0].unit
    return call.fill("timestampadd({u}, {1}, {2})", u=unit) if unit and len(call) == 3 else None  # noqa: PLR2004 - unit, count, time


def formatted(function: str, *, pattern: int, strftime: bool) -> Callable[[Call], str | Noted | None]:
    """A rule that translates the pattern of a function of two arguments, a time or text and the pattern.

    Args:
        function: Spark's, of `{v}` and the pattern `{p}`.
        pattern: which argument is the pattern.
        strftime: the pattern is one of strftime; else of to_char.
    """
    reads = not function.startswith("date_format")

    def rule(call: Call) -> str | Noted | None:
        if len(call) != len(("value", "pattern")):
            return None
        written = call[pattern].value
        new = None if written is None else (from_strftime if strftime else from_to_char)(written, reads=reads)
        if new is None:
            return Noted(f"{call.name}({call.fill('{*}')})", _UNCLEAR)
        return call.fill(function, p=quoted(new), v=call[1 - pattern].text)

    return rule


def extracted(*, sunday: str, second: str = "", week: str = "") -> Callable[[Call], str | Noted | None]:
    """A rule for extract(part from x) and date_part('part', x).

    Args:
        sunday: what the day of the week becomes.
        second: what seconds become, if they are whole there.
        week: what differs in weeks.
    """
    parts = {
        "dow": sunday, "dayofweek": sunday, "weekday": sunday, "second": second, "seconds": second,
        "isodow": "(weekday({0}) + 1)", "dayofweekiso": "(weekday({0}) + 1)", "dayofweek_iso": "(weekday({0}) + 1)",
        "epoch": "(unix_micros(cast({0} as timestamp)) / 1000000)", "date": "cast({0} as date)",
        "epoch_second": "unix_seconds(cast({0} as timestamp))",
        "isoweek": "weekofyear({0})", "weekiso": "weekofyear({0})",
        "isoyear": "extract(yearofweek from {0})", "doy": "dayofyear({0})",
    }  # fmt: skip

    def rule(call: Call) -> str | Noted | None:
        nodes = call[0].nodes
        if len(call) == 1 and len(nodes) > 2 and nodes[1].word == "from":  # noqa: PLR2004 - part, FROM, time
            part, value, zone = nodes[0].word, nodes[2:], ""
            if [node.word for node in value[-4:-1]] == ["at", "time", "zone"]:
                value, zone = value[:-4], call.write(value[-1:])
            text = call.write(value)
            if zone:
                text = call.fill("from_utc_timestamp({x}, {z})", x=text, z=zone)
        elif len(call) == 2 and call[0].value is not None:  # noqa: PLR2004 - part and time
            part, text, zone = call[0].word, call[1].text, ""
        else:
            return None
        template = parts.get(part, "").replace("{0}", "{x}")
        if not template and not zone and not (week and part == "week"):
            return None
        new = call.fill(template or f"extract({UNITS.get(part, part)} from {{x}})", x=text)
        return Noted(new, week) if week and part == "week" else new

    return rule
