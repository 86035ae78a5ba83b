"""`engine plan`: what a build would do to each node, and why, without Java and without writing anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def show_plan(
    chosen: CommandSettings, selection: Selection, options: RebuildOptions, output: str, fail_on: Sequence[str] = ()
) -> bool:
    """Print the plan of a build; False if the build would be rejected, or do what `fail_on` names."""
    from engine.plan.actions.refused_build import refused_build

    as_text = output == "text"
    result = compiled(chosen, heard=as_text, warnings=Warnings.SELECTED)
    found = selected(chosen, result.manifest, selection, tell=as_text, daily=True)
    nodes = runnable(result.manifest, found, "build", empty=options.get("empty", False))
    result = chosen.project.defer(result, nodes, selection)
    manifest = result.manifest
    plan = chosen.project.decide(result, nodes, **options)
    _print(manifest, plan, output, result.target.name)
    refused = refused_build(manifest, plan)
    found_errors = [*(refused.diagnostics if refused is not None else ()), *_unwanted(manifest, plan, fail_on)]
    chosen.out.diagnostics(found_errors)
    return not found_errors


def _print(manifest: Manifest, plan: Plan, output: str, target: str) -> None:
    if output == "markdown":
        write(plan_markdown(manifest, plan, target), end="")
    elif output == "json":
        for action in plan.actions.values():
            write(json_text(plan_record(manifest, action)))
    else:
        for line in plan_lines(manifest, plan):
            word, space, rest = line.partition(" ")
            write(Styled(word, _COLOURS.get(word, "")), space + rest)


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
