"""Where the state of a model's table is, and which build wrote it."""

from __future__ import annotations

from collections.abc import Mapping

from engine.compile import Manifest, Model, Target
from engine.state import TableState


def table_state(target: Target, model: Model) -> TableState:
    """Return the state folder of a model's table."""
    relation = model.relation
    return TableState(target.state, relation.catalog, relation.schema, relation.name)


def environment(manifest: Manifest, target: Target) -> Mapping[str, str]:
    """Return the project, the target and the target's schema."""
    return {"project": manifest.project, "target": target.name, "schema": target.schema}
