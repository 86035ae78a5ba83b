"""Where a column of a model is named: in its own file, in models that read it, in tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from engine.compile import Model
from engine.errors import Location
from engine.lsp.answers.editor_answers import analysed, name_at
from engine.lsp.answers.hovers import output_at
from engine.lsp.edits.text_changes import TextChange
from engine.lsp.opened.header_places import header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import offset_of
from engine.lsp.text.text_segments import TextKind, segments
from engine.project.model_header import location_of
from engine.project.parse_yaml import Path, Yaml, load_yaml

_AS = re.compile(r"\s+as\b", re.IGNORECASE)


def changes(opened: OpenProject, model: Model, column: str, new: str) -> list[TextChange]:
    """Return the changes that give a column of a model another name; columns of other models keep theirs."""
    found: list[TextChange] = []
    for other in opened.manifest.models:
        found += _in_model(opened, other, model, column, new)
    if opened.compiled is not None:
        for file, text in opened.compiled.project.texts.items():
            if file.endswith((".yml", ".yaml")) and "unit_tests" in text:
                found += _in_tests(opened, file, model, column, new)
    return found


def _in_model(opened: OpenProject, other: Model, model: Model, column: str, new: str) -> Iterator[TextChange]:
    text = opened.text(other.file)
    word = re.compile(rf"\b{re.escape(column)}\b", re.IGNORECASE)
    for part in segments(text):
        for found in word.finditer(text, part.start, part.end):
            if part.kind is TextKind.HEADER and _in_header(opened, other, text, found.start(), model, column):
                yield TextChange(other.file, found.start(), len(column), new)
            elif part.kind is TextKind.SQL:
                yield from _in_query(opened, other, found.start(), model, column, new)


def _in_header(opened: OpenProject, other: Model, text: str, start: int, model: Model, column: str) -> bool:
    found = header_place(text, location_of(text, start, other.file))
    said = meaning(opened, other, *found) if found else None
    if said is None or said.column is None:
        return False
    return (said.column.node or other.id) == model.id and said.column.name.lower() == column.lower()


def _in_query(
    opened: OpenProject, other: Model, start: int, model: Model, column: str, new: str
) -> Iterator[TextChange]:
    text = opened.text(other.file)
    place = location_of(text, start, other.file)
    name = name_at(opened, other.file, place)
    if name is None:
        output = output_at(opened, other.file, place, column) if other.id == model.id else None
        if output is not None and output.name.lower() == column.lower():
            yield TextChange(other.file, start, len(column), new)
        return
    end = offset_of(name.start, text) + len(name.text)
    # The last part of a qualified name is the column.
    if end != start + len(column):
        return
    bare = _is_output(opened, other, name.start, column) and not _AS.match(text, end)
    if other.id == model.id and bare:
        yield TextChange(other.file, end, 0, f" as {new}")
    elif name.origins == ((model.id, column),):
        yield TextChange(other.file, start, len(column), f"{new} as {text[start:end]}" if bare else new)


def _is_output(opened: OpenProject, other: Model, start: Any, column: str) -> bool:
    """Whether an item of the SELECT begins here that gives a column of this name."""
    edited = analysed(opened, other.file)
    pairs = zip(edited.model.columns, edited.outputs, strict=False) if edited else ()
    return any(at == start and one.name.lower() == column.lower() for one, at in pairs)


def _in_tests(opened: OpenProject, file: str, model: Model, column: str, new: str) -> Iterator[TextChange]:
    """The keys of rows in unit tests: of inputs, and of what is expected of the model."""
    text = opened.text(file)
    document, _ = load_yaml(text, file)
    for path, place in document.keys.items():
        if path[-1] == column and _table_of(document, path) == model.name:
            start = offset_of(place, text)
            yield TextChange(file, start + (text[start] in "\"'"), len(column), new)
    for path, place in document.values.items():
        # Rows as CSV: the line behind the bar has the names.
        head = text.split("\n")[place.line] if text[offset_of(place, text) :].startswith("|") else ""
        found = re.search(rf"(?<![\w.]){re.escape(column)}(?=\s*(?:,|$))", head)
        if found and _table_of(document, (*path, "")) == model.name:
            yield TextChange(file, offset_of(Location(file, place.line + 1, found.start() + 1), text), len(column), new)


def _table_of(document: Yaml, path: Path) -> str:
    """The model whose rows a key of a unit test belongs to."""
    data: Any = document.data
    test: Any = None
    for depth, part in enumerate(path[:-1]):
        data = data[part]
        if path[depth - 1 : depth] == ("unit_tests",):
            test = data
        if part == "expect":
            return str(test.get("model", "")) if isinstance(test, dict) else ""
        if part == "given":
            return _given(data, path[depth + 1])
    return ""


def _given(data: Any, part: Any) -> str:
    named = data[part].get("input", "") if isinstance(part, int) and isinstance(data[part], dict) else part
    return str(named).removeprefix("ref('").removesuffix("')")
