"""`Project`: compile, plan, build, run and test, for programs as for commands."""

from __future__ import annotations

import threading
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

from engine.api.one_session import alone, ignore_event, one_at_a_time, session_target
from engine.api.previous_command import UNFINISHED, PreviousCommand, previous_command, run_arguments
from engine.api.requests import (
    THREADS,
    Command,
    RebuildOptions,
    RunOptions,
    Select,
    Selection,
    TestRunOptions,
    artifact_folder,
    check_supported,
    choose,
    emitting_errors,
    failing_on_warnings,
    plan_options,
    results_with_errors,
    runnable,
    selection_of,
    sinks_among,
)
from engine.errors import Diagnostic, ProjectError
from engine.events import Diagnosed, Emit, Event, RunResults, Step, StepStarted
from engine.node_ids import rest_of, shown_name
from engine.user_cache import project_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.compile import Compiled, DataTest, Manifest, Relation, Target, UnitTest
    from engine.compile.selection.select_nodes import Choice
    from engine.plan import Plan
    from engine.plan.test_passes.compile_overrides import Versions
    from engine.plan.test_passes.known_passes import PassCache
    from engine.project import LoadedProject
    from engine.runtime.build import OpenSession, Options, Turn
    from engine.runtime.data_tests.run_data_test import DataTestVerdict
    from engine.runtime.run_nodes import RunUnit

RunTest: TypeAlias = "Callable[[DataTest | UnitTest], DataTestVerdict]"
_TARGET_DIR = "target"


