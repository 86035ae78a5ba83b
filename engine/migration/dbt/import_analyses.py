"""dbt's analyses: queries that are compiled and never built stay files, with the names of the new project."""

from __future__ import annotations

from engine.migration.dbt.import_context import ImportContext
from engine.migration.dbt.import_models import add_item
from engine.migration.dbt.manifest.new_names import valid_name
from engine.migration.dbt.model_text import query_text
from engine.migration.output.import_report import ImportOutcome
from engine.migration.output.new_project import safe_folders

_ANALYSES = "analyses"


def import_analyses(context: ImportContext) -> None:
    """Add a file under analyses/ for each analysis of the project; the engine does not read that folder."""
    for node in context.manifest.nodes.values():
        if node.kind != "analysis" or node.package != context.manifest.project or not node.code.strip():
            continue
        folders = safe_folders(node.path)
        path = "/".join(
            (_ANALYSES, *folders[folders[:1] in (("analyses",), ("analysis",)) :], f"{valid_name(node.name)}.sql")
        )
        file = context.files.add(path, f"{query_text(context, node.code)}\n")
        note = f'not compiled with the others: engine compile --inline "$(cat {file})" checks it, show --inline runs it'
        add_item(context, node, ImportOutcome.IMPORTED, file=file, notes=(note,))
