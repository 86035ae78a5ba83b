"""A history of full extracts under test: each step is a build with the rows that its inputs have then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, UnitTest
from engine.compile.nodes.unit_test_steps import GivenRows, UnitTestStep
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.runtime.batch.history.build_history import spelled, take
from engine.runtime.batch.history.extract import Extract
from engine.unit_tests.batch_harness import run_whole
from engine.unit_tests.fixed_clock import millis
from engine.unit_tests.given_inputs import feed_inputs
from engine.unit_tests.step_metrics import StepMetrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The time of a step that says none: a day after the one before.
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_LATER = timedelta(days=1)
_MARKERS = {"generation": "1", "fingerprint": "", "run-id": ""}


@dataclass(slots=True)
class HistoryTrial:
    session: SparkSession
    manifest: Manifest
    model: Model
    test: UnitTest
    root: Path
    seen: StepMetrics = field(default_factory=StepMetrics)
    _given: dict[str, GivenRows] = field(default_factory=dict)
    _at: datetime = _FIRST - _LATER
    _number: int = 0
    _expected: ExpectedTable | None = None

    def __post_init__(self) -> None:
        self._given = {rows.view: rows for rows in self.test.static}

    def step(self, step: UnitTestStep) -> StepMetrics:
        """Build with the rows of a step; an input that it leaves out keeps those that it had.

        Raises:
            RunError: see `engine.runtime.batch.history`.
            pyspark.errors.PySparkException: Spark rejects or fails the query.
        """
        self._number += 1
        self._given |= {rows.view: rows for rows in step.given}
        self._at = datetime.fromtimestamp(millis(step.now) / 1000, UTC) if step.now else self._at + _LATER
        now = f"{self._at:%Y-%m-%d %H:%M:%S.%f}"
        whole = replace(self.test, static=tuple(self._given.values()), steps=())
        fed = feed_inputs(self.session, self.manifest, self.model, whole, self.root)
        rows, metrics = run_whole(self.session, fed, now)
        model = self.model
        markers = {**_MARKERS, "model": model.name}
        extract = Extract(int(self._at.timestamp() * 1_000_000), f"step {self._number}")
        made = take(spelled(model, rows), rows, extract, markers, self._expected)
        snapshot = made.snapshot if made is not None else self._expected.snapshot if self._expected else None
        uuid = lake.table_uuid(self.session, model.relation.sql)
        self._expected = ExpectedTable(model.name, uuid, snapshot)
        self.seen = self.seen.with_step(metrics)
        return metrics
