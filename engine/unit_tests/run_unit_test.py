"""Run unit tests: compare what each step expects with the model's table and numbers.

A test of a history of full extracts builds once per step, with the rows that its inputs have then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile import Catalog, Manifest, Model, Relation, UnitTest
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows, UnitTestStep
from engine.compile.pipeline.unsupported import unsupported_settings
from engine.compile.sql.dialect import tokenize
from engine.compile.sql.lexer.tokens import TokenType
from engine.errors import Diagnostic, EngineError
from engine.events import Status
from engine.lake import table_writer as lake
from engine.lake.catalog import catalog_settings
from engine.lake.commit_guard import ExpectedTable
from engine.lake.table_writer import create_namespace
from engine.plan.test_passes.compile_overrides import Versions
from engine.relations import quoted
from engine.runtime.batch.history.build_history import take_extract, with_query_spelling
from engine.runtime.batch.history.ended_versions import Extract
from engine.runtime.data_tests.run_data_test import DataTestVerdict
from engine.runtime.quality import expectations
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support.spark_errors import diagnose, spark_exceptions
from engine.spark_master import runs_locally
from engine.state import TableState
from engine.unit_tests.fixed_clock import mark_text, millis
from engine.unit_tests.given_inputs import FedModel, feed_inputs, typed
from engine.unit_tests.likely_causes import TextTable, causes, difference_lines, late_causes, pair_rows
from engine.unit_tests.step_metrics import StepMetrics
from engine.unit_tests.stream_harness import Trial, trial

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from engine.runtime.run_nodes import RunUnit


NAME = "headrace_unit_tests"
SCHEMA = "tests"
# For a few rows: one partition, one plan, no waiting; compiling code for them costs more than it gives (a fifth of the
# processor's time, measured).
_CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.pollingDelay": "2ms",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}  # fmt: skip


@dataclass(slots=True)
class TemporaryLake:
    """A lake that is removed after the tests; the project's own is never touched."""

    folder: Path
    _numbers: count[int] = field(default_factory=count)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _is_prepared: bool = False

    def session(self, spark: SparkSession) -> SparkSession:
        catalog = Catalog("sqlite", NAME, self.folder / "lake")
        session = spark.newSession()
        for key, value in {**catalog_settings.spark_conf(catalog), **_CONF}.items():
            session.conf.set(key, value)
        # Two sessions that set up one catalog at a time collide.
        with self._guard:
            if not self._is_prepared:
                catalog_settings.prepare(catalog)
                create_namespace(session, NAME, SCHEMA)
                self._is_prepared = True
        return session

    def place(self, model: Model) -> tuple[Model, TableState]:
        name = f"{model.relation.name[:80]}_{next(self._numbers)}"
        relation = Relation(NAME, SCHEMA, name)
        sql = model.sql.replace(model.relation.sql, relation.sql)
        return replace(model, relation=relation, sql=sql), TableState(self.folder / "state", NAME, SCHEMA, name)


@contextmanager
def temporary_lake() -> Iterator[TemporaryLake]:
    with TemporaryDirectory(prefix="headrace-unit-", ignore_cleanup_errors=True) as folder:
        yield TemporaryLake(Path(folder))


_CLOCK = {
    "current_timestamp": "timestamp", "now": "timestamp", "localtimestamp": "timestamp_ntz",
    "current_date": "date", "curdate": "date",
}  # fmt: skip
_CALLED_ONLY = {"now", "curdate"}


def run_whole(session: SparkSession, fed_model: FedModel, now: str | None) -> tuple[DataFrame, StepMetrics]:
    """Return the rows of a batch model, and what failed its expectations; raises Spark's errors."""
    model = fed_model.model
    frame = table_setup.checked_frame(session, replace(model, sql=at_time(model.sql, now)) if now else model)
    checked = expectations.checked(frame, model.expectations)
    if not model.expectations:
        return frame, StepMetrics()
    quarantining = expectations.splits(model.expectations)
    quarantined = expectations.failing(checked, model.expectations).count() if quarantining else 0
    return expectations.passing(checked, model.expectations), StepMetrics(quarantined=quarantined)


def at_time(sql: str, now: str) -> str:
    """Rewrite a query to read a given time instead of the clock."""
    tokens = tokenize(sql)
    pieces, end = [], 0
    for index, token in enumerate(tokens):
        kind = _CLOCK.get(token.text.lower())
        called = _is(tokens, index + 1, TokenType.L_PAREN) and _is(tokens, index + 2, TokenType.R_PAREN)
        quoted = sql[token.start] in "`'\""
        if kind is None or quoted or _is(tokens, index - 1, TokenType.DOT) or _is(tokens, index + 1, TokenType.DOT):
            continue
        if not called and token.text.lower() in _CALLED_ONLY:
            continue
        pieces += [sql[end : token.start], f"cast('{now}' as {kind})"]
        end = tokens[index + 2].end + 1 if called else token.end + 1
    return "".join([*pieces, sql[end:]])


