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
    for found in _WORD.finditer(text, part.start, part.end):
        at = header_place(text, location_of(text, found.start(), model.file))
        said = meaning(opened, model, *at) if at else None
        if at is None or said is None:
            continue
        path, is_key = at[1].path, at[1].is_key
        if is_key or _names(path, text, offset_of(header.value_at(path), text), found):
            yield from _places(model, text, path, found, said, is_key=is_key)


def _names(path: Path, text: str, begin: int, found: re.Match[str]) -> bool:
    """Whether a word of a value is a name: not a function, a part of a string, a length of time or a word of YAML."""
    value = text[begin : found.start()]
    if text[found.end() :].lstrip(" ").startswith("(") or path[-1] == "to":
        return False
    if value[:1] != "'" and value.count("'") % 2:
        return False
    if path[:1] == ("windows",):
        return value.count("(") > 0 and "," not in value.partition("(")[2]
    if "watermark" in path and path[-1] == "watermark":
        return " delay " not in value.lower() and not re.fullmatch(r"(?i)as|delay", found[0])
    return True


def _places(
    model: Model, text: str, path: Path, found: re.Match[str], said: HeaderWord, *, is_key: bool
) -> Iterator[NamedPlace]:
    file, at, word = model.file, found.start(), found[0]
    if said.node.startswith("source."):
        yield from dotted_source(file, at, word)
    elif said.node:
        yield NamedPlace(file, at, len(word), Name(NameKind.MODEL, word))
    elif said.window:
        yield NamedPlace(file, at, len(word), Name(NameKind.WINDOW, said.window, file))
    elif said.column is not None:
        first = word.partition(".")[0]
        node = said.column.node or model.id
        name = Name(NameKind.COLUMN, first.lower(), node)
        if said.column.node and _is_made(model, node, path, text, found):
            name = Name(NameKind.EVENT_TIME, first.lower(), file)
        if not is_key or word == str(path[-1]):
            yield NamedPlace(file, at, len(first), name)


def _is_made(model: Model, node: str, path: Path, text: str, found: re.Match[str]) -> bool:
    """Whether a column of an input is the one that a watermark of the model makes."""
    made = [item.watermark for item in model.inputs if item.node == node and item.watermark]
    first = found[0].partition(".")[0].lower()
    if not any(one.expression is not None and one.column.lower() == first for one in made):
        return False
    if path[-1] == "watermark":
        return bool(re.search(r"\sas\s+`?$", text[: found.start()], re.IGNORECASE))
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
    found: object = header.data
    for part in path:
        try:
            found = found[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return found
