"""The nodes of a run, each in its turn; with `--empty` tables are made with their columns, and no row is read.

That is what a first build leaves that ends before its first commit, and the next build takes it for that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import DataTest, Model, UnitTest
from engine.errors import Diagnostic, EngineError, Location, SetupError
from engine.events import INTERRUPTED, Diagnosed, ModelFinished, ModelStarted, Outcome, Status, TestFinished, now
from engine.lake.table_writer import create_namespace
from engine.node_ids import rest_of
from engine.plan import ActionKind
from engine.plan.actions import state_checks
from engine.plan.test_passes.known_passes import KnownPasses
from engine.runtime.context.run_context import Run
from engine.runtime.context.run_results import unchanged_outcome
from engine.runtime.data_tests.run_data_test import (
    DataTestVerdict,
    SharedScan,
    SourceRows,
    no_failures,
    run_test,
    shared_scans,
)
from engine.runtime.inputs.register_inputs import register
from engine.runtime.lifecycle import full_refresh, publish, replaced_materialization
from engine.runtime.run_batch import run_batch
from engine.runtime.scheduler import dependencies, execute
from engine.runtime.sinks import table_setup
from engine.runtime.sinks.table_setup import describe
from engine.runtime.spark_support import hooks
from engine.runtime.spark_support.spark_errors import (
    diagnose,
    diagnose_test,
    environment_fault_in,
    java_ended,
    spark_exceptions,
)
from engine.runtime.streams.generation import open_generation
from engine.runtime.streams.run_stream import run_stream
from engine.runtime.streams.stream_query import open_query, open_session
from engine.runtime.writer.query_progress import unread_amounts
from engine.secrets.scrubber import scrub
from engine.spark.exceptions import error_text
from engine.state import ModelState
from engine.state.lease import first_lost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_EMPTY_OUTCOME = Outcome(Status.SUCCESS, note="made without rows")


def make_empty(run: Run, model: Model) -> Outcome:
    """Make the table of a model of which nothing is written; its hooks run as in any build.

    Raises:
        StateError: the name of the table is taken.
        RunError: the columns are not those that are declared, or cannot be stored.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    (_make_stream if model.streaming else _make_batch)(run, model)
    return _EMPTY_OUTCOME


def _make_stream(run: Run, model: Model) -> None:
    session, folder = open_session(run, model), run.state(model)
    query = open_query(run, model, session, folder, None)
    full_refresh.clear_staging(query.run, query.model, session)
    state = open_generation(query, None, None).state
    _note(run, model, state)
    hooks.run_post_hook(session, model)


def _make_batch(run: Run, model: Model) -> None:
    folder = run.state(model)
    state, table = folder.load(), run.lake.table(model.relation.schema, model.relation.name)
    if table is not None:
        if state is None:
            state_checks.fresh(model, table)
        state_checks.check_ours(model, table, state)
    session = run.spark.newSession()
    hooks.run_pre_hook(session, model)
    register(session, run.manifest, model, run.place, bounded=True)
    frame = table_setup.checked_frame(session, model)
    empty_state = table_setup.make(model, model.relation, max(folder.generations(), default=1), folder, frame)
    _note(run, model, empty_state)
    hooks.run_post_hook(session, model)


def _note(run: Run, model: Model, state: ModelState) -> None:
    """Save whose table it is; without a fingerprint, as no query has written to it."""
    run.state(model).save(replace(run.signed(model, state), fingerprint=""))


_JAVA_ENDED = "because the Java process has ended"
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5
_log = logging.getLogger("engine.runtime")

# Runs a unit test; what they are made of is in a later stage.
RunUnit = Callable[["SparkSession", UnitTest], DataTestVerdict]


def run_nodes(
    run: Run,
    order: list[str],
    run_unit: RunUnit | None,
    log: Path,
    passes: KnownPasses | None,
    *,
    threads: int,
    fail_fast: bool,
) -> frozenset[str]:
    """Run the nodes of a run; return the ids of the models that were skipped because of a unit test."""
    nodes = [run.manifest.nodes[node] for node in order]
    tests = [node for node in nodes if isinstance(node, DataTest)]
    # Once, before anything runs side by side.
    relations = [*(n.relation for n in nodes if isinstance(n, Model)), *(t.stored for t in tests if t.stored)]
    for catalog, schema in sorted({(relation.catalog, relation.schema) for relation in relations}):
        _make_namespace(run, catalog, schema)
    gates = publish.gates(run, order)
    source_rows = SourceRows(run.spark, run.manifest, run.place)
    node_runs = Turns(run, order, gates, shared_scans(tests), source_rows, run_unit, log, passes)
    upstream_ids = dependencies(run.manifest, order)
    try:
        execute(
            order, upstream_ids, node_runs.work, threads=threads, fail_fast=fail_fast, interrupt=node_runs.interrupt
        )
    finally:
        if passes is not None:
            passes.save()
    gates.close()
    return frozenset(node_runs.untested)


