"""Spark's types as text, in the form Spark prints them: `struct<a:int,b:array<string>>`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache

from sqlglot import exp

# Characters of a type.
MAX_LENGTH = 50_000
# Of a precision; the largest is 38.
_DIGITS = 4
# A quote that is not closed takes the rest, so that it is looked for once.
_TOKEN = re.compile(
    r"\s+|(`(?:[^`]|``)++(?:`|\Z)|\w+|'(?:[^'\\]|\\.)*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|[<>(),:])", re.DOTALL
)
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`:(.*)", re.DOTALL)
_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp", "char": "string",
    "varchar": "string", "character": "string", "null": "void",
}  # fmt: skip
_PLAIN = {
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp",
    "timestamp_ntz", "string", "binary", "void", "variant",
}  # fmt: skip
_SMALL = re.compile(r"(?<![\w`])(?:tinyint|smallint)(?=[,>]|$)(?!`)")
_UNITS = ("year", "month", "day", "hour", "minute", "second")
# sqlglot's names of types where they are not Spark's.
_OF_SQLGLOT = {
    "TEXT": "string",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}
_PLAIN_NODES = {name.upper(): name for name in _PLAIN} | _OF_SQLGLOT


@lru_cache(maxsize=8192)
def normal(text: str) -> str | None:
    """A type as Spark prints it; None if it cannot be read, or is longer than a type anybody writes."""
    if len(text) > MAX_LENGTH:
        return None
    words = deque(match[1] for match in _TOKEN.finditer(text) if match[1])
    try:
        type_ = _type(words)
    except (IndexError, ValueError):
        return None
    return None if words else type_


def of_node(node: exp.Expr) -> str | None:
    if node.args.get("expressions") or not isinstance(node.this, exp.DType):
        return normal(node.sql(dialect="spark"))
    name = node.this.value
    return _PLAIN_NODES.get(name) or normal(name)


def _type(words: deque[str]) -> str:
    word = words.popleft().lower()
    word = _ALIASES.get(word, word)
    if word == "string" or word in _PLAIN:
        if word == "string":
            _numbers(words)
        if words and words[0].lower() == "collate":
            raise ValueError(word)
        return word
    if word == "decimal":
        precision, scale = [*_numbers(words), "0"][:2] if words and words[0] == "(" else ("10", "0")
        return f"decimal({precision},{scale})"
    if word == "time":
        return f"time({(*_numbers(words), '6')[0]})"
    if word == "interval":
        return _interval(words)
    if word not in {"array", "map", "struct"}:
        raise ValueError(word)
    return f"{word}<{','.join(_inner_types(words, _field if word == 'struct' else _type))}>"


def _inner_types(words: deque[str], read: Callable[[deque[str]], str]) -> list[str]:
    parts: list[str] = []
    if words.popleft() != "<":
        raise ValueError("<")
    while words[0] != ">":
        if parts and words.popleft() != ",":
            raise ValueError(",")
        parts.append(read(words))
    words.popleft()
    return parts


def _field(words: deque[str]) -> str:
    name = words.popleft()
    bare_name = name[1:-1] if name.startswith("`") else name
    if words[0] == ":":
        words.popleft()
    type_ = _type(words)
    if words[0].lower() == "not":
        words.popleft()
        words.popleft()
    if words[0].lower() == "comment":
        words.popleft()
        words.popleft()
    return f"{bare_name if _WORD.fullmatch(bare_name) else name}:{type_}"


def _numbers(words: deque[str]) -> list[str]:
    if not words or words[0] != "(":
        return []
    inside = []
    while (word := words.popleft()) != ")":
        inside.append(word)
    if any(len(word) > _DIGITS for word in inside):
        raise ValueError(inside)
    return [word for word in inside if word.isdigit()]


def _interval(words: deque[str]) -> str:
    units = []
    while words and words[0].lower() in {*_UNITS, "to"}:
        units.append(words.popleft().lower())
    return " ".join(["interval", *units])


def is_opaque(type_: str) -> bool:
    return type_ in _PLAIN or type_.startswith(("decimal(", "interval ", "time("))


@lru_cache(maxsize=4096)
def type_in_table(type_: str | None) -> str | None:
    """The type after a way through an Iceberg table, which has no small integers."""
    return None if type_ is None else _SMALL.sub("int", type_)


@lru_cache(maxsize=8192)
def fields(type_: str | None) -> tuple[tuple[str, str], ...] | None:
    """Name and type of the fields of a struct; None if it is none."""
    if type_ is None or not type_.startswith("struct<"):
        return None
    pairs = []
    for part in _split(type_[7:-1]):
        if match := _QUOTED.fullmatch(part):
            pairs.append((match[1].replace("``", "`"), match[2]))
        else:
            name, _, inner = part.partition(":")
            pairs.append((name, inner))
    return tuple(pairs)


def members(type_: str | None) -> tuple[tuple[str, str], ...]:
    """Name and type of the fields named behind a dot: of a struct, of an array's elements, of a map's values."""
    inner = type_
    while inner is not None and not inner.startswith("struct<"):
        inner = element(inner) or entry(inner)[1]
    return fields(inner) or ()


def field_type(type_: str | None, path: Iterable[str]) -> str | None:
    """The type of a field of a field (`place`, `lat`); None if there is none, whatever the letter case."""
    for name in path:
        type_ = {field.lower(): kind for field, kind in members(type_)}.get(name.lower())
    return type_


def struct(members: list[tuple[str, str | None]]) -> str | None:
    """The struct of these fields; None if the type of one is not known."""
    parts = []
    for name, type_ in members:
        if type_ is None:
            return None
        parts.append(f"{quote_name(name)}:{type_}")
    return f"struct<{','.join(parts)}>"


@lru_cache(maxsize=1024)
def nameless(type_: str | None) -> str | None:
    """A type without the names of its fields, by which Spark's DataType.equalsStructurally compares."""
    members = fields(type_)
    if members is not None:
        return f"struct<{','.join(nameless(inner) or '' for _, inner in members)}>"
    if inner := element(type_):
        return f"array<{nameless(inner)}>"
    key, value = entry(type_)
    return f"map<{nameless(key)},{nameless(value)}>" if key else type_


def quote_name(name: str) -> str:
    return name if _WORD.fullmatch(name) else f"`{name.replace('`', '``')}`"


def array(type_: str | None) -> str | None:
    return None if type_ is None else f"array<{type_}>"


def map_of(key: str | None, value: str | None) -> str | None:
    return None if key is None or value is None else f"map<{key},{value}>"


def element(type_: str | None) -> str | None:
    return type_[6:-1] if type_ is not None and type_.startswith("array<") else None


@lru_cache(maxsize=1024)
def entry(type_: str | None) -> tuple[str | None, str | None]:
    if type_ is None or not type_.startswith("map<"):
        return None, None
    key, value = _split(type_[4:-1])
    return key, value


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = begin = 0
    quoted = False
    for index, character in enumerate(text):
        if character == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[begin:index])
            begin = index + 1
    return [*parts, text[begin:]] if text else []
