"""Places in a template's text, found through Jinja's own tokens."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

import jinja2

from engine.errors import Location

TAG = re.compile(r"\{[{%#]")
_SILENT = {"data", "comment", "raw_begin"}


def tokens(env: jinja2.Environment, text: str, file: str) -> Iterator[tuple[int, int, str, str]]:
    """Jinja's tokens: offset, number of line ends that whitespace control took before it, kind, text."""
    cursor = 0
    for _, kind, value in env.lexer.tokeniter(text, file, file):
        at = text.index(value, cursor)
        yield at, text.count("\n", cursor, at), kind, value
        cursor = at + len(value)


def readable_tokens(env: jinja2.Environment, text: str, file: str) -> Iterator[tuple[int, int, str, str]]:
    with contextlib.suppress(jinja2.TemplateSyntaxError):
        yield from tokens(env, text, file)


def place(text: str, offset: int, file: str) -> Location:
    return Location(file, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def line_start(text: str, line: int) -> int:
    return sum(len(part) + 1 for part in text.split("\n")[: line - 1])


def find(env: jinja2.Environment, file: str, text: str, start: int, words: Iterable[str]) -> int:
    """The offset of the best of some words inside a tag, from an offset on; else of the line's first tag."""
    first: dict[str, int] = {}
    for at, _, kind, value in readable_tokens(env, text, file):
        if at >= start and kind not in _SILENT:
            first.setdefault(value, at)
            first.setdefault(value.strip("'\""), at)
    for word in words:
        if word in first:
            return first[word]
    tag = TAG.search(text, start)
    end = text.find("\n", start)
    return tag.start() if tag and (end < 0 or tag.start() < end) else start