def _make_namespace(run: Run, catalog: str, schema: str) -> None:
    """Have the namespace of tables; two sessions that make the tables of a new JDBC catalog at a time collide."""
    for attempt in range(_ATTEMPTS):
        try:
            return create_namespace(run.spark, catalog, schema)
        except spark_exceptions() as error:
            if (environment_fault := environment_fault_in(error_text(error))) is not None:
                raise SetupError.from_diagnostics([environment_fault.at(run.target.catalog.place)]) from error
            if attempt + 1 == _ATTEMPTS:
                raise
            _log.info("%s.%s is tried again", catalog, schema, exc_info=True)
            run.stop.wait(_PAUSE_SECONDS)
    return None


@dataclass(slots=True)
class Turns:
    """Runs nodes one by one and shows what happens.

    `gates`: what its tests say about staged rows. `shared_scans`: the scans that data tests share; `source_rows`: what
    they read of sources. `log`: of Java. `untested`: models that were skipped because a unit test failed.
    """

    run: Run
    order: list[str]
    gates: publish.Gates
    shared_scans: Mapping[str, SharedScan]
    source_rows: SourceRows
    run_unit: RunUnit | None = None
    log: Path = Path()
    passes: KnownPasses | None = None
    java_has_ended: bool = False
    untested: set[str] = field(default_factory=set)

    def work(self, node_id: str, failed_above: str | None) -> Status:
        node = self.run.manifest.nodes[node_id]
        index, total = self.order.index(node_id) + 1, len(self.order)
        started = time.monotonic()
        if isinstance(node, DataTest | UnitTest):
            try:
                verdict = self._decided(node, self._test(node, failed_above))
            except Exception as error:  # noqa: BLE001 - it ends this test; the others run
                finding = self._unexpected(error, node.name, node.location)
                verdict = DataTestVerdict(Status.ERROR, 0, finding.message, (finding,))
            if self.run.stop.is_set() and verdict.status.failed:
                verdict = DataTestVerdict(Status.ERROR, 0, INTERRUPTED)
            for finding in verdict.findings:
                self.run.emit(Diagnosed(finding))
            at, seconds = now(), time.monotonic() - started if verdict.seconds is None else verdict.seconds
            if self.passes is not None and verdict.status is not Status.SKIPPED and not verdict.passed_at:
                self.passes.ended(node, at, passed=verdict.status is Status.PASS and not verdict.failures)
            self.run.emit(
                TestFinished(
                    node_id, index, total, verdict.status, seconds, verdict.failures, verdict.message, at,
                    verdict.passed_at,
                )
            )  # fmt: skip
            return verdict.status
        if not isinstance(node, Model):
            raise TypeError(node_id)
        kind, relation = node.materialized.value, str(node.relation)
        if failed_above is None:
            unread = unread_amounts(self.run.plan.actions[node_id])
            self.run.emit(ModelStarted(node_id, index, total, kind, relation, unread))
        try:
            outcome = self._model(node, failed_above)
        except Exception as error:  # noqa: BLE001 - it ends this model; the others run
            outcome = self._failed_outcome((self._unexpected(error, node.name, Location(node.file)),))
        self.run.emit(
            ModelFinished(
                node=node_id,
                index=index,
                total=total,
                kind=kind,
                relation=relation,
                seconds=time.monotonic() - started,
                at=now(),
                **{f.name: getattr(outcome, f.name) for f in fields(outcome)},
            )
        )
        return outcome.status

    def interrupt(self) -> None:
        """Make running models end soon: streams between two polls, batch queries at once."""
        self.run.stop.set()
        self.run.spark.sparkContext.cancelAllJobs()

    def _decided(self, test: DataTest | UnitTest, verdict: DataTestVerdict) -> DataTestVerdict:
        if isinstance(test, UnitTest):
            return verdict
        failures: tuple[type[Exception], ...] = (EngineError, *spark_exceptions())
        try:
            return replace(verdict, findings=(*verdict.findings, *self.gates.tested(test, verdict.status)))
        except failures as error:
            _log.exception("publishing after %s", test.name)
            findings = diagnose(error, self.run.manifest.nodes[test.model])  # type: ignore[arg-type]
            return DataTestVerdict(Status.ERROR, verdict.failures, findings[0].message, (*verdict.findings, *findings))

    def _skipped(self, failed_above: str) -> str:
        return f"because of {failed_above.split('.', 1)[1]}"

    def _test(self, test: DataTest | UnitTest, failed_above: str | None) -> DataTestVerdict:
        if failed_above is not None or self.java_has_ended:
            return DataTestVerdict(Status.SKIPPED, 0, self._skipped(failed_above) if failed_above else _JAVA_ENDED)
        shared_scan = self.shared_scans.get(test.id)
        if (
            self.passes is not None
            and (at := self.passes.passed_at(test, shared_scan.tests if shared_scan else ())) is not None
        ):
            return DataTestVerdict(Status.PASS, passed_at=at)
        if isinstance(test, UnitTest):
            if self.run_unit is None:
                raise TypeError(test.id)
            return self.run_unit(self.run.spark, test)
        failures: tuple[type[Exception], ...] = (EngineError, *spark_exceptions())
        try:
            return self._data_test(test)
        except failures as error:
            _log.exception("test %s", test.name)
            if (java_fault := self._java_fault()) is not None:
                return DataTestVerdict(
                    Status.ERROR, 0, java_fault.message, (java_fault.at(test.location, rest_of(test.id)),)
                )
            node = self.run.manifest.nodes[test.model]
            if isinstance(node, Model):
                finding = diagnose_test(error, test, node)
            else:
                first_finding = diagnose(error, node)[0]  # type: ignore[arg-type]
                finding = replace(first_finding, node=rest_of(test.id), location=test.location)
            return DataTestVerdict(Status.ERROR, 0, finding.message, (finding,))

    def _data_test(self, test: DataTest) -> DataTestVerdict:
        shared_scan, session = self.shared_scans.get(test.id), self.source_rows.session(test)
        if shared_scan is not None and shared_scan.clean(self.run, test, session):
            return no_failures(test)
        return run_test(session, test, publish.with_staged_rows(self.run, test))

    def _model(self, model: Model, failed_above: str | None) -> Outcome:
        if failed_above is not None:
            if isinstance(self.run.manifest.nodes[failed_above], UnitTest) and not self.java_has_ended:
                self.untested.add(model.id)
            return Outcome(Status.SKIPPED, self._skipped(failed_above))
        if self.java_has_ended:
            return Outcome(Status.SKIPPED, _JAVA_ENDED)
        if (unchanged := unchanged_outcome(self.run.plan, self.run.target, model)) is not None:
            return unchanged
        failures: tuple[type[Exception], ...] = (EngineError, *spark_exceptions())
        lease = self.run.state(model).lease
        try:
            if lease is not None:
                lease.check()
            if self.run.plan.actions[model.id].kind is ActionKind.EMPTY:
                outcome = make_empty(self.run, model)
                describe(self.run, model)
                return outcome
            replaced_materialization.announce(self.run, model)
            outcome = run_stream(self.run, model) if model.streaming else run_batch(self.run, model)
            if not publish.is_staged_beside(self.run, model):
                describe(self.run, model)
            for finding in self.gates.built(model):
                self.run.emit(Diagnosed(finding))
        except failures as error:
            _log.exception("model %s", model.name)
            # Whatever a model says whose lease was taken over: another run changes its state meanwhile.
            lost_lease = first_lost((lease,)) if lease is not None else None
            run_fault = self._java_fault() or (lost_lease and lost_lease.diagnostic)
            return self._failed_outcome(
                (run_fault.at(Location(model.file), model.name),) if run_fault else diagnose(error, model)
            )
        return outcome

    def _unexpected(self, error: Exception, node: str, place: Location | None) -> Diagnostic:
        _log.error("%s", node, exc_info=error)
        if (java_fault := self._java_fault()) is not None:
            return java_fault.at(place, node)
        message = scrub(f"internal error: {type(error).__name__}: {error_text(error).partition(chr(10))[0]}")
        hint = "The trace is in target/logs/engine.log; please report it. Committed rows are not affected."
        return Diagnostic("internal-error", message, hint, node=node, location=place)

    def _java_fault(self) -> Diagnostic | None:
        java_fault = java_ended(self.run.spark, self.log)
        self.java_has_ended = self.java_has_ended or java_fault is not None
        return java_fault

    def _failed_outcome(self, findings: tuple[Diagnostic, ...]) -> Outcome:
        if self.run.stop.is_set():
            # What Spark says of a job that was cancelled is nothing to fix; the log has it.
            return Outcome(Status.ERROR, INTERRUPTED)
        for finding in findings:
            self.run.emit(Diagnosed(finding))
        return Outcome(Status.ERROR, findings[0].message)
