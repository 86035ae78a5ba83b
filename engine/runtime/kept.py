"""Micro-batches with several outputs, kept until all of them are committed.

Rows of one batch that go to two tables must come from one computation: a batch that is computed again after a crash
between the commits may differ, if it reads a static side, the clock or random numbers, or keeps state. Such a batch is
written to its generation's `batches/` before the first commit, and all outputs and replays are fed from there.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.sources.listing import exactly
from engine.state.objects import make_private

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark writes it last.
_WHOLE = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class KeptBatches:
    """The kept batches of a generation; there is one at most.

    Attributes:
        folder: `batches/` of the generation.
        fingerprint: of the query; rows of another one are not used.
    """

    folder: Path
    fingerprint: str

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch}-{self.fingerprint}"

    def keep(self, frame: DataFrame, batch: int) -> DataFrame:
        """Write a batch, and read it from there; a kill in between leaves what `find` does not find."""
        make_private(self.folder)
        path = self._path(batch)
        # Hadoop takes a path as it is, and what is read for a pattern.
        frame.write.mode("overwrite").parquet(f"file:{path}")
        return frame.sparkSession.read.parquet(exactly(path))

    def find(self, session: SparkSession, batch: int) -> DataFrame | None:
        """The rows of a batch that was kept before a crash."""
        path = self._path(batch)
        return session.read.parquet(exactly(path)) if (path / _WHOLE).exists() else None

    def clear(self) -> None:
        """Remove what is kept; the batch is committed."""
        shutil.rmtree(self.folder, ignore_errors=True)
