"""How far the streams of a project have read a table whose earlier snapshots are about to go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.compile import Manifest, Model, Relation, Target
from engine.compile.nodes.model_settings import OnUpstreamDelete
from engine.errors import Diagnostic
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.deployed.checkpoint_facts import CheckpointFacts, read_checkpoint
from engine.plan.deployed.renamed_tables import state_now
from engine.state import ModelState, TableState
from engine.state.first_offsets import offsets_to_move

UNREAD = "erase-unread"


@dataclass(frozen=True, slots=True)
class StreamPosition:
    reader: Model
    folder: TableState
    state: ModelState
    checkpoint: CheckpointFacts
    rebuilt: bool

    @property
    def in_flight(self) -> bool:
        return self.rebuilt or self.checkpoint.started != self.checkpoint.committed

    def reads(self, owner: Model) -> bool:
        return any(item.stream and item.node == owner.id for item in self.reader.inputs)

    def initial(self, owner: Model) -> int | None:
        """The snapshot of another model's table that its initial snapshot has the rows of; None: it has none."""
        snapshot = self.state.starts.get(owner.id, {}).get("snapshot")
        return snapshot if isinstance(snapshot, int) else None

    def offsets_in(self, table: TableFacts) -> list[dict[str, Any]]:
        ids = {snapshot.id for snapshot in table.history} | table.snapshots
        return [dict(offset) for offset in self.checkpoint.offsets if offset.get("snapshot_id") in ids]


def positions(manifest: Manifest, target: Target) -> tuple[StreamPosition, ...]:
    stream_positions = []
    for reader in manifest.models:
        if not reader.streaming or reader.deferred_from is not None:
            continue
        folder = state_now(target, reader)
        if (state := folder.load()) is not None:
            checkpoint = read_checkpoint(folder, state.generation, files=False)
            rebuilt = folder.unpublished() is not None
            if checkpoint.started is not None or rebuilt:
                stream_positions.append(StreamPosition(reader, folder, state, checkpoint, rebuilt))
    return tuple(stream_positions)


def unread_faults(
    stream_positions: Sequence[StreamPosition], owner: Model, relation: Relation, table: TableFacts
) -> Iterator[Diagnostic]:
    """Yield why the earlier snapshots of a table cannot expire yet: streams have not read all of its rows."""
    for position in stream_positions:
        offsets = position.offsets_in(table)
        reads_own_table = relation == owner.relation and position.reads(owner)
        if not table.history or not (offsets or reads_own_table):
            continue
        name = position.reader.name
        hint = f"Their files go with the rows that are erased. Build it first: engine build -s {name}"
        if position.in_flight:
            message = (
                f"'{name}', which streams from {relation}, has a micro-batch or a full refresh that is not finished"
            )
            yield Diagnostic(UNREAD, message, hint, node=name)
        elif count := _unread_by(position, owner, table, offsets):
            message = f"'{name}' has not read {count} snapshot{'s' if count > 1 else ''} of {relation} yet"
            yield Diagnostic(UNREAD, message, hint, node=name)


def _unread_by(position: StreamPosition, owner: Model, table: TableFacts, offsets: Sequence[dict[str, Any]]) -> int:
    items = [item for item in position.reader.inputs if item.stream and item.node == owner.id]
    ignores = bool(items) and all(item.on_upstream_delete is OnUpstreamDelete.IGNORE for item in items)
    ids = [snapshot.id for snapshot in table.history]
    if not offsets:
        initial = position.initial(owner)
        newer_snapshots = table.history[: ids.index(initial)] if initial in ids else table.history
        return sum(_brings_rows(s, ignore_deletes=ignores) for s in newer_snapshots)
    counts = []
    for offset in offsets:
        at = ids.index(offset["snapshot_id"]) if offset["snapshot_id"] in ids else None
        newer_snapshots = table.history[:at]
        count = sum(_brings_rows(s, ignore_deletes=ignores) for s in newer_snapshots)
        counts.append(count + (at is not None and _is_partly_read(table.history[at], offset)))
    return max(counts)


def _brings_rows(snapshot: SnapshotFacts, *, ignore_deletes: bool) -> bool:
    if snapshot.operation == "append":
        return _count(snapshot, "added-data-files") > 0
    return not snapshot.rewrites_files and not (snapshot.operation == "delete" and ignore_deletes)


def _is_partly_read(snapshot: SnapshotFacts, offset: dict[str, Any]) -> bool:
    files = "total-data-files" if offset.get("scan_all_files") else "added-data-files"
    position = offset.get("position")
    return snapshot.operation == "append" and isinstance(position, int) and position < _count(snapshot, files)


def _count(snapshot: SnapshotFacts, key: str) -> int:
    text = snapshot.summary.get(key, "0")
    return int(text) if text.isdecimal() else 0


def move_past(position: StreamPosition, owner: Model, relation: Relation, table: TableFacts) -> bool:
    """Move a stream that has read all rows of a table to its current snapshot; return whether it was at another one."""
    head, ids = table.history[0], {snapshot.id for snapshot in table.history} | table.snapshots
    if position.offsets_in(table):
        moved_offsets = offsets_to_move(position.folder.checkpoint(position.state.generation), ids, head.id)
        if moved_offsets is not None:
            moved_offsets.write(position.folder, position.state)
        return moved_offsets is not None
    if relation != owner.relation or position.initial(owner) not in ids - {head.id}:
        return False
    # It has read the initial snapshot, and nothing was committed since.
    starts = {**position.state.starts, owner.id: _start_at(position.state.starts[owner.id], head)}
    position.folder.save(replace(position.state, starts=starts))
    return True


def _start_at(start: Any, head: SnapshotFacts) -> dict[str, Any]:
    return {**start, "at": head.at + 1, "snapshot": head.id}
