"""Edits that findings ask for, tests for a column, and the explanation of each code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lsprotocol import types

from engine.lsp.answers.editor_commands import EXPLAIN
from engine.lsp.answers.hovers import output_at
from engine.lsp.edits.header_edits import (
    TextChange,
    header_text,
    with_key,
    with_test,
    with_watermark,
    with_window,
    workspace_edit,
)
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import location_of_position, range_word

_MEANT = re.compile(r"Did you mean ((?:'[^']+'(?: or )?)+)\?")
_QUOTE = re.compile(r'Quote it: ("[^"]+")\.')
_WATERMARK = re.compile(r"[Ss]et streams: \{([\w.]+): \{watermark: ([^{}]+)\}\}")
_WINDOW = re.compile(r'windows: \{(\w+): "([^"]+)"\}')
_MODE = re.compile(r"set (output_mode: \w+)\.")
_NEEDS_DEDUP = "dedup-needs-watermark"
_TESTS = ("not_null", "unique")
Action = types.CodeAction


def code_actions(
    opened: OpenProject, file: str, place: types.Range, diagnostics: Sequence[types.Diagnostic]
) -> list[Action]:
    actions = [action for diagnostic in diagnostics for action in _actions(opened, file, diagnostic)]
    return [*actions, *_tests(opened, file, place.start)]


def _actions(opened: OpenProject, file: str, diagnostic: types.Diagnostic) -> Iterator[Action]:
    text = opened.text(file)
    if (suggestion := _MEANT.search(diagnostic.message)) is not None:
        begin = location_of_position(diagnostic.range.start, text, "")
        end = location_of_position(diagnostic.range.end, text, "")
        written = text.split("\n")[begin.line - 1][begin.column - 1 : end.column - 1]
        for name in re.findall(r"'([^']+)'", suggestion[1]):
            if "{{" not in written:
                yield _replacing(
                    opened, file, f"Change to '{name}'", diagnostic, types.TextEdit(diagnostic.range, name)
                )
    if (quoted := _QUOTE.search(diagnostic.message)) is not None:
        # The item reaches to where its text, of several parts, ends.
        raw = quoted[1].strip('"')
        begin = location_of_position(diagnostic.range.start, text, "")
        if text.split("\n")[begin.line - 1].startswith(raw, begin.column - 1):
            start = diagnostic.range.start
            place = types.Range(start, types.Position(start.line, start.character + len(raw)))
            yield _replacing(opened, file, "Quote it", diagnostic, types.TextEdit(place, quoted[1]))
    yield from _header_actions(opened, file, diagnostic)
    title = f"Explain '{diagnostic.code}'"
    command = types.Command(title, EXPLAIN, arguments=[diagnostic.code])
    yield Action(title, types.CodeActionKind.Empty, [diagnostic], command=command)


def _replacing(
    opened: OpenProject, file: str, title: str, diagnostic: types.Diagnostic, edit: types.TextEdit
) -> Action:
    changes = types.WorkspaceEdit({(opened.root / file).as_uri(): [edit]})
    return Action(title, types.CodeActionKind.QuickFix, [diagnostic], edit=changes)


def _header_actions(opened: OpenProject, file: str, diagnostic: types.Diagnostic) -> Iterator[Action]:
    head = header_text(file, opened.text(file))
    if head is None:
        return
    watermark, window, mode = (one.search(diagnostic.message) for one in (_WATERMARK, _WINDOW, _MODE))
    changes_or_none: list[TextChange | None] = []
    titles = []
    if watermark is not None:
        changes_or_none.append(with_watermark(head, watermark[1], watermark[2]))
        titles.append(f"the watermark of '{watermark[1]}'")
    if window is not None:
        changes_or_none.append(with_window(head, window[1], window[2]))
        titles.append(f"the window '{window[1]}'")
    changes = [change for change in changes_or_none if change is not None]
    if changes and len(changes) == len(changes_or_none):
        yield _fixing(opened, f"Add {' and '.join(titles)} to the header", diagnostic, changes)
    if diagnostic.code == _NEEDS_DEDUP:
        for stream, column in _times(opened, file, diagnostic.message):
            change = with_watermark(head, stream, f"{column} delay 30 minutes")
            if change is not None:
                yield _fixing(opened, f"Add a watermark on '{column}'", diagnostic, [change])
    if mode is not None and (change := with_key(head, mode[1])) is not None:
        yield _fixing(opened, f"Set {mode[1]}", diagnostic, [change])


def _times(opened: OpenProject, file: str, message: str) -> Iterator[tuple[str, str]]:
    edited = opened.analysed(file)
    for node, columns in ((edited.inputs or {}) if edited else {}).items():
        name = node.partition(".")[2]
        if f"'{name}'" in message:
            yield from ((name, column) for column, type_ in columns if type_ in {"timestamp", "timestamp_ntz"})


def _fixing(opened: OpenProject, title: str, diagnostic: types.Diagnostic, changes: list[TextChange]) -> Action:
    edit = workspace_edit(opened, changes)
    return Action(title, types.CodeActionKind.QuickFix, [diagnostic], edit=edit)


def _tests(opened: OpenProject, file: str, position: types.Position) -> Iterator[Action]:
    text = opened.text(file)
    edited, head = opened.analysed(file), header_text(file, text)
    if edited is None or head is None:
        return
    place = location_of_position(position, text, file)
    word = range_word(text.split("\n")[place.line - 1], place.column - 1)
    column = output_at(opened, file, place, word)
    if column is None:
        pairs, column_name = zip(edited.model.columns, edited.outputs, strict=False), word.rpartition(".")[2]
        column = next((one for one, at in pairs if (at.line, one.name) == (place.line, column_name)), None)
    for test in _TESTS if column is not None else ():
        change = with_test(head, column.name, test) if column else None
        if change is not None and column is not None:
            edit = workspace_edit(opened, [change])
            yield Action(f"Add the test '{test}' to '{column.name}'", types.CodeActionKind.RefactorRewrite, edit=edit)