def _is(tokens: list[Token], index: int, kind: TokenType) -> bool:
    return 0 <= index < len(tokens) and tokens[index].token_type is kind


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
    metrics: StepMetrics = field(default_factory=StepMetrics)
    _input_rows: dict[str, GivenRows] = field(default_factory=dict)
    _at: datetime = _FIRST - _LATER
    _number: int = 0
    _expected: ExpectedTable | None = None

    def __post_init__(self) -> None:
        self._input_rows = {rows.view: rows for rows in self.test.static}

    def step(self, step: UnitTestStep) -> StepMetrics:
        """Build with the rows of a step; an input that the step leaves out keeps its rows. Raises errors of a build."""
        self._number += 1
        self._input_rows |= {rows.view: rows for rows in step.given}
        self._at = datetime.fromtimestamp(millis(step.now) / 1000, UTC) if step.now else self._at + _LATER
        now = f"{self._at:%Y-%m-%d %H:%M:%S.%f}"
        total = replace(self.test, static=tuple(self._input_rows.values()), steps=())
        fed_model = feed_inputs(self.session, self.manifest, self.model, total, self.root)
        rows, metrics = run_whole(self.session, fed_model, now)
        model = self.model
        markers = {**_MARKERS, "model": model.name}
        extract = Extract(int(self._at.timestamp() * 1_000_000), f"step {self._number}")
        result = take_extract(with_query_spelling(model, rows), rows, extract, markers, self._expected)
        snapshot = result.snapshot if result is not None else self._expected.snapshot if self._expected else None
        uuid = lake.table_uuid(self.session, model.relation.sql)
        self._expected = ExpectedTable(model.name, uuid, snapshot)
        self.metrics = self.metrics.with_step(metrics)
        return metrics


_FLOATS = {"float", "double"}


@dataclass(slots=True)
class UnitTestRunner:
    """Runs unit tests, each in its own session; `versions` compiles the project with a test's overrides."""

    versions: Versions
    root: Path
    lake: TemporaryLake

    def run(self, spark: SparkSession, test: UnitTest) -> DataTestVerdict:
        """Run one test; every failure becomes part of the verdict."""
        model: Model | None = None
        if not runs_locally(str(spark.sparkContext.master)):
            return _error((_wrong_master(test),), test)
        try:
            manifest = self.versions.manifest_for(test)
            model = manifest.model(test.model.partition(".")[2])
            if unsupported_features := unsupported_settings(model):
                return _error(unsupported_features, test)
            failures = self._run(spark, manifest, model, test)
        except EngineError as error:
            return _error(error.diagnostics, test)
        except spark_exceptions() as error:
            if model is None:
                raise
            return _error(diagnose(error, model), test)
        if not failures:
            return DataTestVerdict(Status.PASS)
        return DataTestVerdict(Status.FAIL, len(failures), failures[0].message, tuple(failures))

    def _run(self, spark: SparkSession, manifest: Manifest, model: Model, test: UnitTest) -> list[Diagnostic]:
        session = self.lake.session(spark)
        placed, folder = self.lake.place(model)
        comparison = _Comparison(session, model, test)
        if model.write.history and not model.streaming:
            _run_steps(HistoryTrial(session, manifest, placed, test, self.root), comparison, session, placed)
            return comparison.failures
        fed_model = feed_inputs(session, manifest, placed, test, self.root)
        if not model.streaming:
            now = next((step.now for step in test.steps if step.now), None)
            rows, metrics = run_whole(session, fed_model, now)
            expects = [step.expect for step in test.steps if step.expect]
            for expect in [*expects, *([test.expect] if test.expect else [])]:
                comparison.check(expect, "", rows, metrics, metrics)
            return comparison.failures
        query = trial(session, fed_model, folder)
        query.start()
        try:
            _run_steps(query, comparison, session, placed)
        finally:
            query.stop()
        return comparison.failures


