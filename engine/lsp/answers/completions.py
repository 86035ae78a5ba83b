"""What may be written at a place of a model: keys of the header, models, sources, columns, macros, functions.

Spark's functions as an editor shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from lsprotocol import types

from engine.compile import Model
from engine.compile.types.builtin_functions import BUILTIN
from engine.compile.types.function_signatures import SIGNATURES
from engine.lsp.answers.header_completions import header_completions, item
from engine.lsp.opened.header_places import KnownColumn, at_path, fields_of, input_columns
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, location_of_position, offset_of, segment_at


@cache
def signatures() -> dict[str, str]:
    """Return the signature of each function of Spark by its name; `name(...)` for one that takes any arguments."""
    pairs = (line.split(" ", 1)[1] for line in SIGNATURES.strip().splitlines())
    written = {signature.split("(", 1)[0]: signature for signature in pairs}
    return {name: written.get(name, f"{name}(...)") for name in sorted({*BUILTIN, *written})}


_REF = re.compile(r"ref\(\s*['\"]?\w*$")
_SOURCE = re.compile(r"source\([\w', \"]*$")
# Bounded, as a search begins at each letter of a word.
_QUALIFIED = re.compile(r"((?:\w{1,255}\.){1,20})\w{0,255}$")
_ALIAS = re.compile(r"\bas\s+\w*$", re.IGNORECASE)
_ORDER = re.compile(r"\border\s+by\b[^()]*$", re.IGNORECASE)
# Bounded: a text that is being typed may be anything.
_READS = re.compile(
    r"(?:ref\( {0,9}['\"](\w{1,200})['\"]|source\( {0,9}['\"](\w{1,200})['\"] {0,9}, {0,9}['\"](\w{1,200})['\"])"
    r"[^}]{0,99}\}\}(?:\s{1,9}(?:as\s{1,9})?(\w{1,200}))?"
)
# What may follow a table without being its alias.
_AFTER = frozenset(
    [
        *("on", "where", "left", "right", "full", "inner", "join", "cross", "group", "order", "union", "limit"),
        *("having", "lateral", "using", "anti", "semi", "intersect", "except", "select"),
    ]
)
_JINJA_FUNCTIONS = ("ref", "source", "var", "env_var", "config", "this")
Item = types.CompletionItem
Shown = types.CompletionItemKind


def completions(opened: OpenProject, file: str, position: types.Position) -> list[Item]:
    """Return what may be written at a place of a file, for the editor to filter by what is typed."""
    text = opened.text(file)
    place = location_of_position(position, text, file)
    model = opened.model_of(file)
    if model is None:
        return []
    offset = offset_of(place, text)
    kind = segment_at(text, max(offset - 1, 0)).kind
    before = text[:offset]
    line = before.rpartition("\n")[2]
    match kind:
        case TextKind.HEADER:
            return list(header_completions(opened, model, text.split("\n"), place.line, line))
        case TextKind.JINJA:
            return list(_in_jinja(opened, line))
        case TextKind.SQL:
            return list(_in_query(opened, model, text, before))
    return []


def _in_jinja(opened: OpenProject, line: str) -> Iterator[Item]:
    if _REF.search(line):
        yield from _models(opened)
    elif _SOURCE.search(line):
        yield from _sources(opened)
    else:
        yield from _macros(opened)
        yield from (item(name, Shown.Function, "") for name in _JINJA_FUNCTIONS)


def _in_query(opened: OpenProject, model: Model, text: str, before: str) -> Iterator[Item]:
    line = before.rpartition("\n")[2]
    if qualified := _QUALIFIED.search(line):
        yield from _qualified(opened, model, text, qualified[1].removesuffix(".").split("."))
        return
    if _ALIAS.search(line):
        yield from _to_items(KnownColumn("", one.name, one.type, one.description) for one in model.columns)
        return
    scope_columns = [column for _, columns in _scope(opened, model, text) for column in columns]
    if _ORDER.search(before):
        scope_columns = [
            *(KnownColumn("", one.name, one.type, one.description) for one in model.columns),
            *scope_columns,
        ]
    yield from _to_items(scope_columns)
    for name, window in model.windows.items():
        yield item(name, Shown.Variable, f"{window.kind}, {window.size}")
    yield from (item(name, Shown.Function, signature) for name, signature in signatures().items())


def _to_items(columns: Iterable[KnownColumn]) -> Iterator[Item]:
    """Each name once: Spark takes the first, or none of them."""
    seen_names: set[str] = set()
    for column in columns:
        if column.name.lower() not in seen_names:
            seen_names.add(column.name.lower())
            yield item(column.name, Shown.Field, column.type or "", column.description)


def _scope(opened: OpenProject, model: Model, text: str) -> Iterator[tuple[str, list[KnownColumn]]]:
    """The alias and the columns of each model and source that a text reads, also of one that cannot be parsed yet."""
    for scope_columns in _READS.finditer(text):
        node = f"model.{scope_columns[1]}" if scope_columns[1] else f"source.{scope_columns[2]}.{scope_columns[3]}"
        alias = (
            scope_columns[4] if scope_columns[4] and scope_columns[4].lower() not in _AFTER else node.rsplit(".", 1)[-1]
        )
        yield alias.lower(), list(input_columns(opened, model, node))
    edited = opened.edited.get(model.file)
    for name, columns in (edited.steps or {} if edited is not None else {}).items():
        yield name, [KnownColumn("", column, type_) for column, type_ in columns]


def _qualified(opened: OpenProject, model: Model, text: str, path: list[str]) -> Iterator[Item]:
    if path[0] in model.windows:
        if len(path) == 1:
            yield from (item(name, Shown.Field, "timestamp") for name in ("start", "end"))
        return
    scope = list(_scope(opened, model, text))
    aliased = [column for alias, columns in scope if alias == path[0].lower() for column in columns]
    if aliased and len(path) == 1:
        yield from _to_items(aliased)
        return
    inner = path[1:] if aliased else path
    column = at_path(aliased or [column for _, columns in scope for column in columns], inner)
    yield from _to_items(fields_of(column)) if column else ()


def _models(opened: OpenProject) -> Iterator[Item]:
    for model in opened.manifest.models:
        yield item(model.name, Shown.Class, f"{model.materialized}", model.description)


def _sources(opened: OpenProject) -> Iterator[Item]:
    for source in opened.manifest.sources:
        label = f"'{source.source}', '{source.table}'"
        yield item(label, Shown.Class, f"{source.spec.format} source", source.description)


def _macros(opened: OpenProject) -> Iterator[Item]:
    for macro in opened.manifest.macros:
        yield item(macro.name, Shown.Function, f"{macro.name}({', '.join(macro.arguments)})", macro.description)
