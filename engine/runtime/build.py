"""Stage 4: a bounded run of models and tests."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.compile import DataTest, Manifest, Model, Target, UnitTest
from engine.errors import Diagnostic, EngineError, Location
from engine.events import (
    Diagnosed,
    Emit,
    Event,
    ModelFinished,
    ModelStarted,
    RunFinished,
    RunResults,
    RunStarted,
    Status,
    TestFinished,
    fold,
)
from engine.lake.catalog import catalog_settings
from engine.lake.lake_reader import Lake
from engine.lake.table_writer import create_namespace
from engine.plan import Plan, PlanOptions, make_plan
from engine.plan.actions.build_order import run_order
from engine.plan.actions.refused_build import refused_build
from engine.plan.deployed.read_deployed import read_deployed, read_sources
from engine.plan.deployed.state_folder import table_state
from engine.runtime.batch.run_batch import run_batch
from engine.runtime.context.run_context import Outcome, Run
from engine.runtime.inputs.register_inputs import CORE, jar_sets
from engine.runtime.lifecycle import publish, replaced_materialization
from engine.runtime.lifecycle.full_refresh import settle
from engine.runtime.lifecycle.orphaned_tables import notes as orphan_notes
from engine.runtime.scheduler import dependencies, execute
from engine.runtime.sinks.table_comments import describe
from engine.runtime.spark_support.java_ended import java_ended
from engine.runtime.spark_support.spark_errors import diagnose, diagnose_test, spark_exceptions
from engine.runtime.streams.run_stream import run_stream
from engine.runtime.testing.run_data_test import DataTestVerdict, no_failures, run_test
from engine.runtime.testing.shared_test_scan import SharedScan, shared
from engine.runtime.testing.source_rows import SourceRows
from engine.secrets import scrub
from engine.spark.jars import jar_paths
from engine.spark.java import find_java
from engine.spark.jvm import LOG_NAME
from engine.spark.session import SessionSettings, open_session
from engine.state import locked
from engine.target_folder import own_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INTERRUPTED = "interrupted"
_ENDED = "because Java has ended"
_log = logging.getLogger("engine.runtime")

# Runs a unit test; what they are made of stands right of this stage.
RunUnit = Callable[["SparkSession", UnitTest], DataTestVerdict]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about a run.

    Attributes:
        command: build, run or test; kept in the results.
        threads: how many nodes run side by side.
        fail_fast: stop at the first failure.
        target_dir: folder of artifacts and logs.
        planned: what counts for the plan.
    """

    command: str
    threads: int
    fail_fast: bool
    target_dir: Path
    planned: PlanOptions = field(default_factory=PlanOptions)