class Project:
    """A folder with a project.yml.

    Its files are read again by each call, so that an edit counts for the next one.

    Attributes:
        root: the folder, absolute.
        target: name of the target; None: the project's default.
        vars: values for `var()`; they win over those of project.yml.
        target_dir: folder of artifacts and logs, absolute.
        warn_error: warnings are errors; None: as `flags:` of project.yml has it.

    Raises:
        UsageError: the target path is the project's folder, or above it.
        ProjectError: `target-link`: the way to it is a link in the project.
    """

    def __init__(
        self,
        path: str | Path = ".",
        *,
        target: str | None = None,
        vars: Mapping[str, Any] | None = None,  # noqa: A002
        target_path: str | Path | None = None,
        warn_error: bool | None = None,
    ) -> None:
        self.root = Path(path).resolve()
        self.target = target
        self.vars = dict(vars or {})
        self.target_dir = self.root / _TARGET_DIR if target_path is None else artifact_folder(self.root, target_path)
        self.warn_error = warn_error

    def __repr__(self) -> str:
        return f"Project({str(self.root)!r}, target={self.target!r})"

    def warnings_fail(self, loaded: LoadedProject) -> bool:
        """Whether warnings are errors: as this object says, or else the project."""
        return loaded.flags.warn_error if self.warn_error is None else self.warn_error

    def compile(self) -> Compiled:
        """Read and compile the project, from the cache where nothing has changed; needs no Java.

        Returns:
            The manifest, whose `diagnostics` are all errors and warnings of the project, and the target.

        Raises ProjectError: `project-missing`: the folder is not a project.
        """
        from engine.compile import compile_project
        from engine.project import is_project, load_project, missing_project

        if not is_project(self.root):
            raise ProjectError.from_diagnostics([missing_project(self.root)])
        cached = project_cache(self.target_dir)
        loaded = load_project(self.root, cached=cached)
        result = compile_project(loaded, target=self.target, variables=self.vars, cached=cached)
        return failing_on_warnings(result) if self.warnings_fail(loaded) else result

    def plan(self, select: Select = (), **options: Unpack[RebuildOptions]) -> Plan:
        """Return what a build would do to each node, and why; needs no Java, locks nothing and writes nothing.

        Args:
            select: terms, or a `Selection`; all nodes if left out.
            options: see `RebuildOptions`.

        Returns:
            The actions in the order of the build; `refusals` is all that forbids it.

        Raises:
            ProjectError: the project has errors, all of them in `diagnostics`.
            UsageError: a selection or option that cannot be read, or matches nothing.
            SetupError: the catalog cannot be read.
        """
        compiled, choice = self._compile_and_select(select)
        nodes = runnable(compiled.manifest, choice.nodes, "build", empty=options.get("empty", False))
        return self.decide(self.defer(compiled, nodes, selection_of(select)), nodes, **options)

    def build(self, select: Select = (), *, on_event: Emit | None = None, **options: Unpack[RunOptions]) -> RunResults:
        """Run models and their tests, each after what it reads, and write target/run_results.json.

        A model or test that fails raises nothing: `failed` of the results says that there is one.

        Args:
            select: terms, or a `Selection`; all nodes if left out.
            on_event: gets each event when it happens: from several threads, one event at a time.
            options: see `RunOptions`.

        Returns:
            How each node ended, with its numbers; empty if the selection has no model and no test.

        Raises:
            ProjectError: the project has errors, all of them in `diagnostics`.
            UsageError: a selection or option that cannot be read, or matches nothing.
            StateError: `table-locked`: another process writes one of the tables.
            SetupError: Java, jars, catalog or session cannot be had; `spark-session`: this process runs another.
            EngineError: what else could not be started.
        """
        return self._run("build", select, on_event, options)

    def run(self, select: Select = (), *, on_event: Emit | None = None, **options: Unpack[RunOptions]) -> RunResults:
        """Run models without their tests; else as `build`."""
        return self._run("run", select, on_event, options)

    def test(
        self,
        select: Select = (),
        *,
        on_event: Emit | None = None,
        **options: Unpack[TestRunOptions],
    ) -> RunResults:
        """Run unit tests, and the data tests of existing tables; else as `build`."""
        return self._run("test", select, on_event, cast("RunOptions", options))

    def retry(self, *, on_event: Emit | None = None) -> RunResults:
        """Run again what failed or was skipped in the last build, run or test, with the options of that command.

        Its target and its variables are those of this object. Empty results: there is nothing to retry.

        Raises:
            UsageError: the command had `reset_checkpoint`, which is not repeated.
            EngineError: as for `build`.
        """
        last = previous_command(self.target_dir)
        if last is None:
            return RunResults()
        return self._run(last.command, UNFINISHED, on_event, last.options, last)

    def _run(
        self,
        command: Command,
        select: Select,
        on_event: Emit | None,
        options: RunOptions,
        last: PreviousCommand | None = None,
    ) -> RunResults:
        compiled, choice = self._compile_and_select(select)
        emit = on_event or ignore_event
        for finding in choice.unmatched:
            emit(Diagnosed(finding))
        selected = last.nodes_to_retry(compiled.manifest, choice.nodes) if last else choice.nodes
        nodes = runnable(compiled.manifest, selected, command, empty=options.get("empty", False))
        compiled = self.defer(compiled, nodes, last.deferral if last else selection_of(select))
        sinks = sinks_among(choice.nodes, command, empty=options.get("empty", False))
        return self.execute(command, compiled, nodes, emit, sinks=sinks, **options)

    def _compile_and_select(self, select: Select) -> tuple[Compiled, Choice]:
        compiled = self.compile()
        if compiled.manifest.errors:
            raise ProjectError.from_diagnostics(compiled.manifest.errors)
        return compiled, self.select(compiled.manifest, selection_of(select))

    def select(self, manifest: Manifest, selection: Selection) -> Choice:
        """The nodes of a selection, with a warning for each term that matches nothing and may.

        Raises:
            UsageError: a selection that cannot be read, or matches nothing.
            ProjectError: the same in selectors.yml.
        """
        return choose(manifest, selection, self.root, self.target_dir)

    def defer(self, compiled: Compiled, nodes: Sequence[str], selection: Selection) -> Compiled:
        """Return the project with references to models that are not selected as another target's tables.

        Without `defer` in the selection, or where all that is read exists in the target, it is what it was.

        Args:
            compiled: the project, without errors.
            nodes: ids of the models and tests that run (`runnable`).
            selection: with `defer`, `favor_state` and `state`.

        Raises:
            UsageError: there is no manifest.json to defer to.
            ProjectError: `defer-catalog`, `defer-missing`: a table that would be read is out of reach.
            SetupError: the catalog cannot be read.
        """
        from engine.api.deferral import deferral_of, deferred
        from engine.compile import compile_project

        if (to := deferral_of(selection, compiled.project.flags)) is None:
            return compiled

        def again(tables_by_model: Mapping[str, Relation]) -> Compiled:
            recompiled = compile_project(
                compiled.project, target=self.target, variables=self.vars, deferred=tables_by_model
            )
            return failing_on_warnings(recompiled) if self.warnings_fail(compiled.project) else recompiled

        return deferred(compiled, nodes, to, again)

    def decide(self, compiled: Compiled, nodes: Sequence[str], **options: Unpack[RebuildOptions]) -> Plan:
        from engine.plan import plan_selection

        passes = self._passes(compiled, self._versions(compiled))
        return plan_selection(compiled.manifest, compiled.target, self.root, nodes, plan_options(options), passes)

    def expected_seconds(self, compiled: Compiled, plan: Plan) -> dict[str, float]:
        """Return about how many seconds models of a plan will take, by id, as far as earlier runs tell."""
        from engine.api.plan_report.durations import expected_seconds

        return expected_seconds(project_cache(self.target_dir), compiled.manifest, compiled.target.name, plan)

    def execute(
        self,
        command: Command,
        compiled: Compiled,
        nodes: Sequence[str],
        on_event: Emit = ignore_event,
        opening: OpenSession | None = None,
        within: Sequence[str] = (),
        turn: Turn | None = None,
        sinks: Sequence[str] = (),
        **options: Unpack[RunOptions],
    ) -> RunResults:
        """Run some nodes of the compiled project; `build`, `run` and `test` end here.

        Args:
            command: kept in the results.
            compiled: by `compile`, without errors.
            nodes: ids (`runnable`); none: nothing is started.
            on_event: as for `build`.
            opening: gives a session that is open (`WarmSession`), whose owner holds it (`alone`); None: one of its own.
            within: ids of all nodes that the session is for, if there are more.
            turn: it is a turn of `engine start`, of which target/ keeps no results; None: it is a run.
            sinks: ids (`sinks_among`).
            options: as for `build`.
        """
        from engine.api.deferral import deferred_inputs
        from engine.api.plan_report.durations import note_durations
        from engine.compile.artifacts.write_artifacts import write_artifacts
        from engine.docs.openlineage.background_delivery import delivering
        from engine.runtime.build import build
        from engine.runtime.context.run_results import unfinished_results, write_results

        manifest, target = compiled.manifest, session_target(compiled, within or nodes)
        strict = self.warnings_fail(compiled.project)
        if not nodes and not sinks:
            return RunResults(command=command, target=target.name)
        if command != "test":
            check_supported(manifest, nodes)
        versions = self._versions(compiled)
        build_options = replace(
            self._build_options(command, compiled, versions, options), within=within, sinks=sinks, turn=turn
        )
        run = with_adapted_tests(
            manifest, nodes, target, store_failures=options.get("store_failures", False), warnings_fail=strict
        )
        on_event = emitting_errors(on_event) if strict else on_event
        findings: list[Diagnostic] = []
        events: list[Event] = []
        arguments = run_arguments(self.vars, self.warn_error, options, compiled)
        deferred_by_node = {node: names for node in nodes if (names := deferred_inputs(manifest, node))}

        def write(results: RunResults) -> None:
            if turn is None:
                write_results(results, self.target_dir, manifest.project, arguments, deferred_by_node)

        with alone() if opening is None else nullcontext():
            if turn is None:
                write_artifacts(manifest, self.target_dir)
            with (
                delivering(manifest, target, self.root, findings.extend) as deliver,
                self._units(versions) as run_unit,
            ):
                emit = one_at_a_time(events.append, on_event, deliver)
                emit(StepStarted(Step.PLAN))
                try:
                    results = build(run, target, self.root, nodes, build_options, emit, run_unit, opening)
                except BaseException:  # whatever ends it: what was done is known to `retry`
                    if (unfinished := unfinished_results(events, run, nodes)) is not None:
                        write(unfinished)
                    raise
            for finding in findings:
                on_event(Diagnosed(finding))
            results = results_with_errors(results) if strict else results
            write(results)
            if turn is None and not options.get("empty", False):
                note_durations(project_cache(self.target_dir), manifest, target.name, events)
        return results

    def _build_options(self, command: Command, compiled: Compiled, versions: Versions, options: RunOptions) -> Options:
        from engine.runtime.build import Options

        fail_fast = options.get("fail_fast")
        return Options(
            command,
            threads=options.get("threads", THREADS),
            fail_fast=compiled.project.flags.fail_fast if fail_fast is None else fail_fast,
            target_dir=self.target_dir,
            planned=plan_options(options),
            cache=self._passes(compiled, versions, ignored=options.get("no_cache", False)),
        )

    def _versions(self, compiled: Compiled) -> Versions:
        from engine.plan.test_passes.compile_overrides import Versions

        return Versions(compiled, self.target, self.vars, project_cache(self.target_dir))

    def _passes(self, compiled: Compiled, versions: Versions, *, ignored: bool = False) -> PassCache:
        from engine.plan.test_passes.known_passes import PassCache

        target = compiled.target
        # What stands for a secret is another text in each process.
        conf = target.secrets.masked(target.conf) if target.secrets else target.conf
        settings = {**conf, "master": target.master}
        return PassCache(project_cache(self.target_dir), settings, versions.manifest_for, ignored)

    def unit_runs(self, compiled: Compiled) -> AbstractContextManager[RunUnit]:
        """What runs unit tests of the project; nothing is loaded before the first, which may not come."""
        return self._units(self._versions(compiled))

    @contextmanager
    def _units(self, versions: Versions) -> Iterator[RunUnit]:
        opening = threading.Lock()
        with ExitStack() as stack:

            @cache
            def opened() -> RunUnit:
                from engine.unit_tests.run_unit_test import run_units

                return stack.enter_context(run_units(versions, self.root))

            def run(spark: SparkSession, test: UnitTest) -> DataTestVerdict:
                with opening:
                    run_unit = opened()
                return run_unit(spark, test)

            yield run

    @contextmanager
    def session(self, compiled: Compiled, tests: Sequence[str]) -> Iterator[SparkSession]:
        """One Spark session for several runs of tests.

        Not for models: Java would have to hold the locks of their tables for as long as it lives.

        Args:
            compiled: the project when the session begins.
            tests: ids of tests that will run in it.
        """
        from engine.compile import DataTest
        from engine.runtime.build import spark_session
        from engine.runtime.context.run_context import jar_sets

        nodes = compiled.manifest.nodes
        sets = jar_sets(compiled.manifest, [test for i in tests if isinstance(test := nodes[i], DataTest)])
        target = session_target(compiled, tests)
        with alone(), spark_session(target, self.target_dir, sets=sets) as spark:
            yield spark

    @contextmanager
    def verdicts(self, compiled: Compiled, tests: Sequence[str], *, no_cache: bool = False) -> Iterator[RunTest]:
        """What runs one test at a time, all in one session, which opens for the first that runs: for runners of tests.

        Args:
            compiled: the project.
            tests: ids of those that may run.
            no_cache: unit tests run, also those that passed with the same model, rows and text; data tests always do.
        """
        from engine.compile import UnitTest
        from engine.events import Status, now
        from engine.plan.test_passes.known_passes import KnownPasses
        from engine.runtime.data_tests.run_data_test import DataTestVerdict, SourceRows, run_test

        manifest, versions = compiled.manifest, self._versions(compiled)
        cached_passes = self._passes(compiled, versions, ignored=no_cache)
        passes = KnownPasses(manifest, compiled.target, self.root, {}, cached_passes)
        strict = self.warnings_fail(compiled.project)
        adapted = with_adapted_tests(manifest, tests, compiled.target, store_failures=False, warnings_fail=strict)
        with ExitStack() as stack, self._units(versions) as run_unit:

            @cache
            def rows() -> SourceRows:
                spark = stack.enter_context(self.session(compiled, tests))
                return SourceRows(spark, manifest, compiled.target.place(self.root))

            def run(test: DataTest | UnitTest) -> DataTestVerdict:
                if not isinstance(test, UnitTest):
                    test = cast("DataTest", adapted.nodes[test.id])
                    return run_test(rows().session(test), test, test.sql)
                if (passed_at := passes.passed_at(test)) is not None:
                    return DataTestVerdict(Status.PASS, passed_at=passed_at)
                verdict = run_unit(rows().spark, test)
                passes.ended(test, now(), passed=verdict.status is Status.PASS)
                return verdict

            yield run
            passes.save()


