"""What a text is worth as a value of a type, by docs/files.md: computed here in Python, without any of the engine's code."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class Bad:
    """A record that is bad."""

    def __repr__(self) -> str:
        return "BAD"


BAD = Bad()
RANGES = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"[+-]?\d+")
_FLOATING = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
# Spark's `positiveInf` and `negativeInf` of CSV.
_OF_CSV = {"Inf": math.inf, "-Inf": -math.inf}
# What stands in JSON without quotes, though it is no number: of Jackson's ALLOW_NON_NUMERIC_NUMBERS.
_WORDS = {**_SPECIAL, "+INF": math.inf, "-INF": -math.inf}
_DAY = r"\s*(?P<sign>[+-]?)(?P<year>\d{4,6})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_DATE = re.compile(_DAY + r"([T ]00:00(:00(\.0*)?)?Z?)?\s*", re.ASCII)
_ZONE = r"(?P<zone>\s*(Z|UTC|[+-]\d{2}(:\d{2})?|[A-Z][a-z]+/[A-Z][A-Za-z_]+))?"
_TIME = re.compile(
    _DAY + r"([T ](?P<hour>\d{1,2})(:(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<part>\d*))?" + _ZONE + r")?)?)?\s*",
    re.ASCII,
)
_SECONDS = range(-62_135_596_800, 253_402_300_800)
_MOST_DIGITS = 1000


@dataclass(frozen=True)
class Raw:
    """What stands in JSON without quotes."""

    text: str


def of_text(type_: str, text: str, *, csv: bool = False) -> Any:
    """The value of a text without quotes around it: of a field of CSV, or in the name of a folder."""
    if csv and type_ in {"float", "double"} and text in _OF_CSV:
        return _OF_CSV[text]
    if type_ in RANGES:
        return _whole(type_, text)
    return _PLAIN[type_.partition("(")[0]](type_, text)


Written = Raw | str | list["Written"] | dict[str, "Written"]


def of_json(type_: str, written: Written) -> Any:
    """The value of what stands in JSON: a string, or something else, or several of them."""
    if isinstance(written, Raw):
        return _raw(type_, written.text.strip(" \t\r\n"))
    return _string(type_, written) if isinstance(written, str) else _nested(type_, written)


def _string(type_: str, text: str) -> Any:
    if type_.startswith(("decimal", "date", "timestamp")):
        return of_text(type_, text)
    return {
        "string": BAD if re.search("[\ud800-\udfff]", text) else text,
        "binary": _base64(text) if type_ == "binary" else BAD,
        "float": _WORDS.get(text, BAD),
        "double": _WORDS.get(text, BAD),
    }.get(type_, BAD)


def _base64(text: str) -> Any:
    # Jackson skips blanks between groups of four characters, not within one.
    groups = re.sub(r"[\x00-\x20]+((?:[^\x00-\x20]{4})|$)", r"\1", text)
    try:
        return base64.b64decode(groups, validate=True).hex()
    except ValueError:
        return BAD


def _nested(type_: str, written: list[Written] | dict[str, Written]) -> Any:
    kind, _, inner = type_.removesuffix(">").partition("<")
    if isinstance(written, list):
        values = [of_json(inner, one) for one in written] if kind == "array" else [BAD]
        return BAD if BAD in values else values
    if kind == "struct":
        name, _, type_ = inner.partition(": ")
        value = of_json(type_, written[name]) if name in written else None
        return BAD if value is BAD else {name: value}
    if kind == "map":
        entries = {key: of_json(inner.partition(", ")[2], one) for key, one in written.items()}
        return BAD if BAD in entries.values() or any(of_json("string", key) is BAD for key in entries) else entries
    return BAD


# What each kind of JSON's is read as without quotes.
_READERS: dict[str, tuple[str, ...]] = {
    "int": (*RANGES, "float", "double", "decimal", "timestamp"),
    "float": ("float", "double", "decimal"),
    "bool": ("boolean",),
    "word": ("float", "double"),
}


def _raw(type_: str, text: str) -> Any:
    kind = _kind(text)
    if kind is None or kind == "null":
        return BAD if kind is None else None
    if kind == "str":
        return _string(type_, json.loads(text))
    if type_ == "string":
        return text
    return _nested(type_, _members(text)) if kind in {"list", "dict"} else _scalar(type_, kind, text)


def _scalar(type_: str, kind: str, text: str) -> Any:
    if type_.partition("(")[0] not in _READERS[kind]:
        return BAD
    if kind == "word":
        return _WORDS[text]
    if type_ == "timestamp":
        return int(text) * 1_000_000 if int(text) in _SECONDS else BAD
    return of_text(type_, text)


def _kind(text: str) -> str | None:
    """What stands there; None: nothing that JSON has."""
    if text in _WORDS:
        return "word"
    try:
        found = json.loads(text, parse_int=lambda _: 0, parse_float=lambda _: 0.0, parse_constant=_no_constant)
    except ValueError:
        return None
    if found is None:
        return "null"
    return type(found).__name__


def _members(text: str) -> Any:
    """What is in an array or object: each member as it is written."""
    inner = re.fullmatch(r"(?s)[\[{](.*)[\]}]", text)
    found = json.loads(text)
    if not found or inner is None:
        return found
    if isinstance(found, list):
        return [Raw(one.strip()) for one in inner[1].split(",")]
    (name,) = found
    return {name: Raw(inner[1].partition(":")[2].strip())}


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _whole(type_: str, text: str) -> Any:
    value = int(text) if _WHOLE.fullmatch(text) else None
    most = 1 << RANGES[type_]
    return value if value is not None and -most <= value < most else BAD


def _floating(type_: str, text: str) -> Any:
    if not _FLOATING.fullmatch(text):
        return _SPECIAL.get(text, BAD)
    value = float(text) if type_ == "double" else nearest(text)
    is_zero = not re.search("[1-9]", re.split("[eE]", text)[0])
    return BAD if math.isinf(value) or (value == 0 and not is_zero) else value


def nearest(text: str) -> float:
    """The float that is nearest to a number, rounded once."""
    twice = float(text)
    try:
        near = struct.unpack("f", struct.pack("f", twice))[0]
    except OverflowError:
        near = math.inf if twice > 0 else -math.inf
    if math.isinf(near) or math.isinf(twice) or near == 0:
        return near
    bits = struct.unpack("i", struct.pack("f", near))[0]
    exact = Fraction(Decimal(text))
    around = [struct.unpack("f", struct.pack("i", b))[0] for b in (bits - 1, bits, bits + 1)]
    finite = [one for one in around if math.isfinite(one)]
    return min(finite, key=lambda one: (abs(Fraction(one) - exact), struct.unpack("i", struct.pack("f", one))[0] & 1))


def _decimal(type_: str, text: str) -> Any:
    precision, scale = map(int, re.findall(r"\d+", type_))
    if not _DECIMAL.fullmatch(text) or len(text) > _MOST_DIGITS:
        return BAD
    sign, digits, exponent = Decimal(text).as_tuple()
    if not any(digits):
        return Decimal(0)
    kept = "".join(map(str, digits)).rstrip("0")
    if not isinstance(exponent, int):
        return BAD
    exponent += len(digits) - len(kept)
    if -exponent > scale or len(kept) + exponent > precision - scale:
        return BAD
    return Decimal((sign, tuple(map(int, kept)), exponent))


def _boolean(_: str, text: str) -> Any:
    return {"true": True, "false": False}.get(text.lower(), BAD)


def days(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of a day of the Gregorian calendar, also where there was none; None: there is no such day."""
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    lengths = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if not 1 <= month <= len(lengths) or not 1 <= day <= lengths[month - 1]:
        return None
    before = year - 1
    return (before * 365 + before // 4 - before // 100 + before // 400 + sum(lengths[: month - 1]) + day - 1) - 719_162


def _day(found: re.Match[str]) -> int | None:
    if len(found["year"]) > len("2024") and not found["sign"]:
        return None
    year = int(found["year"]) * (-1 if found["sign"] == "-" else 1)
    return days(year, int(found["month"]), int(found["day"]))


def _date(_: str, text: str) -> Any:
    found = _DATE.fullmatch(text)
    day = _day(found) if found else None
    return BAD if day is None else day


def _timestamp(type_: str, text: str) -> Any:
    found = _TIME.fullmatch(text)
    day = _day(found) if found else None
    if found is None or day is None:
        return BAD
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour >= 24 or minute >= 60 or second >= 60:
        return BAD
    micros = ((day * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000
    micros += int((found["part"] or "").ljust(6, "0")[:6])
    zone = (found["zone"] or "").strip()
    if not zone:
        return micros
    if type_ == "timestamp_ntz":
        return BAD
    offset = _offset(zone, micros)
    return BAD if offset is None else micros - offset


def _offset(zone: str, local: int) -> int | None:
    """Microseconds between a local time and UTC; None: there is no such zone."""
    if zone in {"Z", "UTC"}:
        return 0
    if zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[4:6] or 0)
        if minutes >= 60 or hours * 60 + minutes > 18 * 60:
            return None
        return (hours * 60 + minutes) * 60_000_000 * (-1 if zone[0] == "-" else 1)
    try:
        there = datetime(1970, 1, 1, tzinfo=ZoneInfo(zone)).replace(tzinfo=None) + timedelta(
            microseconds=_within(local)
        )
    except (ZoneInfoNotFoundError, OverflowError):
        return None
    offset = there.replace(tzinfo=ZoneInfo(zone)).utcoffset() or timedelta()
    return round(offset / timedelta(microseconds=1))


def _within(local: int) -> int:
    """The same moment of a year that Python has: the calendar repeats after 400 years."""
    cycle = 146_097 * 86_400_000_000
    first, last = _SECONDS.start * 1_000_000, _SECONDS.stop * 1_000_000
    return local + cycle if local < first else local - cycle if local >= last else local


_PLAIN: dict[str, Callable[[str, str], Any]] = {
    "float": _floating,
    "double": _floating,
    "decimal": _decimal,
    "boolean": _boolean,
    "string": lambda _, text: text,
    "binary": lambda _, text: text.encode().hex(),
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}
