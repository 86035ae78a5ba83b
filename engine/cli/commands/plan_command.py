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
from engine.errors import Diagnostic

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
    """

    form: str = "text"
    diff: bool = False
    fail_on: Sequence[str] = ()


def show_plan(chosen: CommandSettings, selection: Selection, options: RebuildOptions, output: PlanOutput) -> bool:
    """Print the plan of a build; False if it would be rejected, or has an action that is an error."""
    from engine.plan.actions.refused_build import refused_build

    as_text = output.form == "text"
    result = compiled(chosen, heard=as_text, warnings=Warnings.SELECTED)
    found = selected(chosen, result.manifest, selection, tell=as_text, daily=True)
    nodes = runnable(result.manifest, found, "build", empty=options.get("empty", False))
    result = chosen.project.defer(result, nodes, selection)
    manifest = result.manifest
    plan = chosen.project.decide(result, nodes, **options)
    _print(manifest, plan, output, result.target.name, _took(chosen, result.target.name) if as_text else {})
    refused = refused_build(manifest, plan)
    found_errors = [*(refused.diagnostics if refused is not None else ()), *_unwanted(manifest, plan, output.fail_on)]
    chosen.out.diagnostics(found_errors)
    return not found_errors


def _took(chosen: CommandSettings, target: str) -> dict[str, float]:
    """Seconds of each model that the last run built in a target."""
    from engine.docs.site.last_run import last_run
    from engine.events import Status

    run = last_run(chosen.project.target_dir)
    built = run.nodes.items() if run.target == target else ()
    return {node: one.seconds for node, one in built if one.status == Status.SUCCESS and one.seconds is not None}


def _print(manifest: Manifest, plan: Plan, output: PlanOutput, target: str, took: Mapping[str, float]) -> None:
    if output.form == "markdown":
        write(plan_markdown(manifest, plan, target, diff=output.diff), end="")
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
