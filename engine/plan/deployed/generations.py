"""Which generation of a table a commit belongs to.

A generation has a number, which names its folder and its staging table, and a random id, which its commits carry.
Numbers can come again (a table outlives a lost state), ids cannot.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from engine.characters import whole_number
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.state import ModelState, TableState
from engine.state.operations import Refresh
from engine.state.recorded_offsets import DIGEST

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
    """Return whether a table has commits; a fence is none (see `engine.lake.fencing`)."""
    return table is not None and any(snapshot.marker("fence") is None for snapshot in table.history)


def committed_batch(history: Iterable[SnapshotFacts], state: ModelState) -> int | None:
    """Return the newest micro-batch of a state's generation that has reached the table; ids compare as numbers."""
    return max(committed_batches(history, state), default=None)


def committed_batches(history: Iterable[SnapshotFacts], state: ModelState) -> dict[int, int]:
    found: dict[int, int] = {}
    for snapshot in history:
        batch = whole_number(snapshot.marker("batch-id") or "")
        if batch is not None and wrote(state, snapshot):
            found.setdefault(batch, snapshot.id)
    return found


def recorded_offsets(history: Iterable[SnapshotFacts], state: ModelState) -> dict[int, str]:
    found: dict[int, str] = {}
    for snapshot in history:
        batch, digest = whole_number(snapshot.marker("batch-id") or ""), snapshot.marker(DIGEST)
        if batch is not None and digest is not None and wrote(state, snapshot):
            found.setdefault(batch, digest)
    return found


def has_published(history: Iterable[SnapshotFacts], state: ModelState) -> bool:
    """Return whether a history has a commit that shows rows of a state's generation, or that it has none."""
    return any(snapshot.marker("batch-id") is not None and wrote(state, snapshot) for snapshot in history)


def identity(snapshot: SnapshotFacts) -> str | None:
    """Return what distinguishes the generation of a commit from all others; None: it is not a commit of a model's."""
    return snapshot.marker(ID) or snapshot.marker(NUMBER)


def next_number(folder: TableState, table: TableFacts | None) -> int:
    """Return a number that neither the state nor the table's history has seen, nor a refresh that was interrupted."""
    seen = [*folder.generations(), *folder.replaced(), 0]
    if (begun := folder.journal.begun(Refresh)) is not None:
        seen.append(begun.attempt)
    if table is not None:
        said = [*(s.marker(NUMBER) or "" for s in table.history), table.properties.get(f"engine.{NUMBER}", "")]
        seen += [number for text in said if (number := whole_number(text)) is not None]
    return max(seen) + 1
