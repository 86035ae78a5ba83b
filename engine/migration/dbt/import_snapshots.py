"""dbt's snapshots as drafts of models that keep the history of each key."""

from __future__ import annotations

from engine.migration.dbt.import_context import ImportContext, ModelDraft
from engine.migration.dbt.import_models import add_item, model_file
from engine.migration.dbt.model_text import common_header, model_text, query_text, table_header
from engine.migration.dbt.read_manifest import DbtNode, text_of, texts_of
from engine.migration.output.import_report import ImportOutcome, plain

_CHECK = (
    "the strategy 'check' compares columns of two runs; history here needs a stream of changes with a column that "
    "orders the versions of a key (sequence_by)"
)
_COLUMNS = "dbt_valid_from and dbt_valid_to are valid_from and valid_to here; is_current says which version counts"


def import_snapshots(context: ImportContext) -> None:
    """Add a draft for each snapshot whose versions have an order."""
    for node in context.manifest.nodes.values():
        if node.kind == "snapshot" and node.package == context.manifest.project:
            _import(context, node)


def _import(context: ImportContext, node: DbtNode) -> None:
    keys, order = texts_of(node.config, "unique_key"), text_of(node.config, "updated_at")
    if text_of(node.config, "strategy") != "timestamp" or not keys or not order:
        add_item(context, node, ImportOutcome.NOT_IMPORTED, _CHECK)
        return
    notes = [_COLUMNS]
    shared = common_header(context, node)
    placed = table_header(context, node, notes, stored=True)
    placed.pop("schema", None)
    query = query_text(context, node.code)
    history = {"unique_key": keys, "sequence_by": order, "history": True}
    inputs = [".".join(context.names.sources[source.text("source_name"), source.name])
              for parent in node.parents if (source := context.manifest.sources.get(parent)) is not None]  # fmt: skip
    inputs += [name for parent in node.parents if (name := context.names.models.get(parent))]
    comments = [
        f"DRAFT of the dbt snapshot {plain(node.name)}.",
        "dbt looks at a table now and then; a stream reads each change. Decide, and remove 'enabled: false':",
        "1. Is there a source of changes (a topic, files, an append-only table)? List it under streams:.",
        "2. Are rows deleted? delete_when: op = 'd'",
    ]
    draft = {**shared, "enabled": False, "streams": inputs[:1], **history, **placed}
    name = context.files.add(model_file(context, node), model_text(draft, query, comments))
    as_stream = model_text({**shared, "streams": inputs[:1], **history, **placed}, query)
    as_table = model_text({**shared, "materialized": "table", **placed}, query)
    context.drafts[context.names.models[node.id]] = ModelDraft(node.id, as_table, as_stream if inputs else "")
    reason = f"snapshot ({plain(', '.join(keys))} by {plain(order)}): needs a stream of changes"
    add_item(context, node, ImportOutcome.DRAFT, reason, file=name, notes=tuple(notes))
