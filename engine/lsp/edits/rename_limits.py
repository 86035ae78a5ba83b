"""Places that may mean a name and that nobody can be sure of: they forbid a rename."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine.compile import Model
from engine.lsp.names.header_names import hooks_with
from engine.lsp.names.jinja_places import computed_names, local_names, strings_of
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.project_names import places_in
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, segments
from engine.project.model_header import location_of
from engine.project.parse_yaml import load_yaml

# The function of templates that takes such a name.
_BY_STRING = {
    NameKind.MODEL: "ref", NameKind.SOURCE: "source", NameKind.TABLE: "source", NameKind.VARIABLE: "var",
}  # fmt: skip
_RELATIONS = {NameKind.CTE, NameKind.ALIAS, NameKind.MODEL, NameKind.TABLE}
_IN_SQL = {
    NameKind.COLUMN, NameKind.WINDOW, NameKind.CTE, NameKind.ALIAS, NameKind.INNER, NameKind.EVENT_TIME,
}  # fmt: skip


def limit(opened: OpenProject, name: Name, new: str, places: Sequence[NamedPlace]) -> str:
    return next(filter(None, _reasons(opened, name, new, places)), "")


def _reasons(opened: OpenProject, name: Name, new: str, places: Sequence[NamedPlace]) -> Iterator[str]:
    kind = name.kind
    if kind in _RELATIONS:
        yield _second_relation(opened, name, new, places)
    if kind is NameKind.COLUMN:
        yield _from_star(opened, name)
    if kind is NameKind.EVENT_TIME and not any(_is_declared(opened, one) for one in places):
        yield f"the source declares '{name.name}' in its watermark; rename it in the query: {name.name} as name"
    if kind in {NameKind.COLUMN, NameKind.MODEL, NameKind.TABLE}:
        yield _in_hook(opened, name)
    if kind is NameKind.MACRO:
        yield _hidden(opened, name)
    if kind in _BY_STRING and _computes(opened, _BY_STRING[kind]):
        yield _in_string(opened, name, places)
    if kind in _IN_SQL:
        yield _not_rendered(opened, name, places)


def _second_relation(opened: OpenProject, name: Name, new: str, places: Sequence[NamedPlace]) -> str:
    """Where a query reads something else under the new name already: models and sources have their own as an alias."""
    for file in dict.fromkeys(one.file for one in places if one.file.endswith(".sql")):
        for other in places_in(opened, file):
            if other.name.kind in _RELATIONS and other.name.name.lower() == new.lower() and other.name != name:
                place = location_of(opened.text(file), other.start, file)
                return f"'{new}' is taken: {file}:{place.line}:{place.column} reads something of that name"
    return ""


def _hidden(opened: OpenProject, name: Name) -> str:
    for file in opened.files():
        text = opened.text(file)
        for start, local in local_names(opened, file) if name.name in text else ():
            if local == name.name:
                place = location_of(text, start, file)
                return f"{file}:{place.line}:{place.column} has a variable '{local}': rename it first"
    return ""


def _computes(opened: OpenProject, function: str) -> bool:
    files = (file for file in opened.files() if file.endswith((".sql", ".yml", ".yaml")))
    return any(computed_names(opened, file, function) for file in files)


def _from_star(opened: OpenProject, name: Name) -> str:
    """Why a column has the name of another one; empty: it has one of its own."""
    model = opened.manifest.nodes.get(name.owner)
    if not isinstance(model, Model):
        return ""
    edited = opened.analysed(model.file)
    names = edited.query_names if edited is not None else None
    at = dict(names.outputs).get(name.name, -1) if names is not None else -1
    if isinstance(at, int) and at >= 0:
        return ""
    if not any(column == name.name for column, _ in (names.outputs if names is not None else ())):
        return f"the query of '{model.name}' does not have '{name.name}': its table gets the column with that name"
    return f"the query of '{model.name}' gives '{name.name}' no name of its own: list it in the SELECT, in place of '*'"


def _is_declared(opened: OpenProject, place: NamedPlace) -> bool:
    text = opened.text(place.file)
    return any(one.kind is TextKind.HEADER and one.start <= place.start < one.end for one in segments(text))


def _in_hook(opened: OpenProject, name: Name) -> str:
    match = (hooks_with(model, opened.text(model.file), name.name) for model in opened.manifest.models)
    return next(filter(None, match), "")


def _in_string(opened: OpenProject, name: Name, places: Sequence[NamedPlace]) -> str:
    """Where a template or a variable has the name as a value, which may become anything."""
    written = {(one.file, one.start) for one in places}
    for file in opened.files():
        text = opened.text(file)
        if name.name not in text or not file.endswith((".sql", ".yml", ".yaml")):
            continue
        for start in strings_of(opened, file, name.name):
            if (file, start) not in written and not _means_other(text, start):
                place = location_of(text, start, file)
                return f"{file}:{place.line}:{place.column} has '{name.name}' as a string, which may mean it"
    if name.kind is not NameKind.VARIABLE:
        document, _ = load_yaml(opened.text("project.yml"), "project.yml")
        for path, place in document.values.items():
            data = document.data
            for part in path:
                data = data[part]
            if path[:1] == ("vars",) and data == name.name:
                return f"{place.file}:{place.line}:{place.column} has '{name.name}' as a value, which may mean it"
    return ""


def _means_other(text: str, start: int) -> bool:
    return bool(re.search(r"\b(?:ref|source|var|env_var)\(\s*(?:['\"]\w*['\"]\s*,\s*)?['\"]$", text[:start][-300:]))


def _not_rendered(opened: OpenProject, name: Name, places: Sequence[NamedPlace]) -> str:
    """Where a part of a query that the template leaves out has the name."""
    files = {one.file for one in places if one.file.endswith(".sql")}
    word = re.compile(rf"(?i)(?<![\w.]){re.escape(name.name)}\b|(?i:\.{re.escape(name.name)})\b")
    for file in sorted(files):
        text = opened.text(file)
        edited = opened.analysed(file)
        names = edited.query_names if edited is not None else opened.names_of_test(file)
        for part in segments(text):
            if part.kind is not TextKind.SQL or names is None:
                continue
            for match in word.finditer(text, part.start, part.end):
                if not any(begin <= match.start() < end for begin, end in names.written):
                    place = location_of(text, match.start(), file)
                    return f"{file}:{place.line} has '{name.name}' in a part that the template leaves out here"
    return ""
