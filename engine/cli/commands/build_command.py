"""`build`, `run`, `test` and `retry`: from a selection to a summary."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from engine.api import Command, Project, RunOptions, Selection, runnable, sinks_among
from engine.api.previous_command import UNFINISHED, PreviousCommand, previous_command
from engine.cli.command_setup import (
    CommandSettings,
    Warnings,
    check_project,
    compile_and_report,
    defer_and_report,
    log_file,
    select_and_report,
)
from engine.cli.console.amounts import amount
from engine.cli.console.printing import diagnostic_text
from engine.cli.console.safe_output import plain
from engine.cli.exits import terminable
from engine.compile import DataTest, Manifest, UnitTest
from engine.errors import ProjectError, UsageError
from engine.events import Diagnosed, RunResults, Status, Step, StepStarted, TestFinished
from engine.secrets.scrubber import scrub
from engine.target_folder import write_report

# Characters that XML 1.0 cannot have.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(results: RunResults, manifest: Manifest, path: Path, project: Path) -> None:
    """Write the tests of a run. Raises UsageError: it cannot be written."""
    finished_tests = [r for r in results.results if isinstance(r, TestFinished)]
    suite = ET.Element(
        "testsuite",
        name=_clean(manifest.project),
        timestamp=results.started_at.partition("+")[0],
        tests=str(len(finished_tests)),
        failures=str(sum(r.status is Status.FAIL for r in finished_tests)),
        errors=str(sum(r.status is Status.ERROR for r in finished_tests)),
        skipped=str(sum(r.status is Status.SKIPPED for r in finished_tests)),
        time=f"{results.seconds:.3f}",
    )
    for result in finished_tests:
        _case(suite, result, manifest, results)
    root = ET.Element("testsuites")
    root.append(suite)
    try:
        write_report(path, ET.tostring(root, encoding="utf-8", xml_declaration=True), project)
    except ProjectError as error:
        raise UsageError("usage", error.diagnostic.message, "Add a file name: --junit-xml report.xml") from error


def _case(suite: ET.Element, result: TestFinished, manifest: Manifest, results: RunResults) -> None:
    node = manifest.nodes[result.node]
    if not isinstance(node, DataTest | UnitTest):
        return
    kind = "unit_test" if isinstance(node, UnitTest) else "data_test"
    case = ET.SubElement(
        suite, "testcase", name=_clean(node.name), classname=_clean(f"{kind}.{node.model.partition('.')[2]}"),
        time=f"{result.seconds:.3f}", file=_clean(node.file), line=str(node.location.line if node.location else 1),
    )  # fmt: skip
    if result.cached:
        properties = ET.SubElement(case, "properties")
        for key, value in {"cached": "true", "passed_at": result.passed_at}.items():
            ET.SubElement(properties, "property", name=key, value=value)
    tag = {Status.FAIL: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}.get(result.status)
    if tag is None:
        if result.message:
            ET.SubElement(case, "system-out").text = _clean(result.message)
        return
    name = result.node.partition(".")[2]
    texts = [plain(*diagnostic_text(d)) for d in results.diagnostics if d.node == name]
    ending = ET.SubElement(case, tag, message=_clean(result.message))
    ending.text = _clean("\n".join(texts)) if texts else None


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", scrub(text))


_WHAT = {"build": "models or tests", "run": "models", "test": "tests"}


def run_nodes(
    settings: CommandSettings, command: Command, selection: Selection, options: RunOptions, junit: Path | None = None
) -> bool:
    """Run what is selected; False if something failed. `junit` is where the ends of tests are written."""
    with terminable(), log_file(settings):
        settings.out.event(StepStarted(Step.COMPILE))
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        selected_nodes = select_and_report(settings, result.manifest, selection, report_empty=False)
        nodes = runnable(result.manifest, selected_nodes, command, empty=options.get("empty", False))
        sinks = sinks_among(selected_nodes, command, empty=options.get("empty", False))
        if not nodes and not sinks:
            settings.out.say(f"The selection has no {_WHAT[command]}; nothing to do")
            return True
        result = defer_and_report(settings, result, nodes, selection)
        results = settings.project.execute(command, result, nodes, settings.out.event, sinks=sinks, **options)
        if junit is not None:
            write_junit(results, result.manifest, junit, settings.root)
        settings.out.summary(results)
    return not results.failed


def clone_and_run(settings: CommandSettings, selection: Selection, options: RunOptions, target: str) -> bool:
    """Build what of a selection differs from another target, from clones of its tables; False if something failed."""
    from engine.api.clone import clone, cloning_of

    with terminable(), log_file(settings):
        settings.out.event(StepStarted(Step.COMPILE))
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        selected_nodes = select_and_report(settings, result.manifest, selection, report_empty=False)
        nodes = runnable(result.manifest, selected_nodes, "build")
        cloning = cloning_of(settings.project, result, nodes, target)
        if not cloning.nodes:
            settings.out.say(f"Nothing that is selected differs from target '{target}'; nothing to do")
            return True
        result = defer_and_report(settings, result, cloning.nodes, cloning.selection)
        for note in clone(settings.project, result, cloning):
            settings.out.event(Diagnosed(note))
        results = settings.project.execute("build", result, cloning.nodes, settings.out.event, **options)
        settings.out.summary(results)
    return not results.failed


def retry(settings: CommandSettings, threads: int | None, *, fail_fast: bool | None) -> bool:
    """Run again what did not succeed; False if something failed."""
    check_project(settings)
    last = previous_command(settings.target_dir)
    if last is None:
        settings.out.say(
            f"Nothing to retry: there is no earlier build, run or test in {settings.target_dir.name}/run_results.json"
        )
        return True
    overrides: RunOptions = {"fail_fast": fail_fast} if fail_fast is not None else {}
    if threads is not None:
        overrides["threads"] = threads
    return _run_again(replace(settings, project=_project(settings.project, last)), last, {**last.options, **overrides})


def _project(current: Project, last: PreviousCommand) -> Project:
    """The project with the target and the variables of the last run, unless the command line has others."""
    if last.vars is None and not current.vars:
        message = f"the last {last.command} had a secret in --vars, which is not kept"
        raise UsageError("usage", message, "Pass the same --vars again.")
    return Project(
        current.root,
        target=current.target or last.target,
        vars=current.vars or last.vars,
        target_path=current.target_dir,
        warn_error=last.warn_error if current.warn_error is None else current.warn_error,
    )


def _run_again(settings: CommandSettings, last: PreviousCommand, options: RunOptions) -> bool:
    with terminable(), log_file(settings):
        settings.out.event(StepStarted(Step.COMPILE))
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        unfinished = select_and_report(settings, result.manifest, UNFINISHED, report_empty=False)
        nodes_to_retry = last.nodes_to_retry(result.manifest, unfinished)
        nodes = runnable(result.manifest, nodes_to_retry, last.command, empty=options.get("empty", False))
        sinks = sinks_among(unfinished, last.command, empty=options.get("empty", False))
        start_text = f" of {_utc(last.started_at)}" if last.started_at else ""
        if not nodes and not sinks:
            settings.out.say(f"Nothing to retry: the last {last.command}{start_text} succeeded")
            return True
        result = defer_and_report(settings, result, nodes, last.deferral)
        settings.out.say(f"Retrying {amount(len(nodes) + len(sinks), 'node')} of the {last.command}{start_text}")
        results = settings.project.execute(last.command, result, nodes, settings.out.event, sinks=sinks, **options)
        settings.out.summary(results)
    return not results.failed


def _utc(text: str) -> str:
    """2026-11-23T22:41:35+00:00 as 2026-11-23 22:41 UTC."""
    return f"{text[:16].replace('T', ' ')} UTC"