def _run_steps(trial_run: Trial | HistoryTrial, comparison: _Comparison, session: SparkSession, model: Model) -> None:
    """Run the steps of a test, and compare the table after each that expects something, and at the end."""
    test = comparison.test
    for number, step in enumerate(test.steps, 1):
        metrics = trial_run.step(step)
        if step.expect is not None:
            table = session.table(model.relation.sql)
            comparison.check(step.expect, f" after step {number} ({step.kind})", table, metrics, trial_run.metrics)
    if test.expect is not None:
        comparison.check(
            test.expect, " at the end", session.table(model.relation.sql), trial_run.metrics, trial_run.metrics
        )


def _wrong_master(test: UnitTest) -> Diagnostic:
    message = "unit tests run in a local Spark, and the target has another master"
    hint = "Run them separately: engine test -s test_type:unit; without --watch, engine build runs them first."
    return Diagnostic("not-supported", message, hint, node=test.id.partition(".")[2])


def _error(failures: Iterable[Diagnostic], test: UnitTest) -> DataTestVerdict:
    located = tuple(replace(d, location=d.location or test.location) for d in failures)
    return DataTestVerdict(Status.ERROR, 0, located[0].message, located)


@dataclass(slots=True)
class _Comparison:
    session: SparkSession
    model: Model
    test: UnitTest
    failures: list[Diagnostic] = field(default_factory=list)

    def check(self, expect: ExpectedResult, when: str, rows: DataFrame, step: StepMetrics, total: StepMetrics) -> None:
        """Compare expected rows and numbers with actual ones.

        Args:
            when: in words, for messages.
            rows: the table, or the rows of a batch query.
            step: the numbers that expected counts are compared with.
            whole: the numbers of all steps so far, for likely causes.
        """
        mark = mark_text(step.watermark)
        numbers: list[tuple[str, object, object]] = [
            ("late", expect.late, step.late),
            ("duplicates", expect.duplicates, step.duplicates),
            ("quarantined", expect.quarantined, step.quarantined),
            ("state_rows", expect.state_rows, step.state_rows),
            ("watermark", expect.watermark, mark),
        ]
        for name, expected_value, actual_value in numbers:
            if expected_value is not None and expected_value != actual_value:
                cause_texts = late_causes(self.model, int(expect.late or 0), step.late, step) if name == "late" else []
                hint = "\n    ".join(f"Likely cause: {text}." for text in cause_texts)
                self._report(expect, f"{name} is {actual_value}{when}, expected {expected_value}", hint)
        if expect.rows is not None:
            self._rows(expect, expect.rows, when, rows, total)

    def _rows(
        self, expect: ExpectedResult, expected_value: Rows, when: str, rows: DataFrame, total: StepMetrics
    ) -> None:
        kinds = {column.name.lower(): column.dataType.simpleString() for column in rows.schema.fields}
        names = [name for name, _ in expected_value.columns] or list(rows.columns)
        unknown = [name for name in names if name.lower() not in kinds]
        if unknown:
            self._report(expect, f"the table has no column {', '.join(unknown)}", f"It has: {', '.join(rows.columns)}.")
            return
        columns = [(name, kinds[name.lower()]) for name in names]
        floats = frozenset(index for index, (_, kind) in enumerate(columns) if kind in _FLOATS)
        actual = TextTable(tuple(names), _texts(rows, columns), floats)
        expected = TextTable(tuple(names), _texts(typed(self.session, expected_value, columns), columns), floats)
        pairs = pair_rows(expected, actual, ordered=expect.ordered)
        if all(pair.equal(actual) for pair in pairs):
            return
        wrong = sum(not pair.equal(actual) for pair in pairs)
        several = "1 row differs" if wrong == 1 else f"{wrong} rows differ"
        cause_texts = [f"Likely cause: {text}." for text in causes(self.model, pairs, actual, total)]
        lines = [
            "- expected, + actual, differing cells between asterisks:",
            *difference_lines(pairs, actual),
            *cause_texts,
        ]
        self._report(expect, f"{several} of '{self.model.name}'{when}", "\n    ".join(lines))

    def _report(self, expect: ExpectedResult, message: str, hint: str) -> None:
        name = self.test.id.partition(".")[2]
        self.failures.append(Diagnostic("unit-test-failed", message, hint, node=name, location=expect.location))


def _texts(frame: DataFrame, columns: list[tuple[str, str]]) -> tuple[tuple[str | None, ...], ...]:
    from pyspark.sql import functions as f

    cells = (f.col(quoted(name)).cast("string") for name, _ in columns)
    return tuple(tuple(row) for row in frame.select(*cells).collect())


@contextmanager
def run_units(versions: Versions, root: Path) -> Iterator[RunUnit]:
    with temporary_lake() as lake:
        yield UnitTestRunner(versions, root, lake).run
