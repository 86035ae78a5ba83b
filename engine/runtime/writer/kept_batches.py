"""Micro-batches with several outputs, kept until all of them are committed.

A batch that is computed again after a crash between two commits may differ (a static side, the clock, random numbers,
state). It is written to its generation's `batches/` first, and all outputs and replays are fed from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from engine import kill_points
from engine.errors import StateError
from engine.local_paths import AS_IT_IS
from engine.state.model_state import as_json
from engine.state.state_path import StatePath, remove_tree, spark_location, store_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark writes it last.
_SUCCESS_FILE = "_SUCCESS"
_COUNTS = "_counts.json"


@dataclass(frozen=True, slots=True)
class StoredBatch:
    rows: DataFrame
    failed_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoredBatches:
    """The kept batches of a generation, one at most; those of another query (`fingerprint`) are not used."""

    folder: StatePath
    fingerprint: str

    def _path(self, batch: int) -> StatePath:
        return self.folder / f"{batch}-{self.fingerprint}"

    def store(self, frame: DataFrame, batch: int, counts: Mapping[str, int]) -> StoredBatch:
        """Write a batch, and read it from there; a kill in between leaves what `find` does not find.

        The caller caches the frame: a stateful step that is computed twice counts late rows twice. `counts`: how many
        rows failed each expectation, dropped ones included.
        """
        path = self._path(batch)
        store_of(self.folder).put(path.name + _COUNTS, as_json(counts))
        # Hadoop takes a path as it is, and what is read for a pattern.
        frame.write.mode("overwrite").parquet(spark_location(path))
        kill_points.reach("kept", self.folder.parent.parent.name, batch, str(path))
        return StoredBatch(frame.sparkSession.read.options(**AS_IT_IS).parquet(spark_location(path)), dict(counts))

    def load(self, session: SparkSession, batch: int) -> StoredBatch | None:
        path = self._path(batch)
        if not (path / _SUCCESS_FILE).exists():
            return None
        rows = session.read.options(**AS_IT_IS).parquet(spark_location(path))
        counts = self.folder / (path.name + _COUNTS)
        try:
            return StoredBatch(rows, msgspec.json.decode(counts.read_text(encoding="utf-8"), type=dict[str, int]))
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            hint = "Restore the file from a backup: it counts the rows of a micro-batch that is not committed yet."
            raise StateError("state-unreadable", f"{counts} cannot be read: {error}", hint) from error

    def clear(self) -> None:
        remove_tree(self.folder, ignore_errors=True)
