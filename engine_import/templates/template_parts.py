"""A dbt template taken apart into text, comments, expressions and blocks; nothing of it is rendered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

_OPEN = re.compile(r"\{[{%#]")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}")
_END_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_CLOSE = {"{{": "}}", "{%": "%}", "{#": "#}"}


class PieceKind(Enum):
    TEXT = "text"
    COMMENT = "comment"
    EXPRESSION = "expression"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Piece:
    part: PieceKind
    text: str

    @property
    def inner(self) -> str:
        if self.part is PieceKind.TEXT:
            return self.text
        return self.text[2:-2].strip("-+").strip()


def pieces(template: str) -> list[Piece]:
    """Take a template apart; what is not closed is text."""
    return list(_pieces(template))


def _pieces(template: str) -> Iterator[Piece]:
    at = 0
    while (begin := _OPEN.search(template, at)) is not None:
        if begin.start() > at:
            yield Piece(PieceKind.TEXT, template[at : begin.start()])
        if (raw := _RAW.match(template, begin.start())) is not None:
            done = _END_RAW.search(template, raw.end())
            end = done.end() if done else len(template)
            yield Piece(PieceKind.TEXT, template[begin.start() : end])
        else:
            end = _end(template, begin.end(), _CLOSE[begin[0]])
            part = {"{{": PieceKind.EXPRESSION, "{%": PieceKind.BLOCK, "{#": PieceKind.COMMENT}[begin[0]]
            yield Piece(part if end <= len(template) else PieceKind.TEXT, template[begin.start() : end])
        at = min(end, len(template))
    if at < len(template):
        yield Piece(PieceKind.TEXT, template[at:])


def _end(template: str, at: int, close: str) -> int:
    """Return where a tag ends; beyond the template if it is not closed."""
    quote = ""
    while at < len(template):
        character = template[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif template.startswith(close, at):
            return at + 2
        elif character in "'\"" and close != "#}":
            quote = character
        at += 1
    return len(template) + 1


def joined(parts: list[Piece]) -> str:
    return "".join(piece.text for piece in parts)


def in_code(template: str, change: Callable[[str], str]) -> str:
    """Change the code of a template, expressions and blocks, and leave text and comments as they are."""
    code = (PieceKind.EXPRESSION, PieceKind.BLOCK)
    return "".join(change(piece.text) if piece.part in code else piece.text for piece in pieces(template))


def called(expression: str) -> str:
    """Return the function's name if a piece of code is one call of it and nothing else; else empty."""
    found = re.match(r"([A-Za-z_][\w.]*)\s*\(", expression)
    if found is None:
        return ""
    depth, quote, at = 0, "", found.end() - 1
    while at < len(expression):
        character = expression[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return found[1] if not expression[at + 1 :].strip() else ""
        at += 1
    return ""
