"""Streams of a table whose rows were replaced continue behind the replacement, which brings them no row.

A backfill makes an `overwrite` and a `replace` behind it. A stream that has read all rows before both is moved to the
second; what a stream has not read would be lost, so that it has to read it first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine import kill_points
from engine.compile import Model
from engine.errors import Diagnostic, Location, StateError
from engine.lake.table_facts import TableFacts
from engine.runtime.context.run_context import Run
from engine.runtime.erasure.stream_positions import StreamPosition, move_past, positions, unread_faults

UNREAD = "backfill-unread"


def pass_readers(run: Run, owner: Model, table: TableFacts) -> None:
    """Move the streams of a table, whose locks are held, behind the replacements that follow on what they read."""
    for position in positions(run.manifest, run.target):
        behind = _behind_replacements(position, owner, table)
        if behind is not None and move_past(position, owner, owner.relation, behind):
            kill_points.reach("reader moved", owner.relation.name, where=position.reader.name)


def _behind_replacements(position: StreamPosition, owner: Model, table: TableFacts) -> TableFacts | None:
    """The table as it was right after the replacements that follow on where a stream is; None: none does."""
    ids = [snapshot.id for snapshot in table.history]
    offsets = position.offsets_in(table)
    reached = {offset["snapshot_id"] for offset in offsets} if offsets else {position.initial(owner)}
    if len(reached) != 1 or (at := next(iter(reached))) not in ids:
        return None
    newer = ids.index(at)
    if any(unread_faults((position,), owner, owner.relation, _from(table, newer))):
        # It has read that snapshot in part, or is about to read more.
        return None
    last = newer
    while last and (table.history[last - 1].backfills or table.history[last - 1].rewrites_files):
        last -= 1
    return _from(table, last) if any(one.backfills for one in table.history[last:newer]) else None


def _from(table: TableFacts, newest: int) -> TableFacts:
    return replace(table, history=table.history[newest:])


def check_unread(run: Run, owner: Model, table: TableFacts) -> None:
    """Check that the streams of a table have read all of its rows.

    Raises:
        StateError: `backfill-unread` with each stream; nothing was changed.
    """
    found = list(_unread(run, owner, table))
    if found:
        raise StateError.of(found)


def _unread(run: Run, owner: Model, table: TableFacts) -> Iterator[Diagnostic]:
    models = {model.name: model for model in run.manifest.models}
    for one in unread_faults(positions(run.manifest, run.target), owner, owner.relation, table):
        hint = f"It reads rows before they are replaced. Build it first: engine build -s {one.node}"
        yield replace(one, code=UNREAD, hint=hint).at(Location(models[one.node or owner.name].file))
