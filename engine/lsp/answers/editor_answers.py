"""Answers to an editor's requests other than diagnostics, from the last compilation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lsprotocol import types

from engine.compile import Model, Source
from engine.compile.pipeline.edited_model import EditedModel, NamePlace
from engine.errors import Location
from engine.lsp.opened.header_places import header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, location_of_position, offset_of, range_at, range_word, segment_at
from engine.project.model_header import location_of
from engine.times import duration_seconds, duration_text, parse_duration


def state_text(model: Model) -> str:
    """Return how long a model keeps state, in event time: `stateful: keeps 90 minutes`; empty: it keeps none."""
    if not model.stateful:
        return ""
    streams = [item for item in model.inputs if item.stream]
    marks = [item.watermark for item in streams if item.watermark]
    if len(streams) > 1 or not marks:
        return "stateful" if marks else "stateful: nothing expires, as there is no watermark"
    delay = duration_seconds(marks[0].delay)
    sizes = [_seconds(window.size) for window in model.windows.values()]
    if any(window.varies or size is None for window, size in zip(model.windows.values(), sizes, strict=True)):
        return "stateful"
    # A row of a session keeps it for its gap, a row of a window until its end, a row to compare with for the delay.
    longest = max((size or 0 for size in sizes), default=0)
    if not sizes and not streams[0].dedup:
        return "stateful"
    return f"stateful: keeps {duration_text(longest + delay)}"


def _seconds(text: str) -> float | None:
    parsed = parse_duration(text)
    return duration_seconds(parsed) if parsed else None


# So many characters of a type are shown.
_SHOWN = 40
# In YAML and singular tests: what comes before the name of a model or source.
_NAMES_NODE = re.compile(r"(?:\b(?:model|to|input|name):\s*|\b(?:ref|source)\([^)]*)[\"']?[\w.]*$")
_GIVEN_INLINE = re.compile(r"\bgiven:\s*\{(?:[^{}]|\{[^{}]*\})*$")


def definition(opened: OpenProject, file: str, position: types.Position) -> list[types.Location]:
    """Return where the column, model, source, macro or CTE at a place is defined; a CTE's column: what it is from."""
    text = opened.text(file)
    place = location_of_position(position, text, file)
    if (name := name_at(opened, file, place)) is not None:
        return [match for origin in name.origins for match in _column_place(opened, *origin)]
    if (node := node_at(opened, file, place)) is not None:
        return _node_place(opened, node)
    word = re.escape(range_word(text.split("\n")[place.line - 1], place.column - 1))
    match segment_at(text, offset_of(place, text)).kind if word and opened.model_of(file) else None:
        case TextKind.JINJA:
            files = {macro.file for macro in opened.manifest.macros if re.escape(macro.name) == word}
            return [match for one in files for match in _places(opened, one, rf"\bmacro\s+({word})\s*\(")]
        case TextKind.SQL:
            return list(_places(opened, file, rf"(?i)\b({word})(?:\s*\([^()]*\))?\s+as\s*\(\s*(?:select|with)\b"))[:1]
        case _:
            return []


def _places(opened: OpenProject, file: str, pattern: str) -> Iterator[types.Location]:
    text = opened.text(file)
    for match in re.finditer(pattern, text):
        place = location_of(text, match.start(1), file)
        yield types.Location(_uri(opened, file), range_at(place, text, len(match[1])))


def references(opened: OpenProject, file: str, position: types.Position) -> list[types.Location]:
    """Return where models, headers and tests name the model or source at a place.

    In a model, where nothing else is named: that model.
    """
    place = location_of_position(position, opened.text(file), file)
    own = opened.model_of(file)
    node = node_at(opened, file, place) or (own.id if own else None)
    return [] if node is None else [match for other in opened.files() for match in _naming(opened, other, node)]


def _naming(opened: OpenProject, file: str, node: str) -> Iterator[types.Location]:
    text = opened.text(file)
    word = re.compile(rf"\b{re.escape(node.rpartition('.')[2])}\b")
    for match in word.finditer(text):
        place = location_of(text, match.start(), file)
        if node_at(opened, file, place) == node:
            yield types.Location(_uri(opened, file), range_at(place, text, len(match[0])))


def name_at(opened: OpenProject, file: str, place: Location) -> NamePlace | None:
    edited = opened.analysed(file)
    lines = opened.text(file).split("\n")
    for name in edited.names if edited else ():
        begin, end = name.start, name.start.column - 1 + len(name.text)
        # The text may have changed since.
        if begin.line == place.line and begin.column - 1 < place.column <= end + 1:
            return name if lines[begin.line - 1][begin.column - 1 : end] == name.text else None
    return None


