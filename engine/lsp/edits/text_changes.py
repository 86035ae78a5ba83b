"""Changes of several files as one edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lsprotocol import types

from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text.text_positions import position_of
from engine.project.model_header import location_of


@dataclass(frozen=True, slots=True)
class TextChange:
    """So many characters of a file, from an offset on, become another text."""

    file: str
    start: int
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class ProjectChange:
    changes: tuple[TextChange, ...]
    moved: tuple[tuple[str, str], ...] = ()


def changed_texts(opened: OpenProject, changes: Iterable[TextChange]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    # From the end on, so that offsets stay right.
    for change in sorted(set(changes), key=lambda one: (one.file, -one.start)):
        text = texts.get(change.file, opened.text(change.file))
        texts[change.file] = text[: change.start] + change.text + text[change.start + change.length :]
    return texts


def workspace_edit(opened: OpenProject, changes: Iterable[TextChange]) -> types.WorkspaceEdit:
    by_file: dict[str, list[types.TextEdit]] = {}
    for change in sorted(set(changes), key=lambda one: (one.file, one.start)):
        text = opened.text(change.file)
        begin, end = (location_of(text, at, change.file) for at in (change.start, change.start + change.length))
        place = types.Range(position_of(begin, text), position_of(end, text))
        by_file.setdefault((opened.root / change.file).as_uri(), []).append(types.TextEdit(place, change.text))
    return types.WorkspaceEdit(by_file)


def moving_edit(opened: OpenProject, change: ProjectChange) -> types.WorkspaceEdit:
    """Return the changes in the protocol's form, with files that get other names behind them."""
    edit = workspace_edit(opened, change.changes)
    if not change.moved:
        return edit
    documents: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = [
        types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), list(edits))
        for uri, edits in (edit.changes or {}).items()
    ]
    for old, new in change.moved:
        documents.append(types.RenameFile((opened.root / old).as_uri(), (opened.root / new).as_uri()))
    return types.WorkspaceEdit(document_changes=documents)
