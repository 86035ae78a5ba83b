"""Semantic colours of a model's header: keys, models and sources, columns, windows, values that the schema lists."""

from __future__ import annotations

import re

from engine.errors import Location
from engine.lsp.opened.header_places import HeaderWord, header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import position_of
from engine.lsp.text.text_segments import TextKind, segments

# In the order of their numbers in the protocol's answer.
LEGEND = ("property", "class", "variable", "type", "enumMember")
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def header_tokens(opened: OpenProject, file: str) -> list[int]:
    """Return the tokens of a file's header in the protocol's form: five numbers each, relative to the one before."""
    model, text = opened.model_of(file), opened.text(file)
    part = next((one for one in segments(text) if one.kind is TextKind.HEADER), None)
    if model is None or part is None:
        return []
    data: list[int] = []
    last = (0, 0)
    for number, line in enumerate(text[: part.end].split("\n"), 1):
        for found in _WORD.finditer(line):
            place = header_place(text, Location(file, number, found.start() + 1))
            said = meaning(opened, model, *place) if place else None
            if place is None or said is None:
                continue
            kind = _kind(said, is_key=place[1].is_key)
            at = position_of(Location(file, number, found.start() + 1), text)
            same_line = at.line == last[0]
            data += [at.line - last[0], at.character - (last[1] if same_line else 0), len(found[0]), kind, 0]
            last = (at.line, at.character)
    return data


def _kind(said: HeaderWord, *, is_key: bool) -> int:
    if said.key is not None:
        return LEGEND.index("property" if is_key else "enumMember")
    if said.node:
        return LEGEND.index("class")
    return LEGEND.index("type" if said.window else "variable")
