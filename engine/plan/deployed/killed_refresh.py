"""What becomes of a full refresh that was interrupted.

Of one table the marker of its last commit decides. That all tables of the run are rebuilt is noted beside the state of
each before the first of them is touched, and forgotten when the table is: what streams from a rebuilt table has to be
rebuilt, too, so that the next build finishes what was begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.compile import Model
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.generations import has_published
from engine.state import ModelState, Phase, TableOperation, TableState


def published_refresh(model: Model, pending: ModelState, table: TableFacts | None) -> ModelState | None:
    """Return the state of a generation whose marker is in the model's table; None: the one before still counts."""
    if table is None or not has_published(table.history, pending):
        return None
    return as_published(model, pending, table.uuid, table.snapshot)


def as_published(model: Model, state: ModelState, uuid: str, snapshot: int | None) -> ModelState:
    return replace(state, table=str(model.relation), phase=Phase.PUBLISHED, uuid=uuid, snapshot=snapshot)


@dataclass(frozen=True, slots=True)
class BegunRefresh:
    """A full refresh of a table that was begun, and not finished.

    Attributes:
        at: when, UTC.
        accept: the consequences that the user accepted (see `engine.plan.actions.refresh_checks`).
        before: the generation of the table that is to be replaced; 0: there is none.
        attempt: the last generation that was begun instead, whose number does not come again: a run on another machine
            that was taken over may still be at it.
    """

    at: str
    accept: tuple[str, ...] = ()
    before: int = 0
    attempt: int = 0

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> BegunRefresh:
        """Read what `as_json` gave; a field that is missing has its default."""
        accept = data.get("accept")
        numbers = {key: value for key in ("before", "attempt") if isinstance(value := data.get(key), int)}
        return cls(str(data.get("at", "")), tuple(map(str, accept)) if isinstance(accept, list) else (), **numbers)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def begun_refresh(folder: TableState, state: ModelState | None) -> BegunRefresh | None:
    """Return the full refresh that the next build has to finish.

    Raises:
        StateError: `state-unreadable`.
    """
    noted = folder.operation(TableOperation.REFRESH)
    if noted is None:
        return None
    begun = BegunRefresh.of(noted)
    over = state is not None and state.phase is Phase.PUBLISHED and state.generation > begun.before
    return None if over else begun
