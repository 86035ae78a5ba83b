"""Which generation of a table a commit belongs to, and what becomes of an interrupted full refresh.

A generation has a number, for its folder and staging table, and a random id, which its commits carry: numbers can come
again, ids cannot. The marker of the table's last commit decides on a refresh. That all tables of a run are rebuilt is
noted beside each state before the first is touched: streams from a rebuilt table must be rebuilt, too.

The generation that another one replaced is kept for `engine rollback`: its folder has the checkpoint and the facts, and
model.json is inside `previous.json`, so that nothing takes it for a generation that is written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from engine.characters import whole_number
from engine.compile import Model
from engine.errors import StateError
from engine.lake.changes.table_version import TableVersion
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.state import ModelState, Phase, TableState
from engine.state.checkpoint import DIGEST
from engine.state.model_state import PREVIOUS_FILE
from engine.state.operations import Refresh
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

    Raises StateError: `state-unreadable`.
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


# Of a commit's summary, and of the properties of a table, without the prefix `engine.`.
ID = "generation-id"
NUMBER = "generation"
# The micro-batch in the marker of a rebuild that was published before its query had one.
NO_BATCH = -1


def new_id() -> str:
    return uuid.uuid4().hex


def wrote(state: ModelState, snapshot: SnapshotFacts) -> bool:
    return snapshot.marker(ID) == state.generation_id


def has_commits(table: TableFacts | None) -> bool:
    """Return whether a table has commits; a fence is none (see `engine.lake.table_fence`)."""
    return table is not None and any(snapshot.marker("fence") is None for snapshot in table.history)


def committed_batch(history: Iterable[SnapshotFacts], state: ModelState) -> int | None:
    """Return the newest micro-batch of a state's generation that has reached the table; ids compare as numbers."""
    return max(committed_batches(history, state), default=None)


def committed_batches(history: Iterable[SnapshotFacts], state: ModelState) -> dict[int, int]:
    snapshots: dict[int, int] = {}
    for snapshot in history:
        batch = whole_number(snapshot.marker("batch-id") or "")
        if batch is not None and wrote(state, snapshot):
            snapshots.setdefault(batch, snapshot.id)
    return snapshots


def recorded_offsets(history: Iterable[SnapshotFacts], state: ModelState) -> dict[int, str]:
    digests: dict[int, str] = {}
    for snapshot in history:
        batch, digest = whole_number(snapshot.marker("batch-id") or ""), snapshot.marker(DIGEST)
        if batch is not None and digest is not None and wrote(state, snapshot):
            digests.setdefault(batch, digest)
    return digests


def has_published(history: Iterable[SnapshotFacts], state: ModelState) -> bool:
    """Return whether a history has a commit that shows rows of a state's generation, or that it has none."""
    return any(snapshot.marker("batch-id") is not None and wrote(state, snapshot) for snapshot in history)


def identity(snapshot: SnapshotFacts) -> str | None:
    """Return what distinguishes the generation of a commit from all others; None: it is not a commit of a model's."""
    return snapshot.marker(ID) or snapshot.marker(NUMBER)


def next_number(folder: TableState, table: TableFacts | None) -> int:
    """Return a number that neither the state nor the table's history has seen, nor a refresh that was interrupted."""
    used_numbers = [*folder.generations(), *folder.replaced_generations(), 0]
    if (open_refresh := folder.journal.open_operation(Refresh)) is not None:
        used_numbers.append(open_refresh.attempt)
    if table is not None:
        marked_numbers = [
            *(s.marker(NUMBER) or "" for s in table.history),
            table.properties.get(f"engine.{NUMBER}", ""),
        ]
        used_numbers += [number for text in marked_numbers if (number := whole_number(text)) is not None]
    return max(used_numbers) + 1


def published_refresh(model: Model, unpublished: ModelState, table: TableFacts | None) -> ModelState | None:
    """Return the state of a generation whose marker is in the model's table; None: the one before still counts."""
    if table is None or not has_published(table.history, unpublished):
        return None
    return as_published(model, unpublished, table.uuid, table.snapshot)


def as_published(model: Model, state: ModelState, uuid: str, snapshot: int | None) -> ModelState:
    return replace(state, table=str(model.relation), phase=Phase.PUBLISHED, uuid=uuid, snapshot=snapshot)


def begun_refresh(folder: TableState, state: ModelState | None) -> Refresh | None:
    """Return the full refresh that the next build has to finish. Raises StateError: `state-unreadable`."""
    open_refresh = folder.journal.open_operation(Refresh)
    if open_refresh is None or (
        state is not None and state.phase is Phase.PUBLISHED and state.generation > open_refresh.before
    ):
        return None
    return open_refresh
