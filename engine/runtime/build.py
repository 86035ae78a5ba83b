"""Stage 4: a bounded run of models and tests."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.compile import DataTest, Manifest, Model, Target, UnitTest
from engine.errors import Diagnostic
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
    Step,
    StepStarted,
    TestFinished,
    fold,
    now,
)
from engine.lake.catalog import catalog_settings
from engine.lake.clients.catalog_client import check_before_java
from engine.lake.lake_reader import Lake
from engine.object_store.s3_settings import hadoop_conf
from engine.plan import Plan, PlanOptions, make_plan
from engine.plan.actions.action import refused_build, run_order
from engine.plan.actions.state_checks import decided_by_tests
from engine.plan.deployed.deployed_facts import Deployed, DeployedSource, is_little
from engine.plan.deployed.read_deployed import read_deployed, read_sources
from engine.plan.deployed.renamed_tables import Renaming, renamings
from engine.plan.deployed.state_folder import table_state
from engine.plan.test_passes.known_passes import KnownPasses, PassCache
from engine.runtime.context.run_context import CORE, Run, jar_sets, state_conf, state_jars
from engine.runtime.context.run_results import unchanged_outcome
from engine.runtime.lifecycle.full_refresh import forget_skipped_refreshes, note_refreshes, report_resumed_refreshes
from engine.runtime.lifecycle.orphaned_tables import notes as orphan_notes
from engine.spark.cluster import is_submitted
from engine.spark.jars import jar_paths
from engine.spark.java import NO_JAVA, find_java
from engine.spark.jvm import LOG_NAME
from engine.spark.session import SessionSettings, open_session
from engine.spark_master import runs_locally
from engine.state import TableState, locked
from engine.target_folder import own_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.runtime.run_nodes import RunUnit
    from engine.sources import Place

_log = logging.getLogger("engine.runtime")

# What opens the session of a run; its parameters are those of `spark_session`.
OpenSession = Callable[..., AbstractContextManager["SparkSession"]]


@dataclass(frozen=True, slots=True)
class Turn:
    """The bounds of a turn of `engine start`; after `seconds` it ends between two micro-batches, with more to read."""

    seconds: float
    stop: threading.Event


@dataclass(frozen=True, slots=True)
class Options:
    """Command-line options of a run.

    `within`: ids of all nodes that the session is for, where it outlives the run. `sinks`: ids of those that deliver at
    the end. `turn`: it is a turn of `engine start`, which says itself what it notes of the project.
    """

    command: str
    threads: int
    fail_fast: bool
    target_dir: Path
    planned: PlanOptions = field(default_factory=PlanOptions)
    cache: PassCache | None = None
    within: Sequence[str] = ()
    sinks: Sequence[str] = ()
    turn: Turn | None = None


def build(
    manifest: Manifest,
    target: Target,
    root: Path,
    selected: Sequence[str],
    options: Options,
    emit: Emit,
    run_unit: RunUnit | None = None,
    opening: OpenSession | None = None,
) -> RunResults:
    """Run the selected models and tests once, in the order of their references, then the sinks.

    `opening`: opens the session if there is work, and gets the locks of the tables; left out: `spark_session`.

    Raises EngineError: nothing could be started: a lock is held, Java or jars are missing, ...
    """
    events: list[Event] = []

    def emit_recorded(event: Event) -> None:
        events.append(event)
        emit(event)

    begin = time.monotonic()
    order = run_order(manifest, selected)
    notes = _build_tables(manifest, target, root, order, options, emit_recorded, events, run_unit, opening)
    if options.sinks:
        from engine.runtime.deliver_sinks import deliver_sinks

        deliver_sinks(manifest, target, options.sinks, order, fold(events), emit_recorded)
    for note in notes:
        emit_recorded(Diagnosed(note))
    emit_recorded(RunFinished(time.monotonic() - begin))
    return fold(events)


def _build_tables(
    manifest: Manifest,
    target: Target,
    root: Path,
    order: list[str],
    options: Options,
    emit_recorded: Emit,
    events: Sequence[Event],
    run_unit: RunUnit | None,
    opening: OpenSession | None,
) -> Iterable[Diagnostic]:
    """Run models and tests; return further findings."""
    run_id = manifest.invocation_id or str(uuid.uuid4())
    total = len(order) + len(options.sinks)
    models = [n for i in order if isinstance(n := manifest.nodes[i], Model)]
    read_nodes = [n for i in options.within or order if isinstance(n := manifest.nodes[i], Model | DataTest)]
    place = target.place(root)
    sources = read_sources(manifest, place, order)
    pass_cache = options.cache if len(models) < len(order) else None
    passes = KnownPasses(manifest, target, root, sources, pass_cache) if pass_cache is not None else None

    def planned() -> tuple[Plan, Deployed]:
        return _accepted_plan(manifest, target, place, order, sources, passes, options.planned)

    def notes() -> Iterable[Diagnostic]:
        return orphan_notes(manifest, target, root) if options.command != "test" and options.turn is None else ()

    if any(source.fault is not None for source in sources.values()):
        planned()  # which raises before anything is made
    _make_folders(target, root)
    lake, decided_models = Lake(target.catalog), [*models, *decided_by_tests(manifest, order)]
    renamed_states = _earlier_names(manifest, target, root, models, lake)
    with locked(
        [*(table_state(target, model) for model in decided_models), *renamed_states], keeps_running=bool(options.turn)
    ) as locks:
        plan, deployed = planned()
        if _rename_tables(target, plan, emit_recorded):
            plan, deployed = planned()
        if plan.unchanged:
            emit_recorded(RunStarted(run_id, options.command, target.name, total, now()))
            _report_unchanged(manifest, target, plan, deployed, emit_recorded)
            return notes()
        _settle_refreshes(target, models, lake)
        noted_refreshes = note_refreshes(target, models, plan, deployed, options.planned)
        emit_recorded(StepStarted(Step.SESSION))
        run_unit = run_unit and _run_unit_tests_first(manifest, target, order, options, run_unit, passes, opening)
        opening = opening or spark_session
        jars = jar_sets(manifest, read_nodes)
        with opening(target, options.target_dir, locks, jars, brief=is_little(deployed)) as spark:
            from engine.runtime.lifecycle.expire_snapshots import expire_snapshots
            from engine.runtime.run_nodes import run_nodes

            emit_recorded(RunStarted(run_id, options.command, target.name, total, now()))
            report_resumed_refreshes(emit_recorded, models, plan, deployed, options.planned)
            run = Run(
                run_id, manifest, target, replace(place, topics=deployed.topics(manifest)), plan, spark, lake,
                emit_recorded, options.planned.reset, **_bounds(options),
            )  # fmt: skip
            _claim_tables(run, decided_models, deployed)
            skipped = run_nodes(
                run, order, run_unit, options.target_dir / "logs" / LOG_NAME, passes,
                threads=options.threads, fail_fast=options.fail_fast,
            )  # fmt: skip
            forget_skipped_refreshes(target, manifest, plan, noted_refreshes, skipped)
            expire_snapshots(run, _successful_models(events, models))
    return notes()


def _accepted_plan(
    manifest: Manifest,
    target: Target,
    place: Place,
    order: list[str],
    sources: Mapping[str, DeployedSource],
    passes: KnownPasses | None,
    options: PlanOptions,
) -> tuple[Plan, Deployed]:
    """Plan from what is deployed now. Raises EngineError: the plan rejects the build."""
    deployed = read_deployed(manifest, target, place, order, sources)
    if passes is not None:
        deployed = replace(deployed, passed=passes.counting(order))
    plan = make_plan(manifest, order, deployed, options)
    if (refusal := refused_build(manifest, plan)) is not None:
        raise refusal
    return plan, deployed


def _make_folders(target: Target, root: Path) -> None:
    for folder in (*_local_lake_folders(target), *([target.state] if isinstance(target.state, Path) else [])):
        own_folder(folder, root)
    catalog_settings.prepare(target.catalog)


def _earlier_names(
    manifest: Manifest, target: Target, root: Path, models: Sequence[Model], lake: Lake
) -> list[TableState]:
    renames = renamings(manifest, target, root, models, lake).values()
    return [renaming.folder for renaming in renames if isinstance(renaming, Renaming)]


def _rename_tables(target: Target, plan: Plan, emit: Emit) -> bool:
    renamed = [action.renaming for action in plan.actions.values() if action.renaming is not None]
    for renaming in renamed:
        from engine.runtime.lifecycle.rename_table import rename_note, rename_table

        rename_table(target, renaming)
        emit(Diagnosed(rename_note(renaming)))
    return bool(renamed)


def _settle_refreshes(target: Target, models: Iterable[Model], lake: Lake) -> None:
    # What Spark needs is imported when it is clear that it is needed, most of it while Java starts.
    from engine.runtime.lifecycle.full_refresh import settle_interrupted_refresh

    for model in models:
        settle_interrupted_refresh(model, table_state(target, model), lake)


def _claim_tables(run: Run, models: Iterable[Model], deployed: Deployed) -> None:
    from engine.runtime.context.ownership import raise_fences
    from engine.runtime.lifecycle.rename_table import rename_columns, sign_tables

    raise_fences(run, models)
    sign_tables(run, models, deployed.models)
    rename_columns(run, models, deployed.models)


def _bounds(options: Options) -> dict[str, Any]:
    turn = options.turn
    return {} if turn is None else {"stop": turn.stop, "ends_at": time.monotonic() + turn.seconds}


def _run_unit_tests_first(
    manifest: Manifest,
    target: Target,
    order: Sequence[str],
    options: Options,
    run_unit: RunUnit,
    passes: KnownPasses | None,
    opening: OpenSession | None,
) -> RunUnit:
    """Run the unit tests of a run on this machine, if its session is a cluster's; return what knows their verdicts."""
    if opening is not None or runs_locally(target.master):
        return run_unit
    tests = [node for i in order if isinstance(node := manifest.nodes[i], UnitTest)]
    due_tests = [test for test in tests if passes is None or passes.passed_at(test) is None]
    if not due_tests:
        return run_unit
    from engine.runtime.data_tests.unit_tests_first import local_target, verdicts

    with spark_session(local_target(target), options.target_dir) as spark:
        return verdicts(spark, due_tests, run_unit, options.threads)


