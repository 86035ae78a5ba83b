"""dbt's snapshots as tables that keep the versions of each key: of both strategies."""

from __future__ import annotations

from typing import Any

from engine_import.dbt.import_context import ImportContext
from engine_import.dbt.import_models import add_item, model_file
from engine_import.dbt.manifest.read_manifest import DbtNode, text_of, texts_of
from engine_import.dbt.model_text import common_header, line_notes, model_text, query_text, table_header
from engine_import.output.import_report import ImportOutcome, plain

_COLUMNS = (
    "dbt_valid_from and dbt_valid_to are valid_from and valid_to here, is_current marks the current version; "
    "dbt_scd_id and dbt_updated_at are left out; versions that dbt has stored are not copied"
)
_OTHER = "the strategy '{}' is not one of dbt's own: timestamp and check"
_NEW_RECORD = "hard_deletes: new_record adds a row for a deleted key; here its version ends (deletes: close)"


def import_snapshots(context: ImportContext) -> None:
    for node in context.manifest.nodes.values():
        if node.kind == "snapshot" and node.package == context.manifest.project:
            _import(context, node)


def _import(context: ImportContext, node: DbtNode) -> None:
    keys, strategy = texts_of(node.config, "unique_key"), text_of(node.config, "strategy")
    versions = _versions(node, strategy)
    if not keys or not versions:
        add_item(context, node, ImportOutcome.NOT_IMPORTED, _OTHER.format(plain(strategy)))
        return
    notes = [_COLUMNS]
    if text_of(node.config, "hard_deletes") == "new_record":
        notes.append(_NEW_RECORD)
    placed = table_header(context, node, notes, stored=True)
    placed.pop("schema", None)
    header = {
        **common_header(context, node),
        "materialized": "table",
        "history": True,
        "unique_key": keys,
        **versions,
        # A snapshot of dbt's gets the columns that its query gets.
        **placed,
        "on_schema_change": "append_columns",
    }
    query = query_text(context, node.code)
    text = model_text(header, query.text)
    name = context.files.add(model_file(context, node), text)
    notes += line_notes(text, query)
    add_item(context, node, ImportOutcome.IMPORTED, file=name, notes=tuple(notes))


def _versions(node: DbtNode, strategy: str) -> dict[str, Any]:
    """Return the keys that decide when a version begins and ends; none if the strategy is not known."""
    keys: dict[str, Any] = {}
    if strategy == "timestamp" and (order := text_of(node.config, "updated_at")):
        keys["sequence_by"] = order
    elif strategy == "check" and (columns := texts_of(node.config, "check_cols")):
        keys["check"] = "all" if columns == ["all"] else columns
    if keys and _closes(node):
        keys["deletes"] = "close"
    return keys


def _closes(node: DbtNode) -> bool:
    """Return whether a key that the query no longer returns ends its version: dbt has two spellings."""
    ends = text_of(node.config, "hard_deletes") in ("invalidate", "new_record")
    return ends or node.config.get("invalidate_hard_deletes") is True
