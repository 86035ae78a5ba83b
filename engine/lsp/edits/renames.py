"""Renaming over all files: what is at a place, and the changes; one that would change meaning is rejected."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from lsprotocol import types

from engine.compile import Model, Source
from engine.errors import EngineError
from engine.lsp.answers.editor_answers import name_at, node_at, references
from engine.lsp.answers.hovers import output_at
from engine.lsp.edits import column_rename, rename_checks
from engine.lsp.edits.header_edits import header_text, with_key, with_renamed_column
from engine.lsp.edits.text_changes import TextChange, workspace_edit
from engine.lsp.opened.header_places import header_place, meaning
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import location_of_position, offset_of, range_word
from engine.lsp.text.text_segments import TextKind, segments
from engine.project.yaml_section import is_table_name

_NAME = re.compile(r"[A-Za-z_]\w{0,200}")
Edit = types.WorkspaceEdit | str


def renamed(opened: OpenProject, file: str, position: types.Position, new: str) -> Edit:
    """Return the edit that renames what is at a place, or why it is not renamed."""
    if opened.compiled is None or opened.manifest.errors:
        return "the project has errors; fix them first"
    text = opened.text(file)
    place = location_of_position(position, text, file)
    word = range_word(text.split("\n")[place.line - 1], place.column - 1)
    if any(macro.name == word for macro in opened.manifest.macros) and _in_jinja(text, offset_of(place, text)):
        return renamed_macro(opened, word, new)
    node = node_at(opened, file, place)
    if node is not None and node.startswith("model."):
        return renamed_model(opened, node.removeprefix("model."), new)
    if node is not None:
        return renamed_source(opened, node, word, new)
    column = _column_at(opened, file, text, position)
    if column is not None:
        return renamed_column(opened, *column, new)
    return "put the cursor on a model or source in ref(), source() or the header, on a column, or on a macro"


def named_places(opened: OpenProject, file: str, position: types.Position) -> list[types.Location]:
    """Return where the project names what is at a place: a column, or else a model or source."""
    column = _column_at(opened, file, opened.text(file), position)
    model = opened.manifest.nodes.get(column[0]) if column else None
    if column is None or not isinstance(model, Model):
        return references(opened, file, position)
    size = len(column[1])
    changes = column_rename.changes(opened, model, column[1], column[1])
    # One that inserts an alias comes after the name.
    words = [one if one.length else replace(one, start=one.start - size, length=size) for one in changes]
    edits = workspace_edit(opened, words).changes or {}
    return [types.Location(uri, edit.range) for uri, found in edits.items() for edit in found]


def _column_at(opened: OpenProject, file: str, text: str, position: types.Position) -> tuple[str, str] | None:
    """The node and the column at a place: one that the model itself makes, or one that it reads."""
    place = location_of_position(position, text, file)
    model = opened.model_of(file)
    if model is None:
        return None
    found = header_place(text, place)
    said = meaning(opened, model, *found) if found else None
    if said is not None and said.column is not None:
        return said.column.node or model.id, said.column.name
    name = name_at(opened, file, place)
    if name is not None:
        return name.origins[0] if len(name.origins) == 1 else None
    word = range_word(text.split("\n")[place.line - 1], place.column - 1)
    output = output_at(opened, file, place, word)
    return (model.id, output.name) if output else None


def _in_jinja(text: str, offset: int) -> bool:
    return any(part.kind is TextKind.JINJA and part.start <= offset < part.end for part in segments(text))


def _checked(opened: OpenProject, changes: list[TextChange], differs: Callable[..., str]) -> Edit:
    """The edit, if the project with it compiles to the same."""
    try:
        reason = rename_checks.reason_against(opened, changes, differs)
    except EngineError as error:
        reason = str(error)
    return reason or workspace_edit(opened, changes)


def renamed_column(opened: OpenProject, node_id: str, column: str, new: str) -> Edit:
    """Return the edit that renames a column of a model for all that read it; their own columns keep their names.

    Where there is a table, the header says what its column was called (`renamed_from`), and the next build renames it.
    """
    model = opened.manifest.nodes.get(node_id)
    if not isinstance(model, Model):
        return "columns of a source are named by its data; rename it in the query: column as name"
    if not _NAME.fullmatch(new) or new.lower() in {one.name.lower() for one in model.columns}:
        return f"'{new}' is taken, or is not a valid column name"
    changes = column_rename.changes(opened, model, column, new)
    if not changes:
        return f"the text of '{model.name}' does not name the column"
    stored = model.keeps_rows
    if stored and (reason := rename_checks.table_reason(opened, model)) is not None:
        head = header_text(model.file, opened.text(model.file))
        said = with_renamed_column(head, column, new) if head is not None else None
        if said is None:
            return (
                f"{reason}; write 'columns: {{{new}: {{renamed_from: {column}}}}}' in the header, and rename it by hand"
            )
        changes = [*changes, said]
    return _checked(opened, changes, rename_checks.columns_but(model.id, column, new))


def renamed_macro(opened: OpenProject, old: str, new: str) -> Edit:
    """Return the edit that renames a macro of the project where it is defined and called."""
    if not _NAME.fullmatch(new) or any(macro.name == new for macro in opened.manifest.macros):
        return f"'{new}' is taken, or is not a valid macro name"
    called = re.compile(rf"\b{re.escape(old)}(?=\s*\()")
    changes = []
    for file in opened.files():
        text = opened.text(file)
        for part in segments(text) if file.endswith(".sql") else ():
            if part.kind in {TextKind.JINJA, TextKind.HEADER}:
                inside = called.finditer(text, part.start, part.end)
                changes += [TextChange(file, found.start(), len(old), new) for found in inside]
    return _checked(opened, changes, rename_checks.queries_but())


def renamed_source(opened: OpenProject, node_id: str, word: str, new: str) -> Edit:
    """Return the edit that renames a table of a source; streams that have read it would begin again."""
    source = opened.manifest.nodes.get(node_id)
    if not isinstance(source, Source) or word.rpartition(".")[2] != source.table:
        return "put the cursor on the name of the source's table: the second of source()"
    if not is_table_name(new) or f"source.{source.source}.{new}" in opened.manifest.nodes:
        return f"'{new}' is taken, or is not a valid name"
    for model in opened.manifest.models:
        streams = any(item.node == node_id and item.stream for item in model.inputs)
        if streams and (reason := rename_checks.table_reason(opened, model)) is not None:
            return f"its stream has the source's name: {reason}"
    call = re.compile(rf"source\(\s*['\"]{source.source}['\"]\s*,\s*['\"]({source.table})(?=['\"])")
    dotted = re.compile(rf"(?<![\w.]){source.source}\.({source.table})(?=\s*:|\s*[,\]\n])")
    changes = []
    for file in opened.files():
        text = opened.text(file)
        places = [*call.finditer(text), *dotted.finditer(text)]
        changes += [TextChange(file, found.start(1), len(source.table), new) for found in places]
    declared = _declaration(opened, source)
    if declared is None:
        return f"the declaration of '{source.name}' was not found in {source.file}"
    return _checked(opened, [*changes, replace(declared, text=new)], rename_checks.source_but(source, new))


def _declaration(opened: OpenProject, source: Source) -> TextChange | None:
    if source.location is None:
        return None
    text = opened.text(source.file)
    begin = offset_of(source.location, text)
    found = re.compile(rf"\b{source.table}\b").search(text, begin)
    named = text[begin : found.start()] if found else ""
    return TextChange(source.file, found.start(), len(source.table), "") if found and "\n" not in named else None


def renamed_model(opened: OpenProject, old: str, new: str) -> Edit:
    """Return the edit that renames a model in all files, or why it cannot be done.

    A table that has the model's name keeps its rows and its state: the header says what it was (`renamed_from`), and
    the next build renames it.
    """
    if opened.compiled is None or opened.manifest.errors:
        return "the project has errors; fix them first"
    if not is_table_name(new) or f"model.{new}" in opened.manifest.nodes:
        return f"'{new}' is taken, or is not a valid model name"
    model = opened.manifest.model(old)
    call = re.compile(rf"(?<=ref\(['\"]){re.escape(old)}(?=['\"]\s*\))")
    changes: list[TextChange] = []
    if model.stored and model.relation.name == old and rename_checks.table_reason(opened, model) is not None:
        head = header_text(model.file, opened.text(model.file))
        said = with_key(head, f"renamed_from: {old}") if head is not None else None
        if model.computed_when_read or said is None:
            return f"the table '{model.relation.name}' has the model's name: set 'alias: {old}' in its header first"
        changes.append(said)
    for file in opened.files():
        text = opened.text(file)
        if file != model.file and re.search(rf"\b{re.escape(old)}\b", call.sub("", text)):
            return f"{file} names '{old}' in other ways than ref('{old}'), which may mean something else"
        changes += [TextChange(file, found.start(), len(old), new) for found in call.finditer(text)]
    edit = workspace_edit(opened, changes)
    documents: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = [
        types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), list(edits))
        for uri, edits in (edit.changes or {}).items()
    ]
    path = opened.root / model.file
    documents.append(types.RenameFile(path.as_uri(), path.with_name(f"{new}.sql").as_uri()))
    return types.WorkspaceEdit(document_changes=documents)
