"""Running unit tests: what each step is expected to do, against what it did.

What a run needs for its unit tests: something that runs one.

A history of full extracts under test: each step is a build with the rows that its inputs have then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, UnitTest
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows, UnitTestStep
from engine.compile.pipeline.unsupported import unsupported
from engine.errors import Diagnostic, EngineError
from engine.events import Status
from engine.lake import table_writer as lake
from engine.lake.commit_guard import ExpectedTable
from engine.plan.test_passes.compile_overrides import Versions
from engine.relations import quoted
from engine.runtime.batch.history.build_history import spelled, take
from engine.runtime.batch.history.ended_versions import Extract
from engine.runtime.data_tests.run_data_test import DataTestVerdict
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from engine.spark_master import runs_locally
from engine.unit_tests.batch_harness import run_whole
from engine.unit_tests.fixed_clock import millis, shown
from engine.unit_tests.given_inputs import feed_inputs
from engine.unit_tests.likely_causes import TextTable, causes, drawn, late_causes, paired
from engine.unit_tests.row_values import typed
from engine.unit_tests.step_metrics import StepMetrics
from engine.unit_tests.stream_harness import Trial, trial
from engine.unit_tests.temporary_lake import ThrowAway, throw_away

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from engine.runtime.run_nodes import RunUnit


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


_FLOATS = {"float", "double"}


@dataclass(slots=True)
class UnitTests:
    """Runs unit tests, each in a session of its own.

    Attributes:
        versions: the project, and versions of it for tests that override something.
    """

    versions: Versions
    root: Path
    lake: ThrowAway

    def run(self, spark: SparkSession, test: UnitTest) -> DataTestVerdict:
        """Run one test; whatever goes wrong is in the verdict."""
        model: Model | None = None
        if not runs_locally(str(spark.sparkContext.master)):
            return _error((_elsewhere(test),), test)
        try:
            manifest = self.versions.of(test)
            model = manifest.model(test.model.partition(".")[2])
            if missing := unsupported(model):
                return _error(missing, test)
            found = self._run(spark, manifest, model, test)
        except EngineError as error:
            return _error(error.diagnostics, test)
        except spark_exceptions() as error:
            if model is None:
                raise
            return _error(diagnose(error, model), test)
        if not found:
            return DataTestVerdict(Status.PASS)
        return DataTestVerdict(Status.FAIL, len(found), found[0].message, tuple(found))

    def _run(self, spark: SparkSession, manifest: Manifest, model: Model, test: UnitTest) -> list[Diagnostic]:
        session = self.lake.session(spark)
        placed, folder = self.lake.place(model)
        compared = _Compared(session, model, test)
        if model.write.history and not model.streaming:
            _through(HistoryTrial(session, manifest, placed, test, self.root), compared, session, placed)
            return compared.found
        fed = feed_inputs(session, manifest, placed, test, self.root)
        if not model.streaming:
            now = next((step.now for step in test.steps if step.now), None)
            rows, seen = run_whole(session, fed, now)
            expects = [step.expect for step in test.steps if step.expect]
            for expect in [*expects, *([test.expect] if test.expect else [])]:
                compared.check(expect, "", rows, seen, seen)
            return compared.found
        query = trial(session, fed, folder)
        query.start()
        try:
            _through(query, compared, session, placed)
        finally:
            query.stop()
        return compared.found


def _through(under: Trial | HistoryTrial, compared: _Compared, session: SparkSession, model: Model) -> None:
    """Do the steps of a test, and compare the model's table after each that expects something, and at the end."""
    test = compared.test
    for number, step in enumerate(test.steps, 1):
        seen = under.step(step)
        if step.expect is not None:
            table = session.table(model.relation.sql)
            compared.check(step.expect, f" after step {number} ({step.kind})", table, seen, under.seen)
    if test.expect is not None:
        compared.check(test.expect, " at the end", session.table(model.relation.sql), under.seen, under.seen)


