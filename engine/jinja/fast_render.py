"""Templates that are text and expressions alone, which is most models: rendered piece by piece.

Compiling a template takes Jinja fifty times as long as rendering it. Where there is no block, comment or
whitespace control, each expression can be compiled by itself, once for all models that write it alike; a
reference with a plain name needs no compiling at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.jinja.rendered_text import Rendered
from engine.jinja.template_errors import FAILURES

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
    rest = text[cursor:]
    if _OTHER.search(rest):
        return None
    if rest:
        runs.append((length, cursor, True))
    return Rendered("".join((*out, rest)), text, file, tuple(runs), tuple(run[0] for run in runs))
