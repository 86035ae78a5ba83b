"""What the writer asks of an output.

Outputs that are data files: rows that are added, and tables that are rewritten in each micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from engine.errors import EngineError
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Prepared(Protocol):
    @property
    def several(self) -> bool:
        """Whether other tables than the model's get rows of it."""

    @property
    def quarantined(self) -> DataFrame | None:
        """The rows that go to the quarantine in place of the table, as `reason` and `row`; None: there are none."""

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


@dataclass(frozen=True, slots=True)
class Appends:
    """Adds the rows of each micro-batch; with `ignore_new` columns that the table does not have are left out."""

    relation: str
    options: Mapping[str, str] = field(default_factory=dict)
    ignore_new: bool = False
    branch: str | None = None

    def prepare(self, frame: DataFrame, query: str) -> Added:
        del query
        return Added(self._staged(frame), self.branch)

    def _staged(self, frame: DataFrame) -> lake.Staged:
        fitted = lake.fitting(frame, self.relation) if self.ignore_new else frame
        return lake.stage(fitted, self.relation, self.options)


@dataclass(frozen=True, slots=True)
class Rewrites(Appends):
    """Puts the rows of each micro-batch in place of all that are there: `output_mode: complete`."""

    def prepare(self, frame: DataFrame, query: str) -> Whole:
        del query
        return Whole(self._staged(frame))


@dataclass(frozen=True, slots=True)
class Added:
    staged: lake.Staged
    branch: str | None = None
    several: bool = False
    refusal: EngineError | None = None
    quarantined: DataFrame | None = None

    def first(self, batch: int, markers: Mapping[str, str]) -> None: ...

    def commit(self, markers: Mapping[str, str], expected: ExpectedTable | None = None) -> Commit | None:
        return lake.append(self.staged, markers, self.branch, expected)

    def discard(self) -> None:
        self.staged.discard()

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Whole(Added):
    def commit(self, markers: Mapping[str, str], expected: ExpectedTable | None = None) -> Commit | None:
        return lake.overwrite(self.staged, markers, expected)
