"""The generation of a table that another one replaced, kept for a while so that `engine rollback` can bring it back.

Its folder keeps the checkpoint and the facts; model.json is inside `previous.json`, so that nothing takes it for a
generation that is written.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from engine.compile import Model
from engine.errors import StateError
from engine.lake.changes.table_version import TableVersion
from engine.state import ModelState, TableState
from engine.state.model_state import PREVIOUS_FILE
from engine.times import duration_seconds

ROLLBACK_UNFINISHED = "rollback-unfinished"


@dataclass(frozen=True, slots=True)
class PreviousGeneration:
    """A generation that is kept, with times in milliseconds since 1970."""

    state: ModelState
    table: TableVersion
    replaced_at: int
    until: int


def kept_seconds(model: Model) -> float:
    """Return for how long a generation of a model is kept once it is replaced; 0: not at all."""
    return float(duration_seconds(model.operation.keep_previous))


def kept_now(state: ModelState, table: TableVersion, seconds: float) -> PreviousGeneration:
    now = int(time.time() * 1000)
    return PreviousGeneration(state, table, now, now + int(seconds * 1000))


def save_previous(folder: TableState, generation: PreviousGeneration) -> None:
    folder.save_note(generation.state.generation, PREVIOUS_FILE, asdict(generation))


def previous_generation(folder: TableState) -> PreviousGeneration | None:
    """Return the generation that was replaced last; None: none is kept. Raises StateError: `state-unreadable`."""
    generations = (
        read for number in folder.replaced_generations() if (read := noted_previous(folder, number)) is not None
    )
    return max(generations, key=lambda one: one.replaced_at, default=None)


def noted_previous(folder: TableState, number: int) -> PreviousGeneration | None:
    """Return what is noted of a generation that is kept, or is to be; None: nothing is.

    Raises:
        StateError: `state-unreadable`.
    """
    noted: Mapping[str, Any] | None = folder.note(number, PREVIOUS_FILE)
    if noted is None:
        return None
    try:
        return msgspec.convert(noted, PreviousGeneration)
    except msgspec.MsgspecError as error:
        path = folder.generation(number) / PREVIOUS_FILE
        hint = "Restore the file from a backup, or remove it: the generation cannot be brought back then."
        raise StateError("state-unreadable", f"{path} cannot be read: {error}", hint) from error


def discard_expired(folder: TableState) -> None:
    now = int(time.time() * 1000)
    for number in folder.replaced_generations():
        generation = noted_previous(folder, number)
        if generation is None or generation.until < now:
            folder.discard(number)


def discard_others(folder: TableState, number: int) -> None:
    """Remove the generations that are kept, except one: only the newest can be brought back."""
    for other in folder.replaced_generations():
        if other != number:
            folder.discard(other)
