"""Edits of a model's header: a watermark of a stream, a window, a key, a test of a column.

Changes of several files as one edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lsprotocol import types

from engine.errors import Location
from engine.lsp.opened.open_project import OpenProject
from engine.lsp.text import offset_of, position_of
from engine.project.model_header import location_of, split_header
from engine.project.parse_yaml import Path, Yaml


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


_END = re.compile(r"^[ \t]*---\*/", re.MULTILINE)
_NESTED = 2


@dataclass(frozen=True, slots=True)
class HeaderText:
    file: str
    text: str
    header: Yaml

    def key(self, path: Path) -> int | None:
        place = self.header.keys.get(path)
        return None if place is None else offset_of(place, self.text)

    def value(self, path: Path) -> int:
        return offset_of(self.header.values.get(path, Location(self.file)), self.text)

    def data(self, path: Path) -> object:
        """Return a value; None: there is none."""
        header_data: object = self.header.data
        for part in path:
            header_data = header_data.get(part) if isinstance(header_data, dict) else None
        return header_data


def header_text(file: str, text: str) -> HeaderText | None:
    """Return a file with its header; None: it has none, or one that cannot be edited."""
    header = split_header(text, file).header
    return HeaderText(file, text, header) if header is not None and header.keys and _END.search(text) else None


def with_watermark(head: HeaderText, stream: str, watermark: str) -> TextChange | None:
    """Return the change that gives a stream a watermark; None: it has one, or is not written so."""
    streams, path = head.data(("streams",)), ("streams", stream)
    if isinstance(streams, list) and stream in streams:
        begin = head.value(("streams",))
        end = head.text.find("]", begin)
        if head.text[begin] != "[" or end < 0:
            return None
        stream_entries = (
            f"{name}: {{watermark: {watermark}}}" if name == stream else f"{name}: {{}}" for name in streams
        )
        return TextChange(head.file, begin, end + 1 - begin, f"{{{', '.join(stream_entries)}}}")
    settings = head.data(path)
    if head.key(path) is None or (isinstance(settings, dict) and "watermark" in settings):
        return None
    return _with_pair(head, path, f"watermark: {watermark}")


def with_window(head: HeaderText, name: str, window: str) -> TextChange | None:
    """Return the change that declares a window; None: there is one of this name."""
    if head.key(("windows",)) is None:
        return with_key(head, f'windows: {{{name}: "{window}"}}')
    return None if head.key(("windows", name)) is not None else _with_pair(head, ("windows",), f'{name}: "{window}"')


def with_key(head: HeaderText, line: str) -> TextChange | None:
    """Return the change that adds a line at the end of a header; None: the key is there."""
    end = _END.search(head.text)
    if end is None or head.key((line.partition(":")[0],)) is not None:
        return None
    return TextChange(head.file, end.start(), 0, f"{line}\n")


def with_test(head: HeaderText, column: str, test: str) -> TextChange | None:
    """Return the change that adds a test to a column; None: it has tests."""
    path, columns = ("columns", column), head.data(("columns",))
    settings = head.data(path)
    if columns is None:
        return with_key(head, f"columns:\n  {column}: {{tests: [{test}]}}")
    if not isinstance(columns, dict) or (isinstance(settings, dict) and {"tests", "data_tests"} & settings.keys()):
        return None
    if head.key(path) is None:
        return _with_pair(head, ("columns",), f"{column}: {{tests: [{test}]}}")
    if isinstance(settings, str):
        begin = head.value(path)
        line_end = head.text.find("\n", begin)
        # A text of several lines is left as it is.
        if " #" in head.text[begin:line_end] or head.text[begin] in "|>" or "\n" in settings:
            return None
        described = f"{{description: {json.dumps(settings, ensure_ascii=False)}, tests: [{test}]}}"
        return TextChange(head.file, begin, line_end - begin, described)
    return _with_pair(head, path, f"tests: [{test}]")


def with_renamed_column(head: HeaderText, old: str, new: str) -> TextChange | None:
    """Return the change that says what a column was; None: the header has its columns as a list, or as texts."""
    columns, earlier = head.data(("columns",)), f"renamed_from: {old}"
    if columns is None:
        return with_key(head, f"columns: {{{new}: {{{earlier}}}}}")
    if not isinstance(columns, dict):
        return None
    stream_entries = next((name for name in columns if str(name).lower() == old.lower()), None)
    if stream_entries is None:
        return _with_pair(head, ("columns",), f"{new}: {{{earlier}}}")
    settings = columns[stream_entries]
    if not isinstance(settings, dict) or "renamed_from" in settings:
        return None
    return _with_pair(head, ("columns", stream_entries), earlier)


def _with_pair(head: HeaderText, path: Path, pair: str) -> TextChange | None:
    """The change that puts a pair at the begin of a mapping: in its braces, or on a line below its key."""
    key, value = head.key(path), head.value(path)
    if key is None:
        return None
    if head.text[value : value + 1] == "{":
        rest = "" if head.text[value + 1 :].lstrip().startswith("}") else ", "
        return TextChange(head.file, value + 1, 0, f"{pair}{rest}")
    line_end = head.text.find("\n", key)
    behind = head.text[key:line_end].partition(":")[2].partition(" #")[0].strip()
    if behind or line_end < 0:
        return None
    column = key - head.text.rfind("\n", 0, key) - 1
    return TextChange(head.file, line_end + 1, 0, f"{' ' * (column + _NESTED)}{pair}\n")
