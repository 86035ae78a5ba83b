"""`engine plan`: what a build would do to each node, and why, without Java and without writing anything."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api import RebuildOptions, Selection, runnable
from engine.api.plan_report.durations import total_seconds
from engine.api.plan_report.plan_markdown import NOTHING_BESIDE, BesidePlan, plan_markdown, removed_record
from engine.api.plan_report.plan_output import plan_lines, plan_record, plan_summary, plan_word
from engine.api.plan_report.plan_tree import TreeOptions, plan_tree
from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, compiled, selected
from engine.cli.console.drawn_tree import CHANGED, COLOURS, write_tree
from engine.cli.console.safe_output import Part, Styled, json_text, write
from engine.compile import Manifest, Model
from engine.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from engine.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanOutput:
    """How a plan is printed.

    Attributes:
        form: tree, text, json or markdown; empty: a tree on a terminal, else text.
        diff: also what an edit changes of a model's settings and query.
        fail_on: actions that are errors.
        no_catalog: it is compared with an earlier manifest alone.
        unchanged: a tree has the models that a build does nothing to, too.
    """

    form: str = ""
    diff: bool = False
    fail_on: Sequence[str] = ()
    no_catalog: bool = False
    unchanged: bool = False

    @property
    def shown(self) -> str:
        return self.form or ("tree" if sys.stdout.isatty() else "text")

    @property
    def for_people(self) -> bool:
        """Whether nothing but the plan may be printed for a program that reads it."""
        return self.shown in {"tree", "text"}


def show_plan(chosen: CommandSettings, selection: Selection, options: RebuildOptions, output: PlanOutput) -> bool:
    """Print the plan of a build; False if it would be rejected, or has an action that is an error."""
    # All that is read is in use until the end: looking for garbage in it takes a twentieth of a large plan.
    gc.disable()
    try:
        return _shown(chosen, selection, options, output)
    finally:
        gc.enable()


def _shown(chosen: CommandSettings, selection: Selection, options: RebuildOptions, output: PlanOutput) -> bool:
    from engine.plan.actions.action import refused_build
    from engine.runtime.lifecycle.orphaned_tables import begun_rebuilds

    result = compiled(chosen, heard=output.for_people, warnings=Warnings.SELECTED)
    found = selected(chosen, result.manifest, selection, tell=output.for_people, daily=True)
    nodes = runnable(result.manifest, found, "build", empty=options.get("empty", False))
    result = chosen.project.defer(result, nodes, selection)
    manifest = result.manifest
    beside = NOTHING_BESIDE
    if output.no_catalog:
        plan, beside = _against(manifest, nodes, selection, options)
    else:
        plan = chosen.project.decide(result, nodes, **options)
        chosen.out.diagnostics(begun_rebuilds(manifest, result.target, chosen.project.root))
    about = {} if output.no_catalog else chosen.project.expected_seconds(result, plan)
    _print(manifest, plan, output, result.target.name, about, beside)
    refused = refused_build(manifest, plan)
    found_errors = [*(refused.diagnostics if refused is not None else ()), *_unwanted(manifest, plan, output.fail_on)]
    chosen.out.diagnostics(found_errors)
    return not found_errors


def _against(
    manifest: Manifest, nodes: Sequence[str], selection: Selection, options: RebuildOptions
) -> tuple[Plan, BesidePlan]:
    """The plan against the manifest of `--state`, and what else differs from it.

    Raises:
        UsageError: there is no such manifest, or an option needs to know what is deployed.
    """
    from engine.compile.selection.previous_state import in_state, load_previous, tables_of
    from engine.plan.against_manifest import plan_against, removed, writers_in

    if selection.state is None:
        hint = "Pass the folder of a manifest.json that was kept, such as the target/ folder of the last deployment."
        raise UsageError("usage", "--no-catalog needs --state", hint)
    if any(options.values()):
        message = "--no-catalog cannot be combined with options that depend on what is deployed"
        raise UsageError("usage", message, "Leave out -f, --reset-checkpoint, --accept, --empty and --discard-refresh.")
    previous = load_previous(selection.state, must_exist=True)
    before = writers_in(previous.nodes)
    plan, tables = plan_against(manifest, nodes, before), tables_of(manifest)
    described = (
        manifest.nodes[node].name
        for node, action in plan.actions.items()
        if action.unchanged is not False
        and node in before
        and in_state(manifest.nodes[node], "modified.config", previous, tables)
    )
    return plan, BesidePlan(removed(manifest, before), tuple(described), without_catalog=True)


def _print(
    manifest: Manifest, plan: Plan, output: PlanOutput, target: str, about: Mapping[str, float], beside: BesidePlan
) -> None:
    total = total_seconds(manifest, about)
    if output.shown == "markdown":
        write(plan_markdown(manifest, plan, target, diff=output.diff, beside=beside, total=total), end="")
    elif output.shown == "json":
        for action in plan.actions.values():
            write(json_text(plan_record(manifest, action, diff=output.diff, about=about)))
        for name in beside.removed:
            write(json_text(removed_record(manifest, name)))
    elif output.shown == "tree":
        write(Styled(f"Plan for {one_line(target)}: {plan_summary(manifest, plan, total)}", "", bold=True))
        write_tree(plan_tree(manifest, plan, TreeOptions(output.diff, output.unchanged, about)))
        for line in beside.lines():
            write(one_line(line))
    else:
        _print_lines(plan_lines(manifest, plan, diff=output.diff, about=about, total=total), diff=output.diff)
        for line in beside.lines():
            write(one_line(line))


def _print_lines(lines: Iterable[str], *, diff: bool) -> None:
    parts: list[Part] = []
    for line in lines:
        word, space, rest = line.partition(" ")
        if word:
            parts += [Styled(word, COLOURS.get(word, "")), f"{space}{rest}\n"]
        else:
            parts += [Styled(line, CHANGED.get(line.lstrip()[:2], "") if diff else ""), "\n"]
    write(*parts, end="")


def _unwanted(manifest: Manifest, plan: Plan, kinds: Sequence[str]) -> Iterator[Diagnostic]:
    for kind in dict.fromkeys(kinds):
        names = [
            node.name
            for action in plan.actions.values()
            if isinstance(node := manifest.nodes[action.node], Model) and plan_word(action) == kind
        ]
        if names:
            message = f"the plan has what --fail-on {kind} names: {', '.join(names)}"
            yield Diagnostic("plan-not-allowed", message, "Confirm it, and run without --fail-on; or undo the edit.")
