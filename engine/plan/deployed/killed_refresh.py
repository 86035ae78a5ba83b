"""What becomes of a full refresh that was killed: the marker of its last commit decides."""

from __future__ import annotations

from dataclasses import replace

from engine.compile import Model
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.generations import has_published
from engine.state import ModelState, Phase


def published_refresh(model: Model, pending: ModelState, table: TableFacts | None) -> ModelState | None:
    """Return the state of a generation whose marker is in the model's table; None: the one before still counts."""
    if table is None or not has_published(table.history, pending):
        return None
    return as_published(model, pending, table.uuid, table.snapshot)


def as_published(model: Model, state: ModelState, uuid: str, snapshot: int | None) -> ModelState:
    """Return the state of a generation that is the table's by now."""
    return replace(state, table=str(model.relation), phase=Phase.PUBLISHED, uuid=uuid, snapshot=snapshot)