def build(
    manifest: Manifest,
    target: Target,
    root: Path,
    selected: Sequence[str],
    options: Options,
    emit: Emit,
    run_unit: RunUnit | None = None,
    opened: SparkSession | None = None,
) -> RunResults:
    """Run the selected models and tests once, in the order of their references.

    Args:
        manifest: a project without errors.
        target: where to build.
        root: the project's folder.
        selected: ids of models and tests.
        options: from the command line.
        emit: gets every event.
        run_unit: runs the unit tests among what is selected.
        opened: a session to run in; left out, it has one of its own.

    Returns:
        The fold of the events.

    Raises:
        EngineError: nothing could be started: a lock is held, Java or jars are missing, ...
    """
    events: list[Event] = []

    def both(event: Event) -> None:
        events.append(event)
        emit(event)

    begin = time.monotonic()
    run_id = manifest.invocation_id or str(uuid.uuid4())
    order = run_order(manifest, selected)
    models = [n for i in order if isinstance(n := manifest.nodes[i], Model)]
    tests = [n for i in order if isinstance(n := manifest.nodes[i], DataTest)]
    place = target.place(root)
    sources = read_sources(manifest, place, order)

    def planned() -> Plan:
        plan = make_plan(manifest, order, read_deployed(manifest, target, place, order, sources), options.planned)
        if (refusal := refused_build(manifest, plan)) is not None:
            raise refusal
        return plan

    if any(source.fault is not None for source in sources.values()):
        planned()  # which raises before anything is made
    for folder in (target.catalog.path, target.state):
        own_folder(folder, root)
    catalog_settings.prepare(target.catalog)
    lake = Lake(target.catalog)
    with locked([table_state(target, m) for m in [*models, *publish.decided_by_tests(manifest, order)]]) as locks:
        plan = planned()
        for model in models:
            settle(model, table_state(target, model), lake.table(model.relation.schema, model.relation.name))
        own = spark_session(target, options.target_dir, locks, jar_sets(manifest, [*models, *tests]))
        with own if opened is None else nullcontext(opened) as spark:
            both(RunStarted(run_id, options.command, target.name, len(order), _now()))
            # Once, before anything runs side by side: two sessions that set up one catalog at a time collide.
            made = [*(m.relation for m in models), *(t.stored for t in tests if t.stored)]
            for catalog, schema in sorted({(relation.catalog, relation.schema) for relation in made}):
                create_namespace(spark, catalog, schema)
            run = Run(run_id, manifest, target, place, plan, spark, lake, both, options.planned.reset)
            gates = publish.gates(run, order)
            log = options.target_dir / "logs" / LOG_NAME
            turns = _Turns(run, order, gates, shared(tests), SourceRows(spark, manifest, place), run_unit, log)
            execute(
                order,
                dependencies(manifest, order),
                turns.work,
                threads=options.threads,
                fail_fast=options.fail_fast,
                interrupt=turns.interrupt,
            )
            gates.close()
    if options.command != "test":
        for note in orphan_notes(manifest, target, root):
            both(Diagnosed(note))
    both(RunFinished(time.monotonic() - begin))
    return fold(events)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def spark_session(
    target: Target, target_dir: Path, locks: Sequence[int] = (), sets: Sequence[str] = CORE
) -> Iterator[SparkSession]:
    """The one session of a run, with the named sets of jars.

    Raises:
        SetupError: Java, jars or the session cannot be had.
    """
    java = find_java()
    jars = jar_paths(sets, fetch=True, java=java, notify=_log.info)
    conf = {**catalog_settings.spark_conf(target.catalog), **target.spark_conf()}
    if target.driver_memory:
        conf["spark.driver.memory"] = target.driver_memory
    settings = SessionSettings(
        java=java,
        log_dir=target_dir / "logs",
        jar_paths=jars,
        master=target.master,
        conf=conf,
        inherit_fds=locks,
        umask=catalog_settings.umask(target.catalog),
    )
    session = open_session(settings)
    try:
        yield session.spark
    finally:
        session.close()


