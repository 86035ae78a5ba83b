"""Rendered text, and the way from it back to the template.

Literal text of a template is marked with its offset before rendering, and the marks are taken out of the result again.
Text inside blocks that capture output (macro, call, filter, block set) is not marked, so that comparing or measuring it
gives what the author expects; it counts as written where the capture is used.

Compiling a template takes Jinja fifty times as long as rendering it. Where there is no block, comment or whitespace
control, as in most models, each expression is compiled by itself, once for all models that write it alike; a reference
with a plain name needs no compiling at all.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import jinja2

from engine.errors import Location
from engine.jinja.template_errors import FAILURES
from engine.jinja.template_tokens import tokens

_MARK = re.compile("\x01([0-9]{1,9})\x02")
_NAME = re.compile(r"`[^`]*`(\s+as\s+`[^`]*`)?|[\w.]*", re.IGNORECASE)
_SHOWN = 120
_CAPTURES = {
    "macro": "endmacro", "call": "endcall", "filter": "endfilter", "set": "endset", "block": "endblock",
}  # fmt: skip
_BEGINS = {"block_begin": "{%", "variable_begin": "{{", "comment_begin": "{#", "raw_begin": ""}


@dataclass(frozen=True, slots=True)
class Rendered:
    """Rendered text with the way back to the template.

    `runs`: (offset in `text`, offset in `template`, whether what follows is literal), ascending.
    """

    text: str
    template: str
    file: str
    runs: tuple[tuple[int, int, bool], ...] = ((0, 0, True),)
    starts: tuple[int, ...] = field(default=(0,))

    def location(self, offset: int) -> Location:
        return Location(self.file, *self.line_and_column(offset))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        index = max(bisect.bisect_right(self.starts, offset) - 1, 0)
        begin, origin, literal = self.runs[index]
        at = min(origin + (offset - begin if literal else 0), len(self.template))
        line = self.template.count("\n", 0, at) + 1
        return line, at - self.template.rfind("\n", 0, at)

    def is_literal(self, offset: int) -> bool:
        return self.runs[max(bisect.bisect_right(self.starts, offset) - 1, 0)][2]

    def printed(self, offset: int) -> str:
        """What the expression gave that the character at an offset of the text comes from, on one line, shortened.

        Empty for literal text, and where it is a name alone.
        """
        index = max(bisect.bisect_right(self.starts, offset) - 1, 0)
        begin, origin, literal = self.runs[index]
        if literal or not self.template.startswith("{{", origin):
            return ""
        end = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
        text = " ".join(self.text[begin:end].split())
        return "" if _NAME.fullmatch(text) else f"{text[:_SHOWN]}..." if len(text) > _SHOWN else text


def mark(env: jinja2.Environment, text: str, file: str) -> tuple[str, list[tuple[int, bool]]]:
    """The template with a mark before each piece of output, and each mark's (offset, literal).

    Whitespace control is applied here already, since a mark beside a tag would hide the blanks from it;
    line ends that it removes are kept inside the tags, so that Jinja's own line numbers stay right.
    """
    out: list[str] = []
    origins: list[tuple[int, bool]] = []
    captures = _Captures()
    tag: list[str] = []

    def place(offset: int, literal: bool) -> None:
        if not captures.depth:
            origins.append((offset, literal))
            out.append(f"\x01{len(origins) - 1}\x02")

    for at, line_ends, kind, value in tokens(env, text, file):
        if kind == "data":
            place(at, True)
            out.append(value)
        elif kind in _BEGINS:
            if kind in {"variable_begin", "block_begin"}:
                place(at, False)
            tag = []
            lines = "\n" * (line_ends + value.count("\n"))
            out.append(f"{_BEGINS[kind]}{lines}" if _BEGINS[kind] else f"{{% raw{lines}%}}")
        elif kind in {"block_end", "variable_end", "comment_end"}:
            if kind == "block_end":
                captures.pass_tag(tag)
            out.append("\n" * (line_ends + value.count("\n")) + value.strip().strip("-+"))
        elif kind == "raw_end":
            out.append("{% endraw" + "\n" * (line_ends + value.count("\n")) + "%}")
        else:
            tag.append(value)
            out.append("\n" * line_ends + value)
    return "".join(out), origins


class _Captures:
    """Counts the open blocks whose output goes into a value (macro, call, block set, recursive for)."""

    def __init__(self) -> None:
        self.depth = 0
        self._loops: list[int] = []

    def pass_tag(self, tag: list[str]) -> None:
        words = [value for value in tag if not value.isspace()]
        first = words[0] if words else ""
        if first == "for":
            self._loops.append(int("recursive" in words))
            self.depth += self._loops[-1]
        elif first == "endfor":
            self.depth -= self._loops.pop() if self._loops else 0
        elif first == "set":
            self.depth += not _assigns(words)
        elif first in _CAPTURES:
            self.depth += 1
        elif first in _CAPTURES.values():
            self.depth -= 1


def _assigns(words: list[str]) -> bool:
    """Whether a `set` has its value in the tag: an = outside brackets."""
    depth = 0
    for word in words:
        depth += (word in {"(", "[", "{"}) - (word in {")", "]", "}"})
        if word == "=" and depth == 0:
            return True
    return False


def unmark(output: str, origins: list[tuple[int, bool]], template: str, file: str) -> Rendered:
    pieces: list[str] = []
    runs: list[tuple[int, int, bool]] = []
    length = 0
    for index, piece in enumerate(_MARK.split(output)):
        if index % 2 and int(piece) < len(origins):
            runs.append((length, *origins[int(piece)]))
        elif index % 2 == 0:
            pieces.append(piece)
            length += len(piece)
    runs = runs or [(0, 0, False)]
    return Rendered("".join(pieces), template, file, tuple(runs), tuple(run[0] for run in runs))


_PIECE = re.compile(r"""\{\{(?![-+])((?:[^{}'"\\]|'[^'{}\\]*'|"[^"{}\\]*")*)(?<![-+])\}\}""")
_OTHER = re.compile(r"\{[{%#]")
# config() receives each call with its place, and these say something: they are not to be tried twice.
_ONCE = re.compile(r"\b(config|log|print|exceptions)\b")


def spliced(text: str, file: str, value: Callable[[str], str]) -> Rendered | None:
    """The template rendered; None if it has more than expressions, or one fails: then Jinja has the word."""
    if _ONCE.search(text):
        return None
    out: list[str] = []
    runs: list[tuple[int, int, bool]] = []
    length = cursor = 0
    try:
        for piece in _PIECE.finditer(text):
            literal = text[cursor : piece.start()]
            if _OTHER.search(literal):
                return None
            printed = value(piece[1])
            if literal:
                runs.append((length, cursor, True))
            runs.append((length + len(literal), piece.start(), False))
            out += (literal, printed)
            length += len(literal) + len(printed)
            cursor = piece.end()
    except FAILURES:
        return None
    last_literal = text[cursor:]
    if _OTHER.search(last_literal):
        return None
    if last_literal:
        runs.append((length, cursor, True))
    return Rendered("".join((*out, last_literal)), text, file, tuple(runs), tuple(run[0] for run in runs))
