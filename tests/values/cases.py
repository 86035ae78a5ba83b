"""Random texts of every type, and how they are written: in JSON, in CSV, or as the name of a folder."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.values.oracle import NULL_FOLDER, RANGES, Raw, Written, of_json, of_text

ATOMIC = (
    *RANGES, "float", "double", "decimal(5,2)", "decimal(10,0)", "decimal(38,18)", "boolean", "string", "binary", "date",
    "timestamp", "timestamp_ntz",
)  # fmt: skip
NESTED = (
    "array<string>", "map<string, string>", "struct<x: string>", "array<tinyint>", "map<string, decimal(5,2)>",
    "struct<x: decimal(38,18)>", "array<struct<x: double>>",
)  # fmt: skip
WAYS = ("json", "kafka", "csv", "folder")
_SHARE = (40, 25, 25, 10)


def _each(texts: str) -> tuple[str, ...]:
    return tuple(texts.split())


_NUMBERS = _each(
    "0 -0 1 +1 -1 01 00 127 128 -128 -129 255 256 32767 32768 -32768 -32769 2147483647 2147483648 -2147483649 "
    "9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551616 12345678901234567890.10 "
    "1.0 1.10 0.1000 1.5 -1.50 1e5 1E5 1e+5 1e-5 1E400 -1e400 1e-400 0e400 1e39 3.4e38 3.5e38 1e-46 1e-45 "
    "4.9e-324 1.8e308 123.45 123.456 999.99 999.994 999.995 1000 1000.00 9999999999 99999999999 0.005 0.0050 "
    "5.000000 1e2 1e3 100e-2 1,5 1,234 1,234.50 1.234,50 12d 12f 0x10 0x1p3 1_000 1L .5 5. . e5 1e 1e+ --1 "
    "1.2.3 1e1000000000 1e-1000000000 NaN Infinity -Infinity +Infinity Inf -Inf INF -INF inf nan infinity "
    "\u0661\u0662 \uff11\uff12 16777217 0.1 0.30000000000000004"
)
_WORDS = (
    "", " ", " 1", "1 ", "\t1", "true", "false", "TRUE", "False", "tru", "yes", "no", "t", "f", "null", "NULL", "None", "a", "x y",
    "é", "日本", "😀", '"', "\\", 'a"b', "a,b", "=", "a=b", "a/b", "%", "%41", "QQ==", "QUJD", "QUI", "Q", "====", "QR==",
    NULL_FOLDER, "now", "today", "epoch", "{}", "[]", '{"a": 1.10}', "\u007f", "\u00a0", "\ufeff", "\u2028",
)  # fmt: skip
_DAYS = _each(
    "2024-05-01 2024-5-1 2024-05-1 2024-02-29 2023-02-29 2024-02-30 2024-13-01 2024-00-10 2024-01-00 "
    "2024-01-32 20240501 202405 2024 2024-05 2024-05- 1714557600 1714557600000 0001-01-01 0000-01-01 "
    "1582-10-10 9999-12-31 10000-01-01 +10000-01-01 -0001-01-01 01.05.2024 05/01/2024 2024/05/01 24-05-01 "
    "2024-05-01T 2024-121 2024-W18-3 19844 20240-05-01 1900-02-29 2000-02-29"
)
_TIMES = _each(
    "10:00:00 10:00 10 00:00 00:00:00 00:00:00.000 23:59:59.999999 10:00:00.1 10:00:00.123456789 10:00:00. "
    "24:00:00 23:59:60 10:60:00 1:2:3 10:00:00.5.5 garbage 10-00-00 T10 100000 00:00:00.001"
)
_ZONES = (
    "",
    "",
    "Z",
    "+02:00",
    "-11:30",
    "+00:00",
    " UTC",
    " +02:00",
    "+19:00",
    "+02",
    "Europe/Berlin",
    " Nowhere/City",
    "x",
)
_SCALARS = ("null", "true", "false", "{}", "[]", "[1, 2]", '{"price":1.10}', '{ "a" : [ 1e5 ,\t"x" ] }', '"\\u0041"')


@dataclass(frozen=True)
class Case:
    """A record with a value for one of the columns.

    Attributes:
        number: its id.
        way: how it comes: one of WAYS.
        column: the place of its type among `types(way)`.
    """

    number: int
    way: str
    column: int
    written: Written

    @property
    def type(self) -> str:
        return types(self.way)[self.column]

    @property
    def expected(self) -> Any:
        """Its value, or BAD."""
        if self.way in {"json", "kafka"}:
            return of_json(self.type, self.written)
        text = str(self.written)
        if (self.way == "csv" and not text) or (self.way == "folder" and text == NULL_FOLDER):
            return None
        return of_text(self.type, text, csv=self.way == "csv")

    @property
    def record(self) -> str:
        """Its line."""
        if self.way == "folder":
            return f'{{"id": {self.number}}}'
        if self.way == "csv":
            quoted = '"' + str(self.written).replace('"', '""') + '"'
            return ",".join([str(self.number), *("" if i != self.column else quoted for i in range(len(ATOMIC)))])
        return f'{{"id": {self.number}, "v{self.column}": {_json(self.written)}}}'

    @property
    def folder(self) -> str:
        """The name of its folder, encoded as Hive or as PyArrow does it."""
        text = str(self.written)
        value = quote(text, safe="") if self.number % 2 else "".join(_hive(c) for c in text)
        return f"v{self.column}={value}"


def _hive(character: str) -> str:
    return f"%{ord(character):02X}" if character < " " or character in "\"#%'*/:=?\\{[]^\x7f" else character


def _json(written: Written) -> str:
    if isinstance(written, Raw):
        return written.text
    if isinstance(written, str):
        return json.dumps(written, ensure_ascii=len(written) % 2 == 0 or bool(set(written) & _HALVES))
    if isinstance(written, list):
        return f"[{' , '.join(map(_json, written))}]"
    return "{" + ",".join(f"{json.dumps(key)} : {_json(one)}" for key, one in written.items()) + "}"


_HALVES = {chr(code) for code in range(0xD800, 0xE000)}


def types(way: str) -> tuple[str, ...]:
    """The types of the columns of a way."""
    return (*ATOMIC, *NESTED) if way in {"json", "kafka"} else ATOMIC


def schema(way: str) -> str:
    """The declared columns of a way."""
    return ", ".join(["id int", *(f"v{number} {type_}" for number, type_ in enumerate(types(way)))])


def cases(seed: int, count: int) -> Iterator[Case]:
    """So many cases; the same ones for the same seed."""
    chance = random.Random(f"values/{seed}")
    for number in range(count):
        (way,) = chance.choices(WAYS, _SHARE)
        column = chance.randrange(len(types(way)))
        type_ = types(way)[column]
        written = _written(chance, type_) if way in {"json", "kafka"} else _text(chance, type_, way)
        yield Case(number, way, column, written)


def _text(chance: random.Random, type_: str, way: str) -> str:
    while True:
        text = _any_text(chance, type_)
        # A line of CSV has no line break, and the name of a folder a most.
        if not set(text) & {"\n", "\r", "\0", *_HALVES} and (way == "csv" or len(text.encode()) < 60):
            return text


def _any_text(chance: random.Random, type_: str) -> str:
    """A text that is often a value of a type, or nearly one."""
    where = chance.random()
    if where < 0.12:
        return chance.choice(_WORDS)
    if where < 0.2:
        return "".join(chance.choice("0123456789-+.eE:T ZaQ=é\u0660") for _ in range(chance.randrange(9)))
    if type_.startswith(("date", "timestamp")):
        return _moment(chance)
    if type_ in {"string", "binary"}:
        kinds = (chance.choice(_NUMBERS), chance.choice(_WORDS), _moment(chance), _number(chance), _letters(chance))
        return chance.choice(kinds)
    if type_ == "boolean":
        return chance.choice(("true", "false", "TRUE", "False", "1", "0", "yes", "null"))
    return chance.choice(_NUMBERS) if chance.random() < 0.4 else _number(chance, whole=type_ in RANGES)


def _letters(chance: random.Random) -> str:
    pool = "abcXYZ019 \t\"\\/é日😀{}[],:=%'\u0001\n\ud800\udc00"
    return "".join(chance.choice(pool) for _ in range(chance.randrange(12)))


def _number(chance: random.Random, *, whole: bool = False) -> str:
    digits = str(
        chance.choice((chance.randrange(10), chance.randrange(150), chance.getrandbits(chance.randrange(1, 70))))
    )
    if chance.random() < 0.25:
        digits = str((1 << chance.choice([*RANGES.values()])) + chance.randrange(-2, 3))
    sign = chance.choice(("", "", "-", "+" if chance.random() < 0.2 else ""))
    if whole and chance.random() < 0.9:
        return sign + digits
    part = "." + "".join(chance.choice("0001259") for _ in range(chance.randrange(8))) if chance.random() < 0.6 else ""
    exponent = f"{chance.choice('eE')}{chance.choice(('', '+', '-'))}{chance.randrange(400)}"
    return sign + digits + part + (exponent if chance.random() < 0.2 else "")


def _moment(chance: random.Random) -> str:
    day = f"{chance.randrange(1, 2600):04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    if chance.random() < 0.4:
        day = chance.choice(_DAYS)
    if chance.random() < 0.35:
        return chance.choice(("", "", " ")) + day + chance.choice(("", "", " "))
    if chance.random() < 0.05:
        return chance.choice(_TIMES)
    time = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
    if chance.random() < 0.5:
        time += "." + str(chance.getrandbits(chance.randrange(1, 30)))
    if chance.random() < 0.4:
        time = chance.choice(_TIMES)
    return day + chance.choice("TTT  _") + time + chance.choice(_ZONES)


def _written(chance: random.Random, type_: str) -> Written:
    kind, sign, inner = type_.removesuffix(">").partition("<")
    if sign and chance.random() < 0.9:
        return _several(chance, kind, inner)
    if chance.random() < 0.1:
        return Raw(chance.choice(_SCALARS[:-1]))
    if type_ == "string" and chance.random() < 0.6:
        return Raw(chance.choice((*_NUMBERS, *_SCALARS)))
    text = _any_text(chance, type_)
    quoted = {**dict.fromkeys((*RANGES, "float", "double"), 0.15), "decimal": 0.4, "boolean": 0.15}
    if chance.random() < quoted.get(type_.partition("(")[0], 0.93):
        return text
    # What is not in quotes has no escapes: a line would end, and half a pair of surrogates is not UTF-8.
    return Raw("".join(c for c in (text.lower() if type_ == "boolean" else text) if c not in {"\n", "\r", *_HALVES}))


def _several(chance: random.Random, kind: str, inner: str) -> Written:
    if kind == "array":
        # A comma would make two items of one.
        items = [_written(chance, inner) for _ in range(chance.randrange(4))]
        return [one for one in items if not (isinstance(one, Raw) and "," in one.text and one.text not in _SCALARS)]
    if kind == "struct":
        name, _, type_ = inner.partition(": ")
        return {name: _written(chance, type_)} if chance.random() < 0.9 else {"other": Raw("1")}
    names = chance.sample(["a", "b", "é", "", "a.b"], chance.randrange(4))
    return {name: _written(chance, inner.partition(", ")[2]) for name in names}
