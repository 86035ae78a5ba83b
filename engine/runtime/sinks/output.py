"""What the writer asks of an output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from engine.errors import EngineError
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Prepared(Protocol):
    """Rows of a micro-batch that are computed, and of which nothing is committed."""

    @property
    def several(self) -> bool:
        """Whether other tables than the model's get rows of it."""

    @property
    def refusal(self) -> EngineError | None:
        """Why it cannot be committed; None: it can."""

    def first(self, batch: int, markers: Mapping[str, str]) -> None:
        """Commit what must be there before everything else."""

    def commit(self, markers: Mapping[str, str], expected: ExpectedTable | None = None) -> Commit | None:
        """Commit the rows, marked, onto the table that is expected; None, and no commit, if there are none."""

    def discard(self) -> None:
        """Remove what was written for it; only before a commit was tried."""

    def close(self) -> None: ...


class Output(Protocol):
    def prepare(self, frame: DataFrame, query: str) -> Prepared:
        """Compute a micro-batch.

        Args:
            frame: its rows, with the columns of the query.
            query: Spark's id of the streaming query.
        """