def _local_lake_folders(target: Target) -> tuple[Path, ...]:
    return (target.catalog.path,) if catalog_settings.is_local(target.catalog) else ()


def _successful_models(events: Iterable[Event], models: Iterable[Model]) -> list[Model]:
    successful = {e.node for e in events if isinstance(e, ModelFinished) and e.status is Status.SUCCESS}
    return [model for model in models if model.id in successful]


def _report_unchanged(manifest: Manifest, target: Target, plan: Plan, deployed: Deployed, emit: Emit) -> None:
    total = len(plan.actions)
    for index, node in enumerate(plan.actions, 1):
        model = manifest.nodes[node]
        if not isinstance(model, Model):
            passed_at = deployed.passed[node]
            emit(TestFinished(node, index, total, Status.PASS, 0.0, at=now(), passed_at=passed_at))
            continue
        kind, relation = model.materialized.value, str(model.relation)
        if (outcome := unchanged_outcome(plan, target, model)) is None:
            raise ValueError(node)
        emit(ModelStarted(node, index, total, kind, relation))
        emit(
            ModelFinished(
                node=node, index=index, total=total, kind=kind, relation=relation, seconds=0.0, at=now(),
                **{f.name: getattr(outcome, f.name) for f in fields(outcome)},
            )
        )  # fmt: skip


