"""`build`, `run` and `test`: from a selection to a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.command_setup import CommandSettings, Failed, Selection, Warnings, compiled, log_file, selected
from engine.cli.console.junit import write_junit
from engine.cli.exits import terminable
from engine.cli.unit_test_session import local_target, run_units
from engine.compile import Compiled, DataTest, Manifest, Model, UnitTest
from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.compile.pipeline.unsupported import unsupported
from engine.errors import UsageError
from engine.events import Emit, Event, RunResults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.plan import PlanOptions
    from engine.runtime.build import Options


def run_nodes(
    chosen: CommandSettings, command: str, selection: Selection, how: Mapping[str, Any], junit: Path | None = None
) -> bool:
    """Run what is selected; False if something failed. `junit` is where the ends of tests are written."""
    with terminable(), log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        nodes = wanted(result.manifest, selected(chosen, result.manifest, selection, tell=False), command)
        if not nodes:
            chosen.out.say(f"The selection has no {_WHAT[command]}; nothing to do")
            return True
        if command != "test":
            _check_supported(chosen, result.manifest, nodes)
        results = run_once(chosen, result, nodes, command, how)
        if junit is not None:
            write_junit(results, result.manifest, junit, chosen.root)
        chosen.out.summary(results)
    return not results.failed


def run_once(
    chosen: CommandSettings,
    result: Compiled,
    nodes: Sequence[str],
    command: str,
    how: Mapping[str, Any],
    opened: SparkSession | None = None,
) -> RunResults:
    """Run nodes and write what came of it to target/; `opened` is a session to run in."""
    from engine.docs.openlineage.transport import delivering
    from engine.runtime.build import build
    from engine.runtime.context.run_results import write_results

    manifest = result.manifest
    write_artifacts(manifest, chosen.target_dir)
    options = _options(chosen, command, how)
    target = local_target(result.target) if all(node.startswith("unit_test.") for node in nodes) else result.target
    with (
        delivering(manifest, target, chosen.root, chosen.out.diagnostics) as deliver,
        run_units(manifest, chosen.root, chosen.target, chosen.variables) as run_unit,
    ):
        emit = _both(chosen.out.event, deliver)
        results = build(manifest, target, chosen.root, nodes, options, emit, run_unit, opened)
    write_results(results, chosen.target_dir, manifest.project)
    return results


def _options(chosen: CommandSettings, command: str, how: Mapping[str, Any]) -> Options:
    """The options of a run.

    Raises:
        UsageError: two of them do not go together, or one cannot be read.
    """
    from engine.runtime.build import Options

    return Options(command, how["threads"], how["fail_fast"], chosen.target_dir, plan_options(how))


def plan_options(how: Mapping[str, Any]) -> PlanOptions:
    """The options of a plan.

    Raises:
        UsageError: two of them do not go together, or one cannot be read.
    """
    from engine.plan import PlanOptions
    from engine.plan.actions.reset_checks import reset_of

    text = how["reset_checkpoint"]
    if text and how["full_refresh"]:
        raise UsageError("usage", "--full-refresh and --reset-checkpoint together", "Give one of them.")
    return PlanOptions(how["full_refresh"], reset_of(text) if text else None, tuple(how["accept"]))


def _both(first: Emit, second: Emit) -> Emit:
    def emit(event: Event) -> None:
        first(event)
        second(event)

    return emit


def _check_supported(chosen: CommandSettings, manifest: Manifest, nodes: Sequence[str]) -> None:
    """Refuse what this version compiles but cannot run, before anything starts."""
    models = [n for i in nodes if isinstance(n := manifest.nodes[i], Model)]
    found = [finding for model in models for finding in unsupported(model)]
    if found:
        chosen.out.diagnostics(found)
        raise Failed


_WHAT = {"build": "models or tests", "run": "models", "test": "tests"}


def wanted(manifest: Manifest, nodes: Sequence[str], command: str) -> list[str]:
    """The models and tests of a selection that a command runs."""
    kinds = {"build": (Model, DataTest, UnitTest), "run": (Model,), "test": (DataTest, UnitTest)}[command]
    return [node for node in nodes if isinstance(manifest.nodes[node], kinds)]
