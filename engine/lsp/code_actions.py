"""Edits that findings ask for, and renaming a model in all files that name it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lsprotocol import types

from engine.lsp.open_project import OpenProject
from engine.lsp.text_positions import location_of_position
from engine.project.yaml_section import is_table_name

EXPLAIN = "headrace.explain"
COMPILED_SQL = "headrace.compiledSql"
PLAN = "headrace.plan"
_MEANT = re.compile(r"Did you mean ((?:'[^']+'(?: or )?)+)\?")
_QUOTE = re.compile(r'Quote it: ("[^"]+")\.')


def code_actions(uri: str, text: str, found: Sequence[types.Diagnostic]) -> list[types.CodeAction]:
    """Return the edits that the hints of some diagnostics name, and the explanation of each code."""
    return [action for diagnostic in found for action in _actions(uri, text, diagnostic)]


def _actions(uri: str, text: str, found: types.Diagnostic) -> Iterator[types.CodeAction]:
    if (meant := _MEANT.search(found.message)) is not None:
        begin = location_of_position(found.range.start, text, "")
        end = location_of_position(found.range.end, text, "")
        written = text.split("\n")[begin.line - 1][begin.column - 1 : end.column - 1]
        for name in re.findall(r"'([^']+)'", meant[1]):
            if "{{" not in written:
                yield _edit(uri, f"Change to '{name}'", found, name)
    if (quoted := _QUOTE.search(found.message)) is not None:
        # The item reaches to where its text, of several parts, ends.
        raw = quoted[1].strip('"')
        begin = location_of_position(found.range.start, text, "")
        line = text.split("\n")[begin.line - 1]
        if line.startswith(raw, begin.column - 1):
            start = found.range.start
            place = types.Range(start, types.Position(start.line, start.character + len(raw)))
            edit = types.WorkspaceEdit({uri: [types.TextEdit(place, quoted[1])]})
            yield types.CodeAction("Quote it", types.CodeActionKind.QuickFix, [found], edit=edit)
    title = f"Explain '{found.code}'"
    command = types.Command(title, EXPLAIN, arguments=[found.code])
    yield types.CodeAction(title, types.CodeActionKind.Empty, [found], command=command)


def _edit(uri: str, title: str, found: types.Diagnostic, text: str) -> types.CodeAction:
    edit = types.WorkspaceEdit({uri: [types.TextEdit(found.range, text)]})
    return types.CodeAction(title, types.CodeActionKind.QuickFix, [found], edit=edit)


def explanation_text(code: str) -> str:
    """Return what a code means, in Markdown; empty for one that does not exist."""
    from engine.diagnostics.explanations import explanations

    one = explanations().get(code)
    return "" if one is None else f"# {one.code}\n\n{one.summary}\n\n{one.cause}\n\n{one.fix}\n"


def renamed_model(opened: OpenProject, old: str, new: str) -> types.WorkspaceEdit | str:
    """Return the edits that rename a model in all files, or why it cannot be done.

    Tables and state have the model's name: a table that exists is not renamed by this.
    """
    if opened.compiled is None or opened.manifest.errors:
        return "the project has errors; fix them first"
    if not is_table_name(new) or f"model.{new}" in opened.manifest.nodes:
        return f"'{new}' is taken, or is not a valid model name"
    model, project = opened.manifest.model(old), opened.compiled.project
    if model.stored and model.relation.name == old:
        return f"the table '{model.relation.name}' has the model's name: set 'alias: {old}' in its header first"
    call = re.compile(rf"(\bref\(\s*['\"]){re.escape(old)}(?=['\"]\s*\))")
    files = [model.file for model in project.models] + list(project.texts) + [file for file, _ in project.singular]
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    for file in dict.fromkeys(files):
        text = opened.text(file)
        after = call.sub(rf"\g<1>{new}", text)
        if re.search(rf"\b{re.escape(old)}\b", call.sub("", after)) and file != model.file:
            return f"{file} names '{old}' in other ways than ref('{old}'), which may mean something else"
        if after != text:
            end = types.Position(text.count("\n") + 1, 0)
            edit = types.TextEdit(types.Range(types.Position(0, 0), end), after)
            document = types.OptionalVersionedTextDocumentIdentifier((opened.root / file).as_uri())
            changes.append(types.TextDocumentEdit(document, [edit]))
    path = opened.root / model.file
    changes.append(types.RenameFile(path.as_uri(), path.with_name(f"{new}.sql").as_uri()))
    return types.WorkspaceEdit(document_changes=changes)
