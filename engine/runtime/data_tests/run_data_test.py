"""Running data tests: each is a query that returns the failing rows; those that one scan passes need no query.

Sources are read with bounds, once for all tests of a run: the files that are there when the first test asks, Kafka's
partitions up to their end then, a table at the snapshot of each query. No checkpoint, watermark or dedup.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.compile import DataTest, Manifest, Severity, Source
from engine.compile.declarations.compile_context import FAILING_ROWS
from engine.errors import Diagnostic, errors_at
from engine.events import Status
from engine.runtime.context.run_context import Run
from engine.runtime.lifecycle import publish
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.sources import BAD, KINDS, ORIGIN, Place, mark_bad_records, source_traits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SIGNS = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataTestVerdict:
    """How a test ended.

    `failures`: failing rows, or expectations of a unit test that do not hold. `passed_at`: when it passed, UTC, if that
    pass counts and it did not run. `seconds`: how long it took, if it ran before its turn.
    """

    status: Status
    failures: int = 0
    message: str = ""
    findings: tuple[Diagnostic, ...] = ()
    passed_at: str = ""
    seconds: float | None = None


def run_test(session: SparkSession, test: DataTest, query: str) -> DataTestVerdict:
    if test.limit is not None:
        query = f"SELECT * FROM (\n{query}\n) LIMIT {test.limit}"  # noqa: S608
    stored_note = ""
    if test.stored is not None:
        marked = f"TBLPROPERTIES ('{FAILING_ROWS}' = 'true')"
        session.sql(f"CREATE OR REPLACE TABLE {test.stored.sql} USING iceberg {marked} AS\n{query}")
        query, stored_note = f"SELECT * FROM {test.stored.sql}", f", stored in {test.stored}"  # noqa: S608
    failures = int(session.sql(f"SELECT count(*) FROM (\n{query}\n)").collect()[0][0])  # noqa: S608
    status = judged(test, failures)
    rows = "row" if failures == 1 else "rows"
    return DataTestVerdict(status, failures, f"{failures} failing {rows}{stored_note}" if failures else "")


def no_failures(test: DataTest) -> DataTestVerdict:
    return DataTestVerdict(judged(test, 0))


def judged(test: DataTest, failures: int) -> Status:
    if test.severity is Severity.ERROR and _holds(test.error_if, failures):
        return Status.FAIL
    return Status.WARN if _holds(test.warn_if, failures) else Status.PASS


def _holds(bound: str, failures: int) -> bool:
    parts = (part.partition(" ") for part in (bound or "!= 0").split(" or "))
    return any(_SIGNS[sign](failures, int(number)) for sign, _, number in parts)


_log = logging.getLogger("engine.runtime")


@dataclass(slots=True)
class SharedScan:
    """At least two tests that look at the same rows; the first that runs looks for all of them."""

    tests: tuple[DataTest, ...]
    _clean: frozenset[str] | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def clean(self, run: Run, test: DataTest, session: SparkSession) -> bool:
        with self._guard:
            if self._clean is None:
                self._clean = _run_shared_scan(run, self.tests, session)
            return test.id in self._clean


def shared_scans(tests: Iterable[DataTest]) -> Mapping[str, SharedScan]:
    by_rows: dict[str, list[DataTest]] = {}
    for test in tests:
        if test.look is not None:
            by_rows.setdefault(test.look.rows, []).append(test)
    groups = (SharedScan(tuple(group)) for group in by_rows.values() if len(group) > 1)
    return {test.id: group for group in groups for test in group.tests}


def _run_shared_scan(run: Run, tests: tuple[DataTest, ...], session: SparkSession) -> frozenset[str]:
    scans = [test.look for test in tests if test.look is not None]
    rows = publish.with_staged_rows(run, replace(tests[0], sql=scans[0].rows))
    query = f"SELECT {', '.join(scan.failing for scan in scans)}\nFROM {rows}"
    try:
        failing_flags = session.sql(query).collect()[0]
    except spark_exceptions():
        # A fault of one of them is shown by its own query.
        if run.stop.is_set():
            raise
        _log.info("no common query for the tests of %s", tests[0].model, exc_info=True)
        return frozenset()
    return frozenset(test.id for test, failing in zip(tests, failing_flags, strict=True) if not failing)


def sources_of(manifest: Manifest, tests: Iterable[DataTest]) -> Mapping[str, Source]:
    nodes = (manifest.nodes[i] for test in tests for i in test.depends_on)
    return {node.id: node for node in nodes if isinstance(node, Source)}


@dataclass(slots=True)
class SourceRows:
    spark: SparkSession
    manifest: Manifest
    place: Place
    _session: SparkSession | None = None
    _views: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def session(self, test: DataTest) -> SparkSession:
        """Return the session in which a test runs, with a view for each source that it reads.

        Raises:
            EngineError: there is nothing to read, or it cannot be read as it is declared.
            pyspark.errors.PySparkException: Spark cannot read it.
        """
        test_sources = sources_of(self.manifest, [test])
        if not test_sources:
            return self.spark
        with self._guard:
            if self._session is None:
                self._session = self.spark.newSession()
            for source in (source for i, source in test_sources.items() if i not in self._views):
                self._register(self._session, source)
                self._views.add(source.id)
            return self._session

    def _register(self, session: SparkSession, source: Source) -> None:
        spec, kind = source.spec, KINDS[source.spec.format]
        with errors_at(source.location):
            kind.check(spec, self.place)
            spec = source_traits(spec.format).until_now(session, spec, self.place)
            frame = kind.read_batch(session, spec, self.place)
        if BAD in frame.columns:
            frame = mark_bad_records.without_bad(
                frame, source.name, f"bad records of {source.name}", spec.on_bad_record
            )
        frame.drop(ORIGIN).createOrReplaceTempView(f"`{source.name}`")