def _elsewhere(test: UnitTest) -> Diagnostic:
    message = "unit tests run in a local Spark, and the target has another master"
    hint = "Run them separately: engine test -s test_type:unit; without --watch, engine build runs them first."
    return Diagnostic("not-supported", message, hint, node=test.id.partition(".")[2])


def _error(found: Iterable[Diagnostic], test: UnitTest) -> DataTestVerdict:
    told = tuple(replace(d, location=d.location or test.location) for d in found)
    return DataTestVerdict(Status.ERROR, 0, told[0].message, told)


@dataclass(slots=True)
class _Compared:
    session: SparkSession
    model: Model
    test: UnitTest
    found: list[Diagnostic] = field(default_factory=list)

    def check(self, expect: ExpectedResult, when: str, rows: DataFrame, step: StepMetrics, whole: StepMetrics) -> None:
        """Compare what is expected with what is there.

        Args:
            expect: what is expected.
            when: in words.
            rows: the table, or the rows of a batch query.
            step: the numbers that counts are compared with.
            whole: the numbers of all steps so far, which tell causes.
        """
        mark = shown(step.watermark)
        numbers: list[tuple[str, object, object]] = [
            ("late", expect.late, step.late),
            ("duplicates", expect.duplicates, step.duplicates),
            ("quarantined", expect.quarantined, step.quarantined),
            ("state_rows", expect.state_rows, step.state_rows),
            ("watermark", expect.watermark, mark),
        ]
        for name, wanted, got in numbers:
            if wanted is not None and wanted != got:
                why = late_causes(self.model, int(expect.late or 0), step.late, step) if name == "late" else []
                hint = "\n    ".join(f"Likely cause: {text}." for text in why)
                self._report(expect, f"{name} is {got}{when}, expected {wanted}", hint)
        if expect.rows is not None:
            self._rows(expect, expect.rows, when, rows, whole)

    def _rows(self, expect: ExpectedResult, wanted: Rows, when: str, rows: DataFrame, whole: StepMetrics) -> None:
        kinds = {column.name.lower(): column.dataType.simpleString() for column in rows.schema.fields}
        names = [name for name, _ in wanted.columns] or list(rows.columns)
        unknown = [name for name in names if name.lower() not in kinds]
        if unknown:
            self._report(expect, f"the table has no column {', '.join(unknown)}", f"It has: {', '.join(rows.columns)}.")
            return
        columns = [(name, kinds[name.lower()]) for name in names]
        floats = frozenset(index for index, (_, kind) in enumerate(columns) if kind in _FLOATS)
        actual = TextTable(tuple(names), _texts(rows, columns), floats)
        expected = TextTable(tuple(names), _texts(typed(self.session, wanted, columns), columns), floats)
        pairs = paired(expected, actual, ordered=expect.ordered)
        if all(pair.equal(actual) for pair in pairs):
            return
        wrong = sum(not pair.equal(actual) for pair in pairs)
        several = "1 row differs" if wrong == 1 else f"{wrong} rows differ"
        why = [f"Likely cause: {text}." for text in causes(self.model, pairs, actual, whole)]
        lines = ["- expected, + actual, differing cells between asterisks:", *drawn(pairs, actual), *why]
        self._report(expect, f"{several} of '{self.model.name}'{when}", "\n    ".join(lines))

    def _report(self, expect: ExpectedResult, message: str, hint: str) -> None:
        name = self.test.id.partition(".")[2]
        self.found.append(Diagnostic("unit-test-failed", message, hint, node=name, location=expect.location))


def _texts(frame: DataFrame, columns: list[tuple[str, str]]) -> tuple[tuple[str | None, ...], ...]:
    from pyspark.sql import functions as f

    cells = (f.col(quoted(name)).cast("string") for name, _ in columns)
    return tuple(tuple(row) for row in frame.select(*cells).collect())


@contextmanager
def run_units(versions: Versions, root: Path) -> Iterator[RunUnit]:
    with throw_away() as lake:
        yield UnitTests(versions, root, lake).run