@dataclass(slots=True)
class _Turns:
    """Runs nodes one by one and tells what happens."""

    run: Run
    order: list[str]
    gates: publish.Gates
    looks: Mapping[str, SharedScan]
    source_rows: SourceRows
    run_unit: RunUnit | None = None
    log: Path = Path()
    ended: bool = False

    def work(self, node_id: str, failed_above: str | None) -> Status:
        """Run or skip one node."""
        node = self.run.manifest.nodes[node_id]
        index, total = self.order.index(node_id) + 1, len(self.order)
        begin = time.monotonic()
        if isinstance(node, DataTest | UnitTest):
            try:
                verdict = self._decided(node, self._test(node, failed_above))
            except Exception as error:  # noqa: BLE001 - it ends this test; the others run
                finding = self._unexpected(error, node.name, node.location)
                verdict = DataTestVerdict(Status.ERROR, 0, finding.message, (finding,))
            if self.run.stop.is_set() and verdict.status.failed:
                verdict = DataTestVerdict(Status.ERROR, 0, _INTERRUPTED)
            for finding in verdict.findings:
                self.run.emit(Diagnosed(finding))
            seconds, failures, message = time.monotonic() - begin, verdict.failures, verdict.message
            self.run.emit(TestFinished(node_id, index, total, verdict.status, seconds, failures, message, at=_now()))
            return verdict.status
        if not isinstance(node, Model):
            raise TypeError(node_id)
        kind, relation = node.materialized.value, str(node.relation)
        if failed_above is None:
            self.run.emit(ModelStarted(node_id, index, total, kind, relation))
        try:
            outcome = self._model(node, failed_above)
        except Exception as error:  # noqa: BLE001 - it ends this model; the others run
            outcome = self._failed((self._unexpected(error, node.name, Location(node.file)),))
        self.run.emit(
            ModelFinished(
                node=node_id,
                index=index,
                total=total,
                kind=kind,
                relation=relation,
                seconds=time.monotonic() - begin,
                at=_now(),
                **{f.name: getattr(outcome, f.name) for f in fields(outcome)},
            )
        )
        return outcome.status

    def interrupt(self) -> None:
        """Make running models end soon: streams between two polls, batch queries at once."""
        self.run.stop.set()
        self.run.spark.sparkContext.cancelAllJobs()

    def _decided(self, test: DataTest | UnitTest, verdict: DataTestVerdict) -> DataTestVerdict:
        """Publish what waited for a test, if it was the last; that it could not be published is a failed test."""
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
        if failed_above is not None:
            return DataTestVerdict(Status.SKIPPED, 0, self._skipped(failed_above))
        if self.ended:
            return DataTestVerdict(Status.SKIPPED, 0, _ENDED)
        if isinstance(test, UnitTest):
            if self.run_unit is None:
                raise TypeError(test.id)
            return self.run_unit(self.run.spark, test)
        failures: tuple[type[Exception], ...] = (EngineError, *spark_exceptions())
        try:
            return self._data_test(test)
        except failures as error:
            _log.exception("test %s", test.name)
            if (ended := self._ended()) is not None:
                return DataTestVerdict(Status.ERROR, 0, ended.message, (ended.at(test.location, test.name),))
            node = self.run.manifest.nodes[test.model]
            if isinstance(node, Model):
                finding = diagnose_test(error, test, node)
            else:
                told = diagnose(error, node)[0]  # type: ignore[arg-type]
                finding = replace(told, node=test.name, location=test.location)
            return DataTestVerdict(Status.ERROR, 0, finding.message, (finding,))

    def _data_test(self, test: DataTest) -> DataTestVerdict:
        look, session = self.looks.get(test.id), self.source_rows.session(test)
        if look is not None and look.clean(self.run, test, session):
            return no_failures(test)
        return run_test(session, test, publish.reading_what_waits(self.run, test))

    def _model(self, model: Model, failed_above: str | None) -> Outcome:
        if failed_above is not None:
            return Outcome(Status.SKIPPED, self._skipped(failed_above))
        if self.ended:
            return Outcome(Status.SKIPPED, _ENDED)
        failures: tuple[type[Exception], ...] = (EngineError, *spark_exceptions())
        try:
            replaced_materialization.announce(self.run, model)
            outcome = run_stream(self.run, model) if model.streaming else run_batch(self.run, model)
            if not publish.apart(self.run, model):
                describe(self.run, model)
            for finding in self.gates.built(model):
                self.run.emit(Diagnosed(finding))
        except failures as error:
            _log.exception("model %s", model.name)
            ended = self._ended()
            return self._failed((ended.at(Location(model.file), model.name),) if ended else diagnose(error, model))
        return outcome

    def _unexpected(self, error: Exception, node: str, place: Location | None) -> Diagnostic:
        """What to tell of an error that nobody expected: it ends one model or test, with its trace in the log."""
        _log.error("%s", node, exc_info=error)
        if (ended := self._ended()) is not None:
            return ended.at(place, node)
        message = scrub(f"the engine itself failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        hint = "The trace is in target/logs/engine.log: please report it. Nothing that was committed is affected."
        return Diagnostic("internal", message, hint, node=node, location=place)

    def _ended(self) -> Diagnostic | None:
        """Why nothing more can run; None: Java is there."""
        found = java_ended(self.run.spark, self.log)
        self.ended = self.ended or found is not None
        return found

    def _failed(self, findings: tuple[Diagnostic, ...]) -> Outcome:
        if self.run.stop.is_set():
            # What Spark says of a job that was cancelled is nothing to fix; the log has it.
            return Outcome(Status.ERROR, _INTERRUPTED)
        for finding in findings:
            self.run.emit(Diagnosed(finding))
        return Outcome(Status.ERROR, findings[0].message)
