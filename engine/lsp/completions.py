"""What may be written at a place: keys and values of the header, models, sources, columns, macros, functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from lsprotocol import types

from engine.compile import Model, Source
from engine.compile.types.builtin_functions import BUILTIN
from engine.compile.types.function_signatures import SIGNATURES
from engine.lsp.editor_answers import columns_of, header_end
from engine.lsp.open_project import OpenProject
from engine.lsp.text_positions import location_of_position
from engine.schema import ConfigBlock
from engine.schema.all_blocks import BLOCKS

_REF = re.compile(r"ref\(\s*['\"]?\w*$")
_SOURCE = re.compile(r"source\([\w', \"]*$")
_JINJA = re.compile(r"\{\{[^}]*$")
_QUALIFIED = re.compile(r"\b(\w+)\.\w*$")
_VALUE = re.compile(r"^\s*(?:- )?(\w+):\s+\[?(?:[\w.]+,\s*)*[\w.]*$")
# Bounded: a text that is being typed may be anything.
_READS = re.compile(
    r"(?:ref\( {0,9}['\"](\w{1,200})['\"]|source\( {0,9}['\"](\w{1,200})['\"] {0,9}, {0,9}['\"](\w{1,200})['\"])"
    r"[^}]{0,99}\}\}(?:\s{1,9}(?:as\s{1,9})?(\w{1,200}))?"
)
_AFTER = {
    "on",
    "where",
    "left",
    "right",
    "full",
    "inner",
    "join",
    "cross",
    "group",
    "order",
    "union",
    "limit",
    "having",
}
Kind = types.CompletionItemKind


def completions(opened: OpenProject, file: str, position: types.Position) -> list[types.CompletionItem]:
    """Return what may be written at a place of a file, for the editor to filter by what is typed."""
    text = opened.text(file)
    place = location_of_position(position, text, file)
    lines = text.split("\n")
    before = lines[place.line - 1][: place.column - 1]
    if opened.model_of(file) is None:
        return []
    if place.line <= header_end(lines):
        return list(_header(opened, file, lines, place.line, before))
    return _in_query(opened, file, text, before)


def _in_query(opened: OpenProject, file: str, text: str, before: str) -> list[types.CompletionItem]:
    if _REF.search(before):
        return list(_models(opened))
    if _SOURCE.search(before):
        return list(_sources(opened))
    if _JINJA.search(before):
        return [*_macros(opened), *(_item(name, Kind.Function, "") for name in ("ref", "source", "var", "env_var"))]
    if qualified := _QUALIFIED.search(before):
        return list(_of_alias(opened, file, text, qualified[1]))
    return [*_columns(opened, text), *_windows(opened, file), *_functions()]


def _item(label: str, kind: Kind, detail: str, meaning: str = "") -> types.CompletionItem:
    return types.CompletionItem(label, kind=kind, detail=detail, documentation=meaning or None)


def _models(opened: OpenProject) -> Iterator[types.CompletionItem]:
    for model in opened.manifest.models:
        yield _item(model.name, Kind.Class, f"{model.materialized}", model.description)


def _sources(opened: OpenProject) -> Iterator[types.CompletionItem]:
    for source in opened.manifest.sources:
        label = f"'{source.source}', '{source.table}'"
        yield _item(label, Kind.Class, f"{source.spec.format} source", source.description)


def _macros(opened: OpenProject) -> Iterator[types.CompletionItem]:
    for macro in opened.manifest.macros:
        yield _item(macro.name, Kind.Function, f"{macro.name}({', '.join(macro.arguments)})", macro.description)


def _reads(text: str) -> Iterator[tuple[str, str]]:
    """The id and the alias of each model and source that a text reads, also of one that cannot be parsed yet."""
    for found in _READS.finditer(text):
        node = f"model.{found[1]}" if found[1] else f"source.{found[2]}.{found[3]}"
        alias = found[4] if found[4] and found[4].lower() not in _AFTER else node.rsplit(".", 1)[-1]
        yield node, alias


def _of_node(opened: OpenProject, node: str) -> Iterator[types.CompletionItem]:
    for column in columns_of(opened, node):
        yield _item(column.name, Kind.Field, column.type or "", column.description)


def _of_alias(opened: OpenProject, file: str, text: str, alias: str) -> Iterator[types.CompletionItem]:
    model = opened.model_of(file)
    if model is not None and alias in model.windows:
        yield from (_item(name, Kind.Field, "timestamp") for name in ("start", "end"))
    for node, known in _reads(text):
        if known.lower() == alias.lower():
            yield from _of_node(opened, node)


def _columns(opened: OpenProject, text: str) -> Iterator[types.CompletionItem]:
    seen: set[str] = set()
    for node, _ in _reads(text):
        for item in _of_node(opened, node):
            if item.label not in seen:
                seen.add(item.label)
                yield item


def _windows(opened: OpenProject, file: str) -> Iterator[types.CompletionItem]:
    model = opened.model_of(file)
    for name, window in model.windows.items() if model else ():
        yield _item(name, Kind.Variable, f"{window.kind}, {window.size}")


@cache
def signatures() -> dict[str, str]:
    """Return the signature of each function of Spark that has one, by its name."""
    pairs = (line.split(" ", 1)[1] for line in SIGNATURES.strip().splitlines())
    return {signature.split("(", 1)[0]: signature for signature in pairs}


@cache
def _functions() -> tuple[types.CompletionItem, ...]:
    return tuple(_item(name, Kind.Function, signatures().get(name, f"{name}()")) for name in sorted(BUILTIN))


def _header(opened: OpenProject, file: str, lines: list[str], line: int, before: str) -> Iterator[types.CompletionItem]:
    path = _path(lines, line, before)
    block = _block(path)
    if (value := _VALUE.match(before)) is not None and "{" not in before:
        owner = _block(path[:-1]) if path and path[-1] == value[1] else block
        yield from _values(opened, owner, value[1])
        if value[1] in {"unique_key", "sequence_by", "partition_by", "sort_by", "exclude", "dedup", "check"}:
            model = opened.model_of(file)
            for column in model.columns if model else ():
                yield _item(column.name, Kind.Field, column.type or "", column.description)
        return
    if path[-1:] == ["columns"]:
        model = opened.model_of(file)
        for column in model.columns if model else ():
            yield _item(column.name, Kind.Field, column.type or "")
    if path[-1:] == ["streams"]:
        yield from _readable(opened)
    for key in block.keys if block else ():
        if not key.later:
            yield _item(key.name, Kind.Property, f"{key.form}; default: {key.default}", key.meaning)


def _values(opened: OpenProject, block: ConfigBlock | None, name: str) -> Iterator[types.CompletionItem]:
    if name == "streams":
        yield from _readable(opened)
    if block is None or name not in block.names:
        return
    for choice in block.choices(name) or (("true", "false") if block.forms[name] == "boolean" else ()):
        yield _item(choice, Kind.EnumMember, name)


def _readable(opened: OpenProject) -> Iterator[types.CompletionItem]:
    nodes: tuple[Model | Source, ...] = (*opened.manifest.models, *opened.manifest.sources)
    for node in nodes:
        yield _item(node.name, Kind.Class, "source" if isinstance(node, Source) else "model", node.description)


def _path(lines: list[str], line: int, before: str) -> list[str]:
    """The keys around a line of the header, by their indentation, and those of an open brace in it."""
    indent = len(before) - len(before.lstrip())
    path: list[str] = []
    for above in reversed(lines[: line - 1]):
        key, width = _key(above), len(above) - len(above.lstrip(" "))
        if key and width < indent:
            path.insert(0, key)
            indent = width
        if indent == 0:
            break
    inner = _open_braces(before)
    own = _key(before)
    return [*path, *inner] if inner else [*path, own] if own else path


def _key(line: str) -> str:
    """The key that a line of YAML begins with; empty: it begins with none."""
    name, colon, _ = line.strip().removeprefix("- ").partition(":")
    return name if colon and name.replace(".", "_").replace("_", "a").isalnum() else ""


def _open_braces(before: str) -> list[str]:
    """The keys of the braces that are open at the end of a text."""
    opened: list[str] = []
    last = 0
    for place, letter in enumerate(before):
        if letter in "{},":
            word = before[last:place].strip()
            if letter == "{":
                opened.append(word.removesuffix(":").rpartition(" ")[2] if word.endswith(":") else "")
            elif letter == "}" and opened:
                opened.pop()
            last = place + 1
    return [key for key in opened if key]


def _block(path: list[str]) -> ConfigBlock | None:
    """The block of keys that a path leads to; None if names of the user, or nothing, come next."""
    block, named = BLOCKS["model"], False
    for name in path:
        if named:
            named = False
            continue
        key = next((key for key in block.keys if key.name == name), None)
        if key is None or not key.block or key.block not in BLOCKS:
            return None
        block = BLOCKS[key.block]
        named = "mapping by name" in (key.form, *key.also)
    return None if named else block
