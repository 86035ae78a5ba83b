"""What dbt has beside models: analyses stay files, hooks of runs are named with their text and what to do instead."""

from __future__ import annotations

import re
from typing import Final

from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item
from engine_import.dbt.manifest.new_names import valid_name
from engine_import.dbt.manifest.read_manifest import DbtNode, texts_of
from engine_import.dbt.model_text import line_notes, query_text
from engine_import.output.import_report import ImportOutcome, plain
from engine_import.output.new_project import safe_folders

_ANALYSES = "analyses"
_START = "on-run-start"
# By how the statement begins; the first that fits. Statements of one run have no session of their own here.
_ANSWERS: Final = (
    (r"(grant|revoke)\b", "rights are given in the catalog, once for a schema"),
    (r"create\s+schema\b", "not needed: schemas are created when a table is built"),
    (r"create\s+(or\s+replace\s+)?(temp\w*\s+)?function\b", "write the function as a macro under macros/"),
    (r"(vacuum|optimize|analyze)\b", "not needed: engine maintain compacts and expires"),
    (r"(set|alter\s+session)\b", "set it in the target, under spark: {conf: ..}"),
)
_MACRO = "a macro that runs a statement cannot be called: run the statement before or after engine build"
_LONGEST = 200


def import_analyses(context: ImportContext) -> None:
    """Add a file under analyses/ for each analysis; the engine does not read that folder."""
    for node in context.manifest.nodes.values():
        if node.kind != "analysis" or node.package != context.manifest.project or not node.code.strip():
            continue
        folders = safe_folders(node.path)
        path = "/".join(
            (_ANALYSES, *folders[folders[:1] in (("analyses",), ("analysis",)) :], f"{valid_name(node.name)}.sql")
        )
        query = query_text(context, node.code)
        text = f"{query.text}\n"
        file = context.files.add(path, text)
        note = f'not compiled with the others: engine compile --inline "$(cat {file})" checks it, show --inline runs it'
        add_item(context, node, ImportOutcome.IMPORTED, file=file, notes=(note, *line_notes(text, query)))


def import_run_hooks(context: ImportContext) -> None:
    for node in context.manifest.nodes.values():
        if node.kind == "operation" and node.package == context.manifest.project:
            add_item(context, node, ImportOutcome.NOT_IMPORTED, _reason(node), kind="hook")


def _reason(node: DbtNode) -> str:
    when = _START if _START in (*texts_of(node.data, "tags"), *texts_of(node.config, "tags")) else "on-run-end"
    text = plain(node.code)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{when}: {shown}: {_answer(text, first=when == _START)}"


def _answer(text: str, *, first: bool) -> str:
    for pattern, answer in _ANSWERS:
        if re.match(pattern, text, re.IGNORECASE):
            return answer
    if text.startswith(("{{", "{%")):
        return _MACRO
    return "write it as " + (
        "pre_hook of the model that is built first" if first else "post_hook of the model that is built last"
    )
