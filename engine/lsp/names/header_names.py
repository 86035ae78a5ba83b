"""Names in the header of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.compile import Model
from engine.lsp.names.jinja_places import dotted_source
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.yaml_places import relation, test_name
from engine.lsp.opened.header_places import HeaderWord, header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, offset_of, segments
from engine.project.model_header import location_of, split_header
from engine.project.parse_yaml import Path, Yaml

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_HOOKS = ("pre_hook", "post_hook")


def header_names(opened: OpenProject, model: Model, text: str) -> Iterator[NamedPlace]:
    part = next((one for one in segments(text) if one.kind is TextKind.HEADER), None)
    header = split_header(text, model.file).header
    if part is None or header is None:
        return
    for path, place in header.keys.items():
        yield from test_name(opened, model.file, text, path, offset_of(place, text), is_key=True)
    for path, place in header.values.items():
        yield from test_name(opened, model.file, text, path, offset_of(place, text), is_key=False)
        yield from _listed(opened, model, header, text, path)
    for match in _WORD.finditer(text, part.start, part.end):
        at = header_place(text, location_of(text, match.start(), model.file))
        header_word = meaning(opened, model, *at) if at else None
        if at is None or header_word is None:
            continue
        path, is_key = at[1].path, at[1].is_key
        if is_key or _names(path, text, offset_of(header.value_at(path), text), match):
            yield from _places(model, text, path, match, header_word, is_key=is_key)


def _names(path: Path, text: str, begin: int, match: re.Match[str]) -> bool:
    """Whether a word of a value is a name: not a function, a part of a string, a length of time or a word of YAML."""
    value = text[begin : match.start()]
    if text[match.end() :].lstrip(" ").startswith("(") or path[-1] == "to":
        return False
    if value[:1] != "'" and value.count("'") % 2:
        return False
    if path[:1] == ("windows",):
        return value.count("(") > 0 and "," not in value.partition("(")[2]
    if "watermark" in path and path[-1] == "watermark":
        return " delay " not in value.lower() and not re.fullmatch(r"(?i)as|delay", match[0])
    return True


def _places(
    model: Model, text: str, path: Path, match: re.Match[str], header_word: HeaderWord, *, is_key: bool
) -> Iterator[NamedPlace]:
    file, at, word = model.file, match.start(), match[0]
    if header_word.node.startswith("source."):
        yield from dotted_source(file, at, word)
    elif header_word.node:
        yield NamedPlace(file, at, len(word), Name(NameKind.MODEL, word))
    elif header_word.window:
        yield NamedPlace(file, at, len(word), Name(NameKind.WINDOW, header_word.window, file))
    elif header_word.column is not None:
        first = word.partition(".")[0]
        node = header_word.column.node or model.id
        name = Name(NameKind.COLUMN, first.lower(), node)
        if header_word.column.node and _is_computed(model, node, path, text, match):
            name = Name(NameKind.EVENT_TIME, first.lower(), file)
        if not is_key or word == str(path[-1]):
            yield NamedPlace(file, at, len(first), name)


def _is_computed(model: Model, node: str, path: Path, text: str, match: re.Match[str]) -> bool:
    """Whether a column of an input is the one that a watermark of the model makes."""
    watermarks = [item.watermark for item in model.inputs if item.node == node and item.watermark]
    first = match[0].partition(".")[0].lower()
    if not any(one.expression is not None and one.column.lower() == first for one in watermarks):
        return False
    if path[-1] == "watermark":
        return bool(re.search(r"\sas\s+`?$", text[: match.start()], re.IGNORECASE))
    # The SQL of the mapping form is over what the input has.
    return path[-1] != "as"


def _listed(opened: OpenProject, model: Model, header: Yaml, text: str, path: Path) -> Iterator[NamedPlace]:
    value = _data(header, path)
    at = offset_of(header.values[path], text)
    if path[:1] == ("columns",) and path[2:] == ("name",) and isinstance(value, str):
        quoted = int(text[at] in "\"'")
        yield NamedPlace(model.file, at + quoted, len(value), Name(NameKind.COLUMN, value.lower(), model.id))
    elif path[-1:] == ("to",) and isinstance(value, str):
        yield from relation(opened, model.file, text, at + int(text[at] in "\"'"), value)
    elif path[:1] == ("expectations",) and path[2:] == ("name",) and isinstance(value, str):
        yield NamedPlace(model.file, at, len(value), Name(NameKind.EXPECTATION, value, model.name))


def hooks_with(model: Model, text: str, word: str) -> str:
    header = split_header(text, model.file).header
    for path, place in header.values.items() if header is not None else ():
        value = _data(header, path) if header is not None else None
        hooked = path[:1] and path[0] in _HOOKS and isinstance(value, str)
        if hooked and re.search(rf"(?i)\b{re.escape(word)}\b", str(value)):
            return f"{place.file}:{place.line} names it in a hook"
    return ""


def _data(header: Yaml, path: Path) -> object:
    match: object = header.data
    for part in path:
        try:
            match = match[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return match
