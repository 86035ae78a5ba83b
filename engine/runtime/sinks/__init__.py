"""How the rows of a micro-batch reach the table: one module a way, all with a commit of ours."""

from __future__ import annotations

from engine.compile import Model
from engine.compile.nodes.model_settings import OnSchemaChange, OutputMode
from engine.runtime.sinks.deleted_keys import Deleted
from engine.runtime.sinks.merge_output import Merges
from engine.runtime.sinks.output import Appends, Output, Rewrites

__all__ = ["Output", "output_of"]


def output_of(
    model: Model,
    relation: str,
    deleted: Deleted | None = None,
    branch: str | None = None,
    *,
    scope: tuple[str, ...] = (),
    repeats: bool = False,
) -> Output:
    write = model.write
    if write.unique_key:
        return Merges(model, relation, deleted, branch, scope, repeats)
    kind = Rewrites if write.output_mode is OutputMode.COMPLETE else Appends
    ignore_new = write.on_schema_change is OnSchemaChange.IGNORE
    return kind(relation, write.write_options, ignore_new=ignore_new, branch=branch)
