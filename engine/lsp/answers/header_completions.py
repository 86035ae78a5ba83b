"""What may be written at a place of a model's header; the YAML need not be whole.

Semantic colours of a model's header: keys, models and sources, columns, windows, values that the schema lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from engine.compile import Model, Source
from engine.errors import Location
from engine.lsp.opened.header_places import (
    OF_OUTPUT,
    OF_STREAM,
    HeaderWord,
    KnownColumn,
    columns_known,
    columns_of,
    header_place,
    input_columns,
    meaning,
    schema_at,
)
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, position_of, segments
from engine.schema import ConfigKey, ValueForm

_PAIR = re.compile(r"\s*(?:- )?([\w.]+):(?:\s|$)")
_TO = re.compile(r"\bto:\s*(?:ref\()?['\"]?(\w+)")
# `to` and `field` of a test are within so many lines.
_NEAR = 4
_LIST_ITEM = re.compile(r"^\s*- \w*$")
Item = types.CompletionItem
Shown = types.CompletionItemKind


def item(label: str, kind: Shown, detail: str, meaning: str = "") -> Item:
    return types.CompletionItem(label, kind=kind, detail=detail, documentation=meaning or None)


def header_completions(opened: OpenProject, model: Model, lines: list[str], line: int, before: str) -> Iterator[Item]:
    """Yield the keys or values that may be written at a line of a header, after `before`."""
    inner, value = _open_keys(before)
    above = "\n".join([*lines[max(0, line - _NEAR) : line - 1], before])
    path = _path(lines, line, before)
    path = [*path, *(inner[1:] if inner[:1] == path[-1:] else inner)]
    if value:
        yield from _values(opened, model, path, value, above)
        return
    if _LIST_ITEM.match(before) and path and _takes_values(path[-1]):
        yield from _values(opened, model, path, path[-1], above)
        return
    if path[-1:] == ["columns"]:
        yield from _columns(columns_known("", model.columns))
    if path[-1:] == ["streams"]:
        yield from _readable(opened)
    _, block, _ = schema_at(path)
    for key in block.keys if block else ():
        if not key.later:
            yield item(key.name, Shown.Property, f"{key.form}; default: {key.default}", key.meaning)


def _takes_values(name: str) -> bool:
    return name in OF_OUTPUT | OF_STREAM | {"streams", "acknowledge"}


def _values(opened: OpenProject, model: Model, path: list[str], name: str, before: str) -> Iterator[Item]:
    if name == "streams":
        yield from _readable(opened)
    elif name == "to":
        yield from (one for one in _readable(opened) if one.detail == "model")
    elif name == "field":
        related = _TO.findall(before)
        yield from _columns(columns_known("", columns_of(opened, f"model.{related[-1]}")) if related else ())
    elif path[:1] == ["windows"]:
        match = (column for one in model.inputs for column in input_columns(opened, model, one.node))
        yield from _columns(match)
        yield from (item(kind, Shown.Function, "") for kind in ("tumbling", "sliding", "session"))
    elif path[:1] == ["streams"] and name in OF_STREAM:
        nodes = (f"{kind}.{path[1]}" for kind in ("model", "source") if len(path) > 1)
        yield from _columns(column for node in nodes for column in input_columns(opened, model, node))
    elif name in OF_OUTPUT:
        yield from _columns(columns_known("", model.columns))
    key = _key_of(path, name)
    if key is not None:
        choices = key.choices or (("true", "false") if key.form is ValueForm.BOOLEAN else ())
        yield from (item(choice, Shown.EnumMember, name) for choice in choices)


def _key_of(path: list[str], name: str) -> ConfigKey | None:
    _, owner, _ = schema_at(path[:-1] if path[-1:] == [name] else path)
    return next((key for key in owner.keys if key.name == name), None) if owner else None


def _columns(columns: Iterable[KnownColumn]) -> Iterator[Item]:
    seen_names: set[str] = set()
    for column in columns:
        if column.name not in seen_names:
            seen_names.add(column.name)
            yield item(column.name, Shown.Field, column.type or "", column.description)


def _readable(opened: OpenProject) -> Iterator[Item]:
    nodes: tuple[Model | Source, ...] = (*opened.manifest.models, *opened.manifest.sources)
    for node in nodes:
        yield item(node.name, Shown.Class, "source" if isinstance(node, Source) else "model", node.description)


def _path(lines: list[str], line: int, before: str) -> list[str]:
    """The keys around a line of the header, by their indentation, with the one that it begins with."""
    indent = len(before) - len(before.lstrip())
    path: list[str] = []
    for above in reversed(lines[: line - 1]):
        # The keys of an item of a list begin behind its dash.
        key, width = _key(above), len(above) - len(above.lstrip(" -"))
        if key and width < indent:
            path.insert(0, key)
            indent = width
        if indent == 0:
            break
    own = _key(before)
    return [*path, own] if own else path


def _key(line: str) -> str:
    name, colon, _ = line.strip().removeprefix("- ").partition(":")
    return name if colon and name.replace(".", "_").replace("_", "a").isalnum() else ""


def _open_keys(before: str) -> tuple[list[str], str]:
    """The keys of the braces that are open at the end of a line, and the key whose value is being written there."""
    opened: list[tuple[str, str]] = []
    begin, quote = 0, ""
    for place, letter in enumerate(before):
        if quote or letter in "\"'":
            quote = "" if letter == quote else quote or letter
        elif letter in "{[":
            opened.append((letter, _pair_key(before[begin:place]) or _last_key(opened)))
            begin = place + 1
        elif letter in "}]":
            opened = opened[:-1]
            begin = place + 1
        elif letter == "," and opened:
            begin = place + 1
    # In a list, the value is one of the key before the bracket.
    value = opened[-1][1] if opened and opened[-1][0] == "[" else _pair_key(before[begin:])
    return [key for bracket, key in opened if bracket == "{" and key], value


def _pair_key(text: str) -> str:
    match = _PAIR.match(text)
    return match[1] if match else ""


def _last_key(opened: list[tuple[str, str]]) -> str:
    return opened[-1][1] if opened and opened[-1][0] == "[" else ""


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
        for match in _WORD.finditer(line):
            place = header_place(text, Location(file, number, match.start() + 1))
            header_word = meaning(opened, model, *place) if place else None
            if place is None or header_word is None:
                continue
            kind = _kind(header_word, is_key=place[1].is_key)
            at = position_of(Location(file, number, match.start() + 1), text)
            same_line = at.line == last[0]
            data += [at.line - last[0], at.character - (last[1] if same_line else 0), len(match[0]), kind, 0]
            last = (at.line, at.character)
    return data


def _kind(header_word: HeaderWord, *, is_key: bool) -> int:
    if header_word.key is not None:
        return LEGEND.index("property" if is_key else "enumMember")
    if header_word.node:
        return LEGEND.index("class")
    return LEGEND.index("type" if header_word.window else "variable")
