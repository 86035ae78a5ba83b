"""The one writer of streaming tables: a foreachBatch function that marks every commit.

A batch is written, then recorded in model.json, then Spark commits it. After a crash between the first
and the last of these the batch comes again, with the same id and rows; its marker in the table says that
it has been written. It is then computed once more into Spark's `noop` sink: returning early would leave
its state uncommitted and lose its watermark (STATE_STORE_COMMIT_VALIDATION_FAILED, measured).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.lake import write as lake
from engine.state import ModelState, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a micro-batch: rows added, the snapshot (None: no commit), whether it came again."""

    rows: int
    snapshot: int | None
    replayed: bool = False


@dataclass(slots=True)
class BatchWriter:
    """Writes micro-batches; called by Spark, one batch at a time, in a thread of its own.

    Attributes:
        relation: the table, quoted.
        markers: gives what a commit carries, by batch id.
        folder: where model.json is.
        state: its content, kept up to date.
        reached: the newest batch whose marker is in the table at the start of the query.
        snapshots: the snapshot of each batch in the table at the start; model.json may not have heard of the last.
        written: what became of each batch of this run.
        error: what went wrong in here; Spark wraps it beyond recognition.
    """

    relation: str
    markers: Callable[[int], Mapping[str, str]]
    folder: TableState
    state: ModelState
    reached: int | None
    snapshots: Mapping[int, int]
    written: dict[int, Written] = field(default_factory=dict)
    error: BaseException | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one micro-batch."""
        try:
            result = self._write(frame, batch)
            self.record(batch=batch, snapshot=result.snapshot or self.state.snapshot)
            self.written[batch] = result
        except BaseException as error:
            self.error = error
            raise

    def record(self, **changes: object) -> None:
        """Change model.json; the main thread and Spark's call this."""
        with self._guard:
            self.state = replace(self.state, **changes)  # type: ignore[arg-type]
            self.folder.save(self.state)

    def _write(self, frame: DataFrame, batch: int) -> Written:
        if self.reached is not None and batch <= self.reached:
            compute_only(frame)
            return Written(0, self.snapshots.get(batch), replayed=True)
        # Computed once, with all partitions: whether there are rows must be known before the commit, and a
        # second look at the input would count it twice.
        cached = frame.persist()
        try:
            return self._commit(cached, batch) if cached.count() else Written(0, None)
        finally:
            cached.unpersist()

    def _commit(self, frame: DataFrame, batch: int) -> Written:
        commit = lake.append(frame, self.relation, self.markers(batch))
        return Written(commit.rows, commit.snapshot)


def compute_only(frame: DataFrame) -> None:
    """Run a batch without writing it anywhere."""
    frame.write.format("noop").mode("overwrite").save()
