"""Names in YAML files: sources, unit tests and their rows, exposures, variables, selectors.

Names of data tests and of their kinds, where they are listed: for a column, a model or a source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from engine.compile.config.stream_config import node_name
from engine.lsp.names.jinja_places import dotted_source
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import offset_of
from engine.project.parse_yaml import Path, Yaml, load_yaml

_LISTS = ("tests", "data_tests")
_KIND_AND_KEY = 2


def test_name(opened: OpenProject, file: str, text: str, path: Path, at: int, *, is_key: bool) -> Iterator[NamedPlace]:
    depth = next((index for index, part in enumerate(path) if part in _LISTS), None)
    if depth is None:
        return
    rest = path[depth + 1 :]
    at += int(text[at : at + 1] in {"'", '"'})
    word = _word(text, at)
    # `- unique: {..}` and `- unique`.
    if (is_key and len(rest) == _KIND_AND_KEY) or (
        not is_key and len(rest) == 1 and text[at : at + 1] not in {"{", ""}
    ):
        if any(macro.name == f"test_{word}" for macro in opened.manifest.macros):
            yield NamedPlace(file, at, len(word), Name(NameKind.TEST_KIND, word))
    elif not is_key and rest[-1:] == ("name",) and word:
        yield NamedPlace(file, at, len(word), Name(NameKind.TEST, word))


def _word(text: str, at: int) -> str:
    end = at
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[at:end]


_RELATIONS = ("to", "input", "model")
_CSV_NAME = re.compile(r"[^,\n]+")
_TERM = re.compile(r"@?(?:\d*\+)?(?:(\w+):)?([\w.]+)(?:\+\d*)?")


def yaml_places(opened: OpenProject, file: str) -> Iterator[NamedPlace]:
    text = opened.text(file)
    document, _ = load_yaml(text, file)
    for path, place in document.keys.items():
        at = offset_of(place, text)
        yield from test_name(opened, file, text, path, at, is_key=True)
        yield from _key(opened, document, text, path, at)
    for path, place in document.values.items():
        at = offset_of(place, text)
        yield from test_name(opened, file, text, path, at, is_key=False)
        value = value_at(document, path)
        if isinstance(value, str):
            yield from _value(opened, document, text, path, at, value)


def value_at(document: Yaml, path: Path) -> Any:
    """The value at a path; None: there is none."""
    match: Any = document.data
    for part in path:
        try:
            match = match[part]
        except (KeyError, IndexError, TypeError):
            return None
    return match


def _quoted(text: str, at: int) -> int:
    return at + int(text[at : at + 1] in {"'", '"'})


def _key(opened: OpenProject, document: Yaml, text: str, path: Path, at: int) -> Iterator[NamedPlace]:
    file, key, at = document.file, str(path[-1]), _quoted(text, at)
    if path[:-1] == ("vars",) and file == "project.yml":
        yield NamedPlace(file, at, len(key), Name(NameKind.VARIABLE, key))
    elif path[:1] == ("unit_tests",):
        if path[-3:-1] == ("overrides", "vars"):
            yield NamedPlace(file, at, len(key), Name(NameKind.VARIABLE, key))
        elif path[-3:-1] == ("overrides", "macros"):
            yield NamedPlace(file, at, len(key), Name(NameKind.MACRO, key))
        elif path[-2:-1] == ("given",):
            yield from relation(opened, file, text, at, key)
        elif (node := rows_of(opened, document, path)) is not None:
            yield NamedPlace(file, at, len(key), Name(NameKind.COLUMN, key.lower(), node))


def _value(opened: OpenProject, document: Yaml, text: str, path: Path, at: int, value: str) -> Iterator[NamedPlace]:
    file, begin = document.file, _quoted(text, at)
    last, top = path[-1] if path else "", path[:1]
    if top == ("sources",) and path[2:] == ("name",):
        yield NamedPlace(file, begin, len(value), Name(NameKind.SOURCE, value))
    elif top == ("sources",) and path[2:3] == ("tables",) and path[4:] == ("name",):
        source = str(value_at(document, (*path[:2], "name")))
        yield NamedPlace(file, begin, len(value), Name(NameKind.TABLE, value, source))
    elif top == ("unit_tests",) and path[2:] == ("name",):
        model = str(value_at(document, (*path[:2], "model")))
        yield NamedPlace(file, begin, len(value), Name(NameKind.TEST, value, node_name(model)))
    elif last in _RELATIONS or (top, last) == (("sinks",), "from") or (top == ("exposures",) and "depends_on" in path):
        yield from relation(opened, file, text, begin, value)
    elif last == "field":
        to = node_name(str(value_at(document, (*path[:-1], "to"))))
        node = next((i for i in (f"model.{to}", f"source.{to}") if i in opened.manifest.nodes), None)
        if node:
            yield NamedPlace(file, begin, len(value), Name(NameKind.COLUMN, value.lower(), node))
    elif top == ("selectors",):
        yield from _terms(opened, document, path, begin, value)
    elif top == ("unit_tests",) and last != "sql":
        yield from _csv(opened, document, text, path, at)


def relation(opened: OpenProject, file: str, text: str, at: int, value: str) -> Iterator[NamedPlace]:
    """Return the model, or the source and its table, of `flights`, `ref('flights')`, `source('ops', 'arrivals')`."""
    name = node_name(value)
    written = text[at : at + len(value)]
    if f"model.{name}" in opened.manifest.nodes:
        match = [*re.finditer(rf"\b{re.escape(name)}\b", written)]
        if match:
            yield NamedPlace(file, at + match[-1].start(), len(name), Name(NameKind.MODEL, name))
    elif f"source.{name}" in opened.manifest.nodes:
        if written == name:
            yield from dotted_source(file, at, name)
            return
        source, _, table = name.partition(".")
        first, last = re.search(rf"\b{source}\b", written[7:]), [*re.finditer(rf"\b{table}\b", written)]
        if first and last:
            yield NamedPlace(file, at + 7 + first.start(), len(source), Name(NameKind.SOURCE, source))
            yield NamedPlace(file, at + last[-1].start(), len(table), Name(NameKind.TABLE, table, source))


def rows_of(opened: OpenProject, document: Yaml, path: Path) -> str | None:
    """Return the node whose column a key of a row is; None: it is no such key."""
    for depth, part in enumerate(path):
        rest = path[depth + 1 :]
        if part == "expect":
            rest = rest[1:] if rest[:1] == ("rows",) else rest
            model = value_at(document, (*path[:2], "model"))
            return f"model.{node_name(str(model))}" if _is_cell(rest) else None
        if part == "given" and rest:
            given_block = rest[0]
            if isinstance(given_block, int):
                given_block = str(value_at(document, (*path[: depth + 1], given_block, "input")))
            rest = rest[2:] if rest[1:2] == ("rows",) else rest[1:]
            name = node_name(str(given_block))
            node = next((i for i in (f"model.{name}", f"source.{name}") if i in opened.manifest.nodes), None)
            return node if _is_cell(rest) else None
    return None


def _is_cell(rest: Path) -> bool:
    row, *cells = rest or ("",)
    return isinstance(row, int) and len(cells) == 1 and isinstance(cells[0], str)


def _csv(opened: OpenProject, document: Yaml, text: str, path: Path, at: int) -> Iterator[NamedPlace]:
    inner = path[:-1] if path[-1] == "csv" else path
    node = rows_of(opened, document, (*inner, 0, "column"))
    if node is None:
        return
    if text[at] in "|>":
        begin = text.find("\n", at) + 1
        end = text.find("\n", begin)
    else:
        begin = _quoted(text, at)
        end = min((i for i in (text.find("\\n", begin), text.find("\n", begin)) if i >= 0), default=-1)
    if end > begin:
        yield from csv_names(document.file, text, begin, end, node)


def csv_names(file: str, text: str, begin: int, end: int, node: str) -> Iterator[NamedPlace]:
    for match in _CSV_NAME.finditer(text, begin, end):
        bare = match[0].strip().strip('"')
        start = match.start() + match[0].find(bare)
        if bare:
            yield NamedPlace(file, start, len(bare), Name(NameKind.COLUMN, bare.lower(), node))


def fixture_places(opened: OpenProject, file: str) -> Iterator[NamedPlace]:
    """Return the columns that a file of rows names, for each input that gets them."""
    text = opened.text(file)
    stem = file.rpartition("/")[2].removesuffix(".csv")
    texts = opened.compiled.project.texts if opened.compiled else {}
    nodes = {}
    for name in texts:
        if not name.endswith((".yml", ".yaml")) or "fixture" not in opened.text(name):
            continue
        document, _ = load_yaml(opened.text(name), name)
        for path in document.values:
            if path[-1:] == ("fixture",) and value_at(document, path) == stem:
                nodes[rows_of(opened, document, (*path[:-1], 0, "column"))] = True
    for node in filter(None, nodes):
        yield from csv_names(file, text, 0, len(text.partition("\n")[0]), node)


def _terms(opened: OpenProject, document: Yaml, path: Path, at: int, value: str) -> Iterator[NamedPlace]:
    method = value_at(document, (*path[:-1], "method")) if path[-1] == "value" else ""
    if path[2:] in {("name",), ("description",)} or path[-1] == "method":
        return
    for match in re.finditer(r"[^\s,]+", value):
        term = _TERM.fullmatch(match[0])
        if term is None:
            continue
        kind, core, start = term[1] or str(method or ""), term[2], at + match.start() + term.start(2)
        if kind in {"", "fqn"} and f"model.{core}" in opened.manifest.nodes:
            yield NamedPlace(document.file, start, len(core), Name(NameKind.MODEL, core))
        elif kind == "source":
            yield from dotted_source(document.file, start, core)
        elif kind in {"", "unit_test", "fqn"}:
            tests = [node for i, node in opened.manifest.nodes.items() if i.startswith("unit_test.")]
            for test in (one for one in tests if one.name == core):
                owner = node_name(getattr(test, "model", "").partition(".")[2])
                yield NamedPlace(document.file, start, len(core), Name(NameKind.TEST, core, owner))