@contextmanager
def spark_session(
    target: Target, target_dir: Path, locks: Sequence[int] = (), sets: Sequence[str] = CORE, *, brief: bool = False
) -> Iterator[SparkSession]:
    """Open the one session of a run, with the named sets of jars; its JVM holds `locks` until it is gone.

    `brief`: little to do, so that Java compiles and collects in the way that costs least.

    Raises:
        SetupError: Java, jars or the session cannot be had.
    """
    if _session_openers:
        with _session_openers[-1](target, target_dir, locks, sets, brief=brief) as spark:
            yield spark
        return
    settings = session_settings(target, target_dir, locks, sets, brief=brief)
    session = open_session(settings, _load_runtime)
    try:
        yield session.spark
    finally:
        session.close()


@contextmanager
def sessions_from(opening: OpenSession) -> Iterator[None]:
    """Have each session of the process opened by something else, which keeps it (`WarmSession`)."""
    _session_openers.append(opening)
    try:
        yield
    finally:
        _session_openers.remove(opening)


# Of a process that carries out the commands of others.
_session_openers: list[OpenSession] = []


def _load_runtime() -> None:
    """Import what runs nodes, while Java starts."""
    import engine.runtime.run_nodes  # noqa: F401


def session_settings(
    target: Target, target_dir: Path, locks: Sequence[int] = (), sets: Sequence[str] = CORE, *, brief: bool = False
) -> SessionSettings:
    """What the session of a run is made from; the parameters are those of `spark_session`.

    Raises SetupError: Java or jars cannot be had, or the catalog's server would steer Spark.
    """
    check_before_java(target.catalog)
    if is_submitted():
        # Java runs, with the jars that spark-submit was given.
        conf = target_conf(target)
        return SessionSettings(NO_JAVA, target_dir / "logs", master=target.master, conf=conf, inherit_fds=locks)
    java = find_java()
    sets = tuple(dict.fromkeys((*sets, *catalog_settings.catalog_jars(target.catalog), *state_jars(target))))
    jars = jar_paths(sets, fetch=True, java=java, notify=_log.info)
    return SessionSettings(
        java=java,
        log_dir=target_dir / "logs",
        jar_paths=jars,
        master=target.master,
        conf=target_conf(target),
        inherit_fds=locks,
        keep_classes=True,
        brief=brief,
        umask=catalog_settings.umask(target.catalog),
    )


def target_conf(target: Target) -> dict[str, str]:
    """Return what a target sets of a session, with secrets; they are masked in all texts from now on.

    Raises ProjectError: `env-missing`, a secret is not set.
    """
    files = hadoop_conf(target.s3()) if target.s3 is not None else {}
    conf = {**catalog_settings.spark_conf(target.catalog), **files, **state_conf(target), **target.spark_conf()}
    if target.driver_memory:
        conf["spark.driver.memory"] = target.driver_memory
    return conf