def with_adapted_tests(
    manifest: Manifest, nodes: Iterable[str], target: Target, *, store_failures: bool, warnings_fail: bool
) -> Manifest:
    from engine.compile import DataTest

    if not (store_failures or warnings_fail):
        return manifest
    tests = [node for i in nodes if isinstance(node := manifest.nodes[i], DataTest)]
    if store_failures:
        names = Counter(shown_name(i).lower() for i in manifest.nodes if i.startswith("test."))
        tests = [_with_stored_failures(test, target, shared=names[test.name.lower()] > 1) for test in tests]
    if warnings_fail:
        tests = [_with_error_severity(test) for test in tests]
    # Nodes that nobody asks for need not be decoded.
    return replace(manifest, nodes=ChainMap({test.id: test for test in tests}, manifest.nodes))  # type: ignore[arg-type]


def _with_stored_failures(test: DataTest, target: Target, *, shared: bool) -> DataTest:
    """The test with a table for its failing rows; `shared`: others have its name."""
    from engine.compile.declarations.compile_context import failing_rows

    suffix = test.id.rpartition(".")[2] if rest_of(test.id) != test.name else test.kind
    table = f"{test.name}_{suffix}" if shared else test.name
    # Rows that are kept are written by the query, also if there are none.
    return test if test.stored else replace(test, stored=failing_rows(target, table), look=None)


def _with_error_severity(test: DataTest) -> DataTest:
    from engine.compile import Severity

    warn = test.warn_if or "!= 0"
    bounds = (warn,) if test.severity is Severity.WARN else (warn, test.error_if or "!= 0")
    return replace(test, severity=Severity.ERROR, error_if=" or ".join(dict.fromkeys(bounds)))
