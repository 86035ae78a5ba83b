"""What an edit of a model does to the consumers of its sinks: a delivered column that goes or gets another type."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from engine.compile import Manifest, Model, Sink
from engine.compile.nodes.delivered_columns import delivered_columns
from engine.errors import Diagnostic, Location
from engine.lake.catalog.iceberg_types import spark_struct
from engine.lake.schema_match import type_text
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.plan.tables.column_checks import is_certain, model_struct

# The consequence that the user accepts by this name.
SINK_SCHEMA = "sink-schema"


def sink_faults(
    manifest: Manifest, model: Model, deployed_model: DeployedModel, accept: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield the delivered columns that an edited model drops or retypes, as far as compile knows its columns.

    What a sink has delivered is in its target, which a plan of a build does not ask: the columns of the table count.
    """
    sinks = [sink for sink in manifest.sinks if sink.model == model.id]
    if not sinks or SINK_SCHEMA in accept or deployed_model.table is None:
        return
    table, query = spark_struct(deployed_model.table.fields), model_struct(model)
    if table is None or query is None:
        return
    renamed = {new.lower(): old.lower() for old, new in deployed_model.columns_renamed.items()}
    types_before = {renamed.get(name, name): type_ for name, type_ in _types(table).items()}
    types_after = {**_types(query), **{name.lower(): "" for name in model.write.history.columns}}
    certain = {column.name.lower() for column in model.columns if is_certain(manifest, column)}
    for sink in sinks:
        changes = []
        for name in delivered_columns(manifest, model, sink, types_before):
            before, after = types_before.get(name), types_after.get(name)
            if before is not None and after is None:
                changes.append((name, f"drops the column '{name}'"))
            elif before and after and before != after and name in certain:
                changes.append((name, f"changes the column '{name}' from {before} to {after}"))
        if changes:
            yield _fault(model, sink, changes)


def _fault(model: Model, sink: Sink, changes: list[tuple[str, str]]) -> Diagnostic:
    texts = "; it ".join(text for _, text in changes)
    pronoun = "it" if len(changes) == 1 else "them"
    message = f"the edit of '{model.name}' {texts}; the sink '{sink.name}' delivers {pronoun} to {sink.place}"
    hint = (
        f"Keep {pronoun}, or list the other columns in the sink (columns: [..]). If its consumers are ready: "
        f"engine build -s {model.name} --accept {SINK_SCHEMA}"
    )
    return Diagnostic(SINK_SCHEMA, message, hint, node=model.name, location=Location(model.file))


def _types(struct: Mapping[str, Any]) -> dict[str, str]:
    return {field["name"].lower(): type_text(field["type"]).lower() for field in struct["fields"]}
