"""What becomes of a full refresh that was interrupted.

Of one table the marker of its last commit decides. That all tables of the run are rebuilt is noted beside the state of
each before the first of them is touched, and forgotten when the table is: what streams from a rebuilt table has to be
rebuilt, too, so that the next build finishes what was begun.
"""

from __future__ import annotations

from dataclasses import replace

from engine.compile import Model
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.generations import has_published
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh


def published_refresh(model: Model, pending: ModelState, table: TableFacts | None) -> ModelState | None:
    """Return the state of a generation whose marker is in the model's table; None: the one before still counts."""
    if table is None or not has_published(table.history, pending):
        return None
    return as_published(model, pending, table.uuid, table.snapshot)


def as_published(model: Model, state: ModelState, uuid: str, snapshot: int | None) -> ModelState:
    return replace(state, table=str(model.relation), phase=Phase.PUBLISHED, uuid=uuid, snapshot=snapshot)


def begun_refresh(folder: TableState, state: ModelState | None) -> Refresh | None:
    """Return the full refresh that the next build has to finish.

    Raises:
        StateError: `state-unreadable`.
    """
    begun = folder.journal.begun(Refresh)
    if begun is None or (state is not None and state.phase is Phase.PUBLISHED and state.generation > begun.before):
        return None
    return begun
