"""Renaming over all files: what is at a place, and the changes; one that would change meaning is rejected."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
from engine.lsp.edits.rename_limits import limit
from engine.lsp.names.named_places import Name, NamedPlace, NameKind
from engine.lsp.names.project_names import place_at, places_in, places_of
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import location_of_position, range_at
from engine.project.model_header import location_of
from engine.project.yaml_section import is_name, is_table_name

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
