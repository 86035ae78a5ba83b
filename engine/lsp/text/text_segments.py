"""The parts of a model's file: header, Jinja, comments, strings, and SQL between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

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
    for found in _PARTS.finditer(text):
        if found.start() > last:
            yield Segment(TextKind.SQL, last, found.start())
        yield Segment(TextKind(found.lastgroup or TextKind.SQL), found.start(), found.end())
        last = found.end()
    if last < len(text):
        yield Segment(TextKind.SQL, last, len(text))


def segment_at(text: str, offset: int) -> Segment:
    for segment in segments(text):
        if segment.start <= offset < segment.end:
            return segment
    return Segment(TextKind.SQL, len(text), len(text))
