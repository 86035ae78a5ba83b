"""Renaming over all files: what is at a place, and the changes; one that would change meaning is rejected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types

from engine.compile import Model, Source
from engine.lsp.answers.editor_answers import references
from engine.lsp.edits import rename_checks
from engine.lsp.edits.header_edits import (
    ProjectChange,
    TextChange,
    header_text,
    moving_edit,
    with_key,
    with_renamed_column,
)
from engine.lsp.names.jinja_places import computed_names, local_names, strings_of
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.project_names import hooks_with, place_at, places_in, places_of
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import TextKind, location_of_position, range_at, segments
from engine.project.model_header import location_of
from engine.project.parse_yaml import load_yaml
from engine.project.yaml_section import is_name, is_table_name

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


_NAME = re.compile(r"[A-Za-z_]\w{0,200}")
_NOTHING = (
    "this is not a name that the project gives: put the cursor on a model, source, window, column, CTE, alias, macro, "
    "variable or test"
)
_INSIDE = {NameKind.CTE, NameKind.ALIAS, NameKind.INNER, NameKind.EVENT_TIME}
Edit = types.WorkspaceEdit | str


@dataclass(frozen=True, slots=True)
class Renamable:
    """What a rename at a place would replace: its range, the name there, and what it is the name of."""

    range: types.Range
    written: str
    meaning: str


def prepared(opened: OpenProject, file: str, position: types.Position) -> Renamable | str:
    """Return what is at a place and can get another name, or why nothing there can."""
    place = _place(opened, file, position)
    if isinstance(place, str):
        return place
    if reason := _fixed(opened, place.name):
        return reason
    text = opened.text(file)
    where = range_at(location_of(text, place.start, file), text, place.length)
    return Renamable(where, text[place.start : place.start + place.length], str(place.name))


def renamed(opened: OpenProject, file: str, position: types.Position, new: str) -> Edit:
    place = _place(opened, file, position)
    return place if isinstance(place, str) else renamed_name(opened, place.name, new)


def renamed_name(opened: OpenProject, name: Name, new: str) -> Edit:
    reason = _fixed(opened, name) or _unusable(opened, name, new)
    if reason:
        return reason
    places = places_of(opened, name)
    blocked = next((place.blocked for place in places if place.blocked), "") or limit(opened, name, new, places)
    if blocked:
        return blocked
    kept_table = _kept_table(opened, name)
    if isinstance(kept_table, str):
        return kept_table

    def changed(to: str) -> ProjectChange:
        changes = [_change(place, to) for place in places]
        keeping = _keeping(opened, name, to) if kept_table else None
        changes += [keeping] if keeping is not None else []
        return ProjectChange(tuple(dict.fromkeys(changes)), _moved(opened, name, to))

    if kept_table and _keeping(opened, name, new) is None:
        return _by_hand(opened, name, new)
    reason = rename_checks.reason_against(opened, name, new, changed)
    return reason or moving_edit(opened, changed(new))


def named_places(opened: OpenProject, file: str, position: types.Position) -> list[types.Location]:
    """Return where the project names what is at a place; where nothing is named in a model, that model."""
    place = _place(opened, file, position)
    if isinstance(place, str):
        return references(opened, file, position)
    places = []
    for one in places_of(opened, place.name):
        text = opened.text(one.file)
        # Where there is no alias yet, the name of the column is before the place.
        size = one.length or len(place.name.name)
        start = one.start if one.length else one.start - size
        where = range_at(location_of(text, start, one.file), text, size)
        places.append(types.Location((opened.root / one.file).as_uri(), where))
    return places


def _place(opened: OpenProject, file: str, position: types.Position) -> NamedPlace | str:
    if opened.compiled is None or opened.manifest.errors:
        return "the project has errors; fix them first"
    places = place_at(opened, location_of_position(position, opened.text(file), file))
    return places or _NOTHING


def _change(place: NamedPlace, new: str) -> TextChange:
    return TextChange(place.file, place.start, place.length, f"{place.before}{new}{place.after}")


def _model(opened: OpenProject, name: Name) -> Model | None:
    node = f"model.{name.name}" if name.kind is NameKind.MODEL else name.owner
    places = opened.manifest.nodes.get(node) if name.kind in {NameKind.MODEL, NameKind.COLUMN} else None
    return places if isinstance(places, Model) else None


def _fixed(opened: OpenProject, name: Name) -> str:
    if name.kind is NameKind.COLUMN and name.owner.startswith("source."):
        return "columns of a source are named by its data; rename it in the query: column as name"
    if name.kind is NameKind.VARIABLE and opened.compiled and name.name not in opened.compiled.project.vars:
        return f"project.yml does not define the variable '{name.name}': its value comes from --vars, or is a default"
    nodes = {NameKind.MODEL: f"model.{name.name}", NameKind.TABLE: f"source.{name.owner}.{name.name}"}
    if name.kind in nodes and nodes[name.kind] not in opened.manifest.nodes:
        return f"the project has no {name}"
    if name.kind in {NameKind.SOURCE, NameKind.TABLE}:
        return _streamed(opened, name)
    return ""


def _streamed(opened: OpenProject, name: Name) -> str:
    """Why the checkpoint of a stream needs the name of its source; empty: none does."""
    for model in opened.manifest.models:
        for item in model.inputs:
            source = opened.manifest.nodes.get(item.node)
            is_named = isinstance(source, Source) and name in {
                Name(NameKind.SOURCE, source.source),
                Name(NameKind.TABLE, source.table, source.source),
            }
            if is_named and item.stream and (reason := rename_checks.table_reason(opened, model)) is not None:
                return f"its stream has the source's name: {reason}"
    return ""


def _unusable(opened: OpenProject, name: Name, new: str) -> str:
    strict = name.kind not in {*_INSIDE, NameKind.COLUMN, NameKind.MACRO, NameKind.TEST_KIND, NameKind.VARIABLE}
    valid = is_name(new) if strict else bool(_NAME.fullmatch(new))
    if name.kind in {NameKind.MODEL, NameKind.TABLE}:
        valid = is_table_name(new)
    if name.kind is NameKind.MACRO and new.startswith("test_"):
        return f"'{new}' would be a generic test"
    if not valid:
        return f"'{new}' is not a valid {_noun(name.kind)} name"
    if new.lower() in {one.lower() for one in _taken_names(opened, name)}:
        return f"'{new}' is taken"
    return ""


def _noun(kind: NameKind) -> str:
    return "column" if kind in {NameKind.INNER, NameKind.EVENT_TIME} else str(kind)


def _taken_names(opened: OpenProject, name: Name) -> Iterable[str]:
    if name.kind in {*_INSIDE, NameKind.WINDOW}:
        inside = {*_INSIDE, NameKind.WINDOW}
        return [one.name.name for one in places_in(opened, name.owner) if one.name.kind in inside]
    if opened.compiled is None:
        return []
    return [
        one.name
        for one in rename_checks.declared_names(opened.compiled)
        if (one.kind, one.owner) == (name.kind, name.owner)
    ]


def _moved(opened: OpenProject, name: Name, new: str) -> tuple[tuple[str, str], ...]:
    model = _model(opened, name) if name.kind is NameKind.MODEL else None
    if model is None:
        return ()
    folder, slash, _ = model.file.rpartition("/")
    return ((model.file, f"{folder}{slash}{new}.sql"),)


def _kept_table(opened: OpenProject, name: Name) -> bool | str:
    """Whether a header has to say what a table or its column was called; or why none can."""
    model = _model(opened, name)
    if model is None:
        return False
    if name.kind is NameKind.MODEL:
        if (
            not model.in_catalog
            or model.relation.name != name.name
            or rename_checks.table_reason(opened, model) is None
        ):
            return False
        if model.computed_when_read:
            return (
                f"the table '{model.relation.name}' has the model's name: set 'alias: {name.name}' in its header first"
            )
        return True
    return model.keeps_rows and rename_checks.table_reason(opened, model) is not None


def _keeping(opened: OpenProject, name: Name, new: str) -> TextChange | None:
    model = _model(opened, name)
    head = header_text(model.file, opened.text(model.file)) if model is not None else None
    if model is None or head is None:
        return None
    if name.kind is NameKind.MODEL:
        return with_key(head, f"renamed_from: {name.name}")
    column = next((one.name for one in model.columns if one.name.lower() == name.name), name.name)
    return with_renamed_column(head, column, new)


def _by_hand(opened: OpenProject, name: Name, new: str) -> str:
    model = _model(opened, name)
    if model is None or name.kind is NameKind.MODEL:
        return f"the table '{name.name}' has the model's name: set 'alias: {name.name}' in its header first"
    reason = rename_checks.table_reason(opened, model)
    header_entry = f"columns: {{{new}: {{renamed_from: {name.name}}}}}"
    return f"{reason}; write '{header_entry}' in the header, and rename it by hand"