def node_at(opened: OpenProject, file: str, place: Location) -> str | None:
    """Return the id of the model or source that is named at a place: in ref(), source(), the header or YAML."""
    lines = opened.text(file).split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    model = opened.model_of(file)
    if model is None:
        word = range_word(line, place.column - 1)
        before = line[: place.column - 1]
        names_node = bool(word) and (_NAMES_NODE.search(before) is not None or _is_given(lines, place.line, before))
        return next((i for i in (f"model.{word}", f"source.{word}") if names_node and i in opened.manifest.nodes), None)
    edited = opened.analysed(file)
    for read, start in edited.reads if edited else ():
        end = line.find("}}", start.column - 1) + 2
        if start.line == place.line and start.column <= place.column <= max(end, start.column):
            return read if read.rpartition(".")[2] in line[start.column - 1 : end] else None
    match = header_place(opened.text(file), place)
    header_word = meaning(opened, model, *match) if match else None
    return (header_word.node or None) if header_word else None


def _is_given(lines: list[str], number: int, before: str) -> bool:
    """Whether a word of a unit test is a key below `given:`, by braces or indentation."""
    if _GIVEN_INLINE.search(before):
        return True
    begin = re.fullmatch(r"(\s+)\w*", before)
    if begin is None:
        return False
    outer = (line for line in reversed(lines[: number - 1]) if line.strip() and not line.startswith(begin[1]))
    return next(outer, "").strip().removeprefix("- ") == "given:"


def symbols(opened: OpenProject, file: str) -> list[types.DocumentSymbol]:
    edited, text = opened.analysed(file), opened.text(file)
    if edited is None:
        return []
    lines = text.split("\n")
    whole = types.Range(types.Position(0, 0), types.Position(len(lines) - 1, len(lines[-1])))
    columns = []
    for column, start in zip(edited.model.columns, edited.outputs, strict=False):
        place = range_at(start, text)
        columns.append(types.DocumentSymbol(column.name, types.SymbolKind.Field, place, place, column.type or ""))
    head = types.Range(types.Position(0, 0), types.Position(0, 0))
    kind = str(edited.model.materialized)
    return [types.DocumentSymbol(edited.model.name, types.SymbolKind.Class, whole, head, kind, children=columns)]


def inlay_hints(opened: OpenProject, file: str) -> list[types.InlayHint]:
    edited, text = opened.analysed(file), opened.text(file)
    pairs = zip(edited.model.columns, edited.outputs, strict=False) if edited else ()
    return [
        types.InlayHint(range_at(start, text).start, f"{column.type} ", types.InlayHintKind.Type)
        for column, start in pairs
        if column.type and len(column.type) < _SHOWN
    ] + list(_state_hint(edited, text))


def _state_hint(edited: EditedModel | None, text: str) -> Iterator[types.InlayHint]:
    hint = state_text(edited.model) if edited else ""
    lines = text.split("\n")
    number = next((number for number, line in enumerate(lines) if line.startswith("streams:")), None)
    if hint and number is not None:
        place = types.Position(number, len(lines[number].encode("utf-16-le", "surrogatepass")) // 2)
        yield types.InlayHint(place, hint, padding_left=True)


def folding(opened: OpenProject, file: str) -> list[types.FoldingRange]:
    lines = opened.text(file).split("\n")
    begin = next((i for i, line in enumerate(lines) if line.lstrip().startswith("/*---")), None)
    end = next((i for i, line in enumerate(lines) if line.rstrip().endswith("---*/")), None)
    return [types.FoldingRange(begin, end, kind=types.FoldingRangeKind.Comment)] if begin is not None and end else []


def _uri(opened: OpenProject, file: str) -> str:
    return (opened.root / file).as_uri()


def _column_place(opened: OpenProject, node_id: str, column: str) -> Iterator[types.Location]:
    node = opened.manifest.nodes.get(node_id)
    if isinstance(node, Model):
        edited, text = opened.analysed(node.file), opened.text(node.file)
        outputs: Mapping[str, Location] = (
            {c.name.lower(): start for c, start in zip(edited.model.columns, edited.outputs, strict=False)}
            if edited
            else {}
        )
        start = outputs.get(column.split(".", maxsplit=1)[0].lower(), Location(node.file))
        yield types.Location(_uri(opened, node.file), range_at(start, text))
    elif isinstance(node, Source):
        yield from _node_place(opened, node_id)


def _node_place(opened: OpenProject, node_id: str) -> list[types.Location]:
    node = opened.manifest.nodes.get(node_id)
    if not isinstance(node, Model | Source):
        return []
    place = (node.location if isinstance(node, Source) else None) or Location(node.file)
    return [types.Location(_uri(opened, node.file), range_at(place, opened.text(node.file)))]
