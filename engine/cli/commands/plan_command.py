"""`engine plan`: what a build would do to each node, and why, without Java and without writing anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api import RebuildOptions, Selection, runnable
from engine.api.plan_markdown import plan_markdown
from engine.api.plan_output import plan_lines, plan_record, plan_word
from engine.cli.command_setup import CommandSettings, Warnings, compiled, selected
from engine.cli.console.terminal import Styled, json_text, write
from engine.compile import Manifest, Model
from engine.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from engine.plan import Plan


_COLOURS = {
    "create": "green", "empty": "green", "resume": "cyan", "reset": "yellow", "refresh": "yellow", "rebuild": "yellow",
    "rejected": "red",
}  # fmt: skip


_CHANGED = {"+ ": "green", "- ": "red"}


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """How a plan is printed.

    Attributes:
        form: text, json or markdown.
        diff: also what an edit changes of a model's settings and query.
        fail_on: actions that are errors.
        no_catalog: it is compared with an earlier manifest alone.
    """

    form: str = "text"
    diff: bool = False
    fail_on: Sequence[str] = ()
    no_catalog: bool = False


def show_plan(chosen: CommandSettings, selection: Selection, options: RebuildOptions, output: PlanOutput) -> bool:
    """Print the plan of a build; False if it would be rejected, or has an action that is an error."""
    from engine.plan.actions.refused_build import refused_build

    as_text = output.form == "text"
    result = compiled(chosen, heard=as_text, warnings=Warnings.SELECTED)
    found = selected(chosen, result.manifest, selection, tell=as_text, daily=True)
    nodes = runnable(result.manifest, found, "build", empty=options.get("empty", False))
    result = chosen.project.defer(result, nodes, selection)
    manifest = result.manifest
    if output.no_catalog:
        plan, gone = _against(manifest, nodes, selection, options)
    else:
        plan, gone = chosen.project.decide(result, nodes, **options), ()
    took = _took(chosen, result.target.name) if as_text and not output.no_catalog else {}
    _print(manifest, plan, output, result.target.name, took, gone)
    refused = refused_build(manifest, plan)
    found_errors = [*(refused.diagnostics if refused is not None else ()), *_unwanted(manifest, plan, output.fail_on)]
    chosen.out.diagnostics(found_errors)
    return not found_errors


def _against(
    manifest: Manifest, nodes: Sequence[str], selection: Selection, options: RebuildOptions
) -> tuple[Plan, tuple[str, ...]]:
    """The plan against the manifest of `--state`, and the models that are not in the project any more.

    Raises:
        UsageError: there is no such manifest, or an option needs to know what is deployed.
    """
    from engine.compile.selection.previous_state import load_previous
    from engine.plan.against_manifest import plan_against, removed, writers_in

    if selection.state is None:
        hint = "Pass the folder of a manifest.json that was kept, such as the target/ folder of the last deployment."
        raise UsageError("usage", "--no-catalog needs --state", hint)
    if any(options.values()):
        message = "--no-catalog cannot be combined with options that depend on what is deployed"
        raise UsageError("usage", message, "Leave out -f, --reset-checkpoint, --accept, --empty and --discard-refresh.")
    before = writers_in(load_previous(selection.state, must_exist=True).nodes)
    return plan_against(manifest, nodes, before), removed(manifest, before)


def _took(chosen: CommandSettings, target: str) -> dict[str, float]:
    """Seconds of each model that the last run built in a target."""
    from engine.docs.site.last_run import last_run
    from engine.events import Status

    run = last_run(chosen.project.target_dir)
    built = run.nodes.items() if run.target == target else ()
    return {node: one.seconds for node, one in built if one.status == Status.SUCCESS and one.seconds is not None}


def _print(
    manifest: Manifest, plan: Plan, output: PlanOutput, target: str, took: Mapping[str, float], gone: Sequence[str]
) -> None:
    if output.form == "markdown":
        write(plan_markdown(manifest, plan, target, diff=output.diff, removed=gone), end="")
    elif output.form == "json":
        for action in plan.actions.values():
            write(json_text(plan_record(manifest, action, diff=output.diff)))
    else:
        for line in plan_lines(manifest, plan, diff=output.diff, took=took):
            word, space, rest = line.partition(" ")
            if word:
                write(Styled(word, _COLOURS.get(word, "")), space + rest)
            else:
                write(Styled(line, _CHANGED.get(line.lstrip()[:2], "") if output.diff else ""))
        if gone:
            write(f"no longer in the project, their tables stay: {', '.join(gone)}")


def _unwanted(manifest: Manifest, plan: Plan, kinds: Sequence[str]) -> Iterator[Diagnostic]:
    """The errors of actions that the user wants to be told of by the exit code."""
    for kind in dict.fromkeys(kinds):
        names = [
            node.name
            for action in plan.actions.values()
            if isinstance(node := manifest.nodes[action.node], Model) and plan_word(action) == kind
        ]
        if names:
            message = f"the plan has what --fail-on {kind} names: {', '.join(names)}"
            yield Diagnostic("plan-not-allowed", message, "Confirm it, and run without --fail-on; or undo the edit.")
