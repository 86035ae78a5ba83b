"""dbt's models as models: views, tables, ephemeral ones; incremental ones as drafts; the rest with its reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine_import.dbt.import_context import ImportContext, ModelDraft
from engine_import.dbt.manifest.read_manifest import DbtNode, text_of, texts_of
from engine_import.dbt.model_text import common_header, line_notes, model_text, query_text, table_header
from engine_import.output.import_report import ImportOutcome, Item, plain
from engine_import.output.new_project import safe_folders
from engine_import.templates.incremental_blocks import FullQuery, full_query
from engine_import.templates.template_parts import PieceKind, pieces

_KINDS = {"view": "view", "table": "table", "ephemeral": "ephemeral"}
_REFRESHED = ("materialized_view", "dynamic_table", "streaming_table")
_PYTHON = (
    "a Python model: a model here is one SELECT; write it in SQL, or run the program elsewhere and read its table as a "
    "source"
)
# dbt writes these into a view, which keeps them until the next run.
_OF_A_RUN = re.compile(r"\b(run_started_at|invocation_id)\b")
_CODE = (PieceKind.EXPRESSION, PieceKind.BLOCK)
_DECIDE = "decide which input it reads incrementally"


def import_models(context: ImportContext) -> None:
    for node in context.manifest.nodes.values():
        if node.kind == "model" and node.package == context.manifest.project:
            _import(context, node)


def model_file(context: ImportContext, node: DbtNode) -> str:
    return "/".join(("models", *safe_folders(node.path), f"{context.names.models[node.id]}.sql"))


def add_item(context: ImportContext, node: DbtNode, outcome: ImportOutcome, reason: str = "", **more: Any) -> None:
    name = context.names.models.get(node.id, node.name) if node.kind in ("model", "seed", "snapshot") else node.name
    kind = more.pop("kind", node.kind)
    context.items[node.id] = Item(kind, plain(name), outcome, origin=plain(node.file), reason=reason, **more)


def _import(context: ImportContext, node: DbtNode) -> None:
    if text_of(node.data, "language") == "python" or node.file.endswith(".py"):
        add_item(context, node, ImportOutcome.NOT_IMPORTED, _PYTHON)
        return
    kind = text_of(node.config, "materialized") or "view"
    notes: list[str] = []
    if kind == "incremental":
        _import_incremental(context, node, notes)
        return
    header = common_header(context, node)
    if kind == "view" and _reads_source(context, node):
        header["materialized"] = "table"
        notes.append("was a view: a view over a source is a table here, rebuilt when the source has changed")
    elif kind == "view" and any(_OF_A_RUN.search(piece.inner) for piece in pieces(node.code) if piece.part in _CODE):
        header["materialized"] = "table"
        notes.append("was a view with a value of dbt's last run: a table here, with the value of the last build")
    elif kind in _KINDS:
        header["materialized"] = _KINDS[kind]
    else:
        header["materialized"] = "table"
        words = f"'{plain(kind)}' is a table here, rebuilt when an input has changed"
        notes.append(words if kind in _REFRESHED else f"{words}; the materialization itself is not imported")
    if kind != "ephemeral":
        header |= table_header(context, node, notes, stored=header["materialized"] == "table")
    elif any(tested == node.id for tested, _ in context.column_tests):
        notes.append("tests are not carried over: an ephemeral model has no table")
    # Only an incremental model has incremental runs.
    query = query_text(context, full_query(node.code).template)
    text = model_text(header, query.text)
    name = context.files.add(model_file(context, node), text)
    notes += line_notes(text, query)
    add_item(context, node, ImportOutcome.IMPORTED, file=name, notes=tuple(notes))


def _reads_source(context: ImportContext, node: DbtNode) -> bool:
    """Return whether a model reads a source, also through ephemeral models, whose query becomes its own."""
    asked, seen = list(node.parents), set[str]()
    while asked:
        parent = asked.pop()
        if parent in context.manifest.sources:
            return True
        other = context.manifest.nodes.get(parent)
        if other is not None and parent not in seen and text_of(other.config, "materialized") == "ephemeral":
            seen.add(parent)
            asked += other.parents
    return False


def _import_incremental(context: ImportContext, node: DbtNode, notes: list[str]) -> None:
    full = full_query(node.code)
    if full.unclear:
        notes.append("is_incremental() is used in a way that is not taken apart: write the query of a full refresh")
    translation = query_text(context, full.template)
    query = translation.text + _left_out(full)
    shared = common_header(context, node)
    placed = table_header(context, node, notes, stored=True)
    as_table = {**shared, "materialized": "table", **placed}
    if context.incremental == "table":
        notes.append("was incremental: each build that finds changed inputs rebuilds the table")
        text = model_text(as_table, query)
        name = context.files.add(model_file(context, node), text)
        notes += line_notes(text, translation)
        add_item(context, node, ImportOutcome.IMPORTED, file=name, notes=tuple(notes))
        return
    stream = _stream(context, node)
    comments = [_headline(node), *_decisions(context, node, full, stream)]
    text = model_text({**shared, "enabled": False, "materialized": "table", **placed}, query, comments)
    name = context.files.add(model_file(context, node), text)
    notes += line_notes(text, translation)
    as_stream = model_text({**shared, **stream, **placed}, query) if stream else ""
    new_name = context.names.models[node.id]
    context.drafts[new_name] = ModelDraft(node.id, model_text(as_table, query), as_stream)
    reason = f"incremental ({plain(_strategy(node))}): {_DECIDE}"
    add_item(context, node, ImportOutcome.DRAFT, reason, file=name, notes=tuple(notes))


def _strategy(node: DbtNode) -> str:
    strategy = text_of(node.config, "incremental_strategy") or ("merge" if _keys(node) else "append")
    return f"{strategy} on {', '.join(_keys(node))}" if _keys(node) else strategy


def _keys(node: DbtNode) -> list[str]:
    return texts_of(node.config, "unique_key")


def _headline(node: DbtNode) -> str:
    return f"DRAFT of the dbt model {plain(node.name)}: incremental, {plain(_strategy(node))}."


def _stream(context: ImportContext, node: DbtNode) -> dict[str, Any]:
    """Return the keys that read the only input as a stream; none for several inputs, or one without a table."""
    inputs = [parent for parent in node.parents if _spoken(context, parent)]
    if len(inputs) != 1:
        return {}
    keys: dict[str, Any] = {"streams": [_spoken(context, inputs[0])]}
    if _keys(node):
        keys["unique_key"] = _keys(node)
    return keys


def _spoken(context: ImportContext, parent: str) -> str:
    """Return an input as `streams:` names it; empty if it is not a source or table."""
    source = context.manifest.sources.get(parent)
    if source is not None:
        return ".".join(context.names.sources[source.text("source_name"), source.name])
    return context.names.models.get(parent, "")


def _decisions(context: ImportContext, node: DbtNode, full: FullQuery, stream: Mapping[str, Any]) -> list[str]:
    inputs = [spoken for parent in node.parents if (spoken := _spoken(context, parent))]
    chosen = ", ".join(stream.get("streams") or inputs[:1]) or "INPUT"
    several = f" (one or more of {', '.join(inputs)})" if len(inputs) > 1 else ""
    lines = [
        "Decide, and remove 'enabled: false':",
        f"1. Which input is read incrementally{several}? Its rows must only be added, not changed in place:",
        f"     streams: [{chosen}]        instead of 'materialized: table'",
    ]
    if _keys(node):
        lines.append("2. Rows of one key replace each other; without sequence_by the row that comes last counts:")
        lines.append(f"     unique_key: [{', '.join(map(plain, _keys(node)))}]")
        if full.stored:
            lines.append(f"     sequence_by: {plain(full.stored)}")
    else:
        lines.append("2. Rows are appended. If one can come twice: unique_key, or dedup of the stream.")
    lines.append("3. If it groups, joins streams or drops duplicates, it needs an event time:")
    column = plain(full.newest) or "TIME"
    lines.append(f"     streams: {{{chosen}: {{watermark: {column} delay 1 hour}}}}")
    lines.append("Or leave 'materialized: table': it is rebuilt whenever an input has changed.")
    return lines


def _left_out(full: FullQuery) -> str:
    """Return the parts of incremental runs as a Jinja comment, which renders to nothing."""
    if not full.left_out:
        return ""
    said = "\n".join(full.left_out).replace("#}", "# }").replace("{#", "{ #")
    return f"\n{{#- In dbt, in incremental runs only:\n{said}\n-#}}"
