"""Running unit tests: what each step is expected to do, against what it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, UnitTest
from engine.compile.nodes.unit_test_steps import ExpectedResult, Rows
from engine.compile.pipeline.unsupported import unsupported
from engine.errors import Diagnostic, EngineError
from engine.events import Status
from engine.lake.quoted_names import quoted
from engine.plan.test_passes.compile_overrides import Versions
from engine.runtime.data_tests.run_data_test import DataTestVerdict
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from engine.spark_master import runs_locally
from engine.unit_tests.batch_harness import run_whole
from engine.unit_tests.differences import TextTable, drawn, paired
from engine.unit_tests.fixed_clock import shown
from engine.unit_tests.given_inputs import feed_inputs
from engine.unit_tests.history_harness import HistoryTrial
from engine.unit_tests.likely_causes import causes, late_causes
from engine.unit_tests.row_values import typed
from engine.unit_tests.step_metrics import StepMetrics
from engine.unit_tests.stream_harness import Trial, trial
from engine.unit_tests.temporary_lake import ThrowAway

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
