"""`build`, `run`, `test` and `retry`: from a selection to a summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.api import Command, Project, RunOptions, Selection, runnable
from engine.api.previous_command import UNFINISHED, PreviousCommand, previous_command
from engine.cli.command_setup import CommandSettings, Warnings, check_project, compiled, deferred, log_file, selected
from engine.cli.console.junit import write_junit
from engine.cli.exits import terminable
from engine.errors import UsageError
from engine.events import Diagnosed, Step, StepStarted

_WHAT = {"build": "models or tests", "run": "models", "test": "tests"}


def run_nodes(
    chosen: CommandSettings, command: Command, selection: Selection, options: RunOptions, junit: Path | None = None
) -> bool:
    """Run what is selected; False if something failed. `junit` is where the ends of tests are written."""
    with terminable(), log_file(chosen):
        chosen.out.event(StepStarted(Step.COMPILE))
        result = compiled(chosen, warnings=Warnings.SELECTED)
        found = selected(chosen, result.manifest, selection, tell=False)
        nodes = runnable(result.manifest, found, command, empty=options.get("empty", False))
        if not nodes:
            chosen.out.say(f"The selection has no {_WHAT[command]}; nothing to do")
            return True
        result = deferred(chosen, result, nodes, selection)
        results = chosen.project.execute(command, result, nodes, chosen.out.event, **options)
        if junit is not None:
            write_junit(results, result.manifest, junit, chosen.root)
        chosen.out.summary(results)
    return not results.failed


def clone_and_run(chosen: CommandSettings, selection: Selection, options: RunOptions, target: str) -> bool:
    """Build what of a selection differs from another target, from clones of its tables; False if something failed."""
    from engine.api.clone import clone, cloning_of

    with terminable(), log_file(chosen):
        chosen.out.event(StepStarted(Step.COMPILE))
        result = compiled(chosen, warnings=Warnings.SELECTED)
        found = selected(chosen, result.manifest, selection, tell=False)
        nodes = runnable(result.manifest, found, "build")
        cloning = cloning_of(chosen.project, result, nodes, target)
        if not cloning.nodes:
            chosen.out.say(f"Nothing that is selected differs from target '{target}'; nothing to do")
            return True
        result = deferred(chosen, result, cloning.nodes, cloning.selection)
        for told in clone(chosen.project, result, cloning):
            chosen.out.event(Diagnosed(told))
        results = chosen.project.execute("build", result, cloning.nodes, chosen.out.event, **options)
        chosen.out.summary(results)
    return not results.failed


def retry(chosen: CommandSettings, threads: int | None, *, fail_fast: bool | None) -> bool:
    """Run again what did not succeed; False if something failed."""
    check_project(chosen)
    last = previous_command(chosen.target_dir)
    if last is None:
        chosen.out.say(
            f"Nothing to retry: there is no earlier build, run or test in {chosen.target_dir.name}/run_results.json"
        )
        return True
    given: RunOptions = {"fail_fast": fail_fast} if fail_fast is not None else {}
    if threads is not None:
        given["threads"] = threads
    return _run_again(replace(chosen, project=_project(chosen.project, last)), last, {**last.options, **given})


def _project(now: Project, last: PreviousCommand) -> Project:
    """The project with the target and the variables of the last run, unless the command line has others."""
    if last.vars is None and not now.vars:
        message = f"the last {last.command} had a secret in --vars, which is not kept"
        raise UsageError("usage", message, "Pass the same --vars again.")
    return Project(
        now.root,
        target=now.target or last.target,
        vars=now.vars or last.vars,
        target_path=now.target_dir,
        warn_error=last.warn_error if now.warn_error is None else now.warn_error,
    )


def _run_again(chosen: CommandSettings, last: PreviousCommand, options: RunOptions) -> bool:
    with terminable(), log_file(chosen):
        chosen.out.event(StepStarted(Step.COMPILE))
        result = compiled(chosen, warnings=Warnings.SELECTED)
        unfinished = selected(chosen, result.manifest, UNFINISHED, tell=False)
        again = last.again(result.manifest, unfinished)
        nodes = runnable(result.manifest, again, last.command, empty=options.get("empty", False))
        began = f" of {_utc(last.started_at)}" if last.started_at else ""
        if not nodes:
            chosen.out.say(f"Nothing to retry: the last {last.command}{began} succeeded")
            return True
        result = deferred(chosen, result, nodes, last.deferral)
        chosen.out.say(f"Retrying {len(nodes)} node{'' if len(nodes) == 1 else 's'} of the {last.command}{began}")
        results = chosen.project.execute(last.command, result, nodes, chosen.out.event, **options)
        chosen.out.summary(results)
    return not results.failed


def _utc(text: str) -> str:
    """2026-11-23T22:41:35+00:00 as 2026-11-23 22:41 UTC."""
    return f"{text[:16].replace('T', ' ')} UTC"
