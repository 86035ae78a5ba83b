"""Places of the compiler (line and column from 1, in characters) and of the protocol (from 0, in UTF-16 units).

The parts of a model's file: header, Jinja, comments, strings, and SQL between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lsprotocol import types

from engine.errors import Location

_WORD = re.compile(r"[\w.]*")


def position_of(location: Location, text: str) -> types.Position:
    lines = text.split("\n")
    line = min(max(location.line - 1, 0), len(lines) - 1)
    before = lines[line][: max(location.column - 1, 0)]
    return types.Position(line, len(before.encode("utf-16-le", "surrogatepass")) // 2)


def location_of_position(position: types.Position, text: str, file: str) -> Location:
    lines = text.split("\n")
    line = min(position.line, len(lines) - 1)
    units = lines[line].encode("utf-16-le", "surrogatepass")[: position.character * 2]
    return Location(file, line + 1, len(units.decode("utf-16-le", "ignore")) + 1)


def range_at(location: Location, text: str, length: int | None = None) -> types.Range:
    """Return the range of so many characters from a place; without a length, of the word there."""
    start = position_of(location, text)
    line = text.split("\n")[start.line]
    at = max(location.column - 1, 0)
    word = _WORD.match(line, min(at, len(line)))
    size = length if length is not None else max(len(word[0]) if word else 0, 1)
    return types.Range(start, position_of(Location(location.file, start.line + 1, at + size + 1), text))


def offset_of(location: Location, text: str) -> int:
    before = text.split("\n")[: location.line - 1]
    return sum(len(line) + 1 for line in before) + location.column - 1


def range_word(line: str, at: int) -> str:
    begin = end = min(at, len(line))
    while begin and (line[begin - 1].isalnum() or line[begin - 1] in "_."):
        begin -= 1
    while end < len(line) and (line[end].isalnum() or line[end] in "_."):
        end += 1
    return line[begin:end]


def path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


# Each part ends with the text at the latest, so that a text is read once.
_PARTS = re.compile(
    r"(?P<header>\A\s*/\*---(?!-).*?(?:---\*/|\Z))"
    r"|(?P<comment>\{\#.*?(?:\#\}|\Z)|--(?:\\\n|[^\n])*+|/\*.*?(?:\*/|\Z))"
    r"|(?P<jinja>\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z))"
    r"|(?P<string>'[^'\n]*(?:'|$)|\"[^\"\n]*(?:\"|$))",
    re.DOTALL | re.MULTILINE,
)


class TextKind(StrEnum):
    HEADER = "header"
    COMMENT = "comment"
    JINJA = "jinja"
    STRING = "string"
    SQL = "sql"


@dataclass(frozen=True, slots=True)
class Segment:
    kind: TextKind
    start: int
    end: int


def segments(text: str) -> Iterator[Segment]:
    """Return all parts of a model's file, without gaps."""
    last = 0
    for match in _PARTS.finditer(text):
        if match.start() > last:
            yield Segment(TextKind.SQL, last, match.start())
        yield Segment(TextKind(match.lastgroup or TextKind.SQL), match.start(), match.end())
        last = match.end()
    if last < len(text):
        yield Segment(TextKind.SQL, last, len(text))


def segment_at(text: str, offset: int) -> Segment:
    for segment in segments(text):
        if segment.start <= offset < segment.end:
            return segment
    return Segment(TextKind.SQL, len(text), len(text))
