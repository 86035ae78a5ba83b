"""Where Spark has begun to read tables, against where a generation should: looked at before a micro-batch is committed.

Iceberg's stream begins with the oldest snapshot that is left when Spark starts it. Whoever expires snapshots between
our look at the table and that moment takes the first rows away, without a word (measured, Iceberg 1.12.0). Spark keeps
the beginning in `sources/<n>/offsets/0` of the checkpoint; a table without rows to read is -1 there, and begins later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.compile import Model
from engine.errors import EngineError, StateError
from engine.plan.tables.upstream_tables import TableReading, unread
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.read_upstreams import read_upstreams
from engine.state import checkpoint as spark_checkpoint
from engine.state.state_path import StatePath

_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Beginnings:
    run: Run
    model: Model
    readings: Mapping[str, TableReading]
    checkpoint: StatePath

    def rejected(self, batch: int) -> EngineError | None:
        """Why a micro-batch cannot be committed: rows before it are missing; None: there are none."""
        begun = _begun_at(self.checkpoint, batch)
        open_ones = {node for node, reading in self.readings.items() if not reading.begun}
        if not open_ones or not begun:
            return None
        firsts = {reading.first for reading in self.readings.values()}
        if firsts.issuperset(begun):
            return None
        try:
            for upstream in read_upstreams(self.run, self.model):
                if upstream.node in open_ones:
                    unread(self.model, upstream, self.readings[upstream.node].start)
        except StateError as error:
            found = error.diagnostic
            hint = "Nothing of the micro-batch was written; build again to read every row of the table."
            return StateError(found.code, f"{found.message} while the model was starting", hint, node=self.model.name)
        return None


def _begun_at(checkpoint: StatePath, batch: int) -> set[int]:
    """The snapshots with which a micro-batch begins, where that is a beginning; -1: with the first that it finds."""
    if batch == 0:
        offsets = spark_checkpoint.beginnings(checkpoint)
    else:
        offsets = spark_checkpoint.source_offsets(checkpoint, batch - 1)
    ids = {o["snapshot_id"] for o in offsets if isinstance(o.get("snapshot_id"), int)}
    return ids if batch == 0 else ids & {_NOWHERE}
