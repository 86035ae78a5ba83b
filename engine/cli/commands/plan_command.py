"""`engine plan`: what a build would do to each node, and why, without Java and without writing anything."""

from __future__ import annotations

import gc
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.api import RebuildOptions, Selection, runnable, sinks_among
from engine.api.plan_report.durations import total_seconds
from engine.api.plan_report.plan_markdown import NO_UNPLANNED, UnplannedChanges, plan_markdown, removed_record
from engine.api.plan_report.plan_output import plan_lines, plan_record, plan_summary, plan_word, sink_lines, sink_record
from engine.api.plan_report.plan_tree import TreeLine, TreeOptions, plan_tree
from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, select_and_report
from engine.cli.console.live_area import is_unicode
from engine.cli.console.safe_output import Part, Styled, json_text, write
from engine.compile import Compiled, Manifest, Model, Sink
from engine.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from engine.plan import Plan


COLOURS = {
    "create": "green", "empty": "green", "resume": "cyan", "reset": "yellow", "refresh": "yellow", "rebuild": "yellow",
    "rejected": "red",
}  # fmt: skip
CHANGED = {"+ ": "green", "- ": "red"}
_ASCII = str.maketrans({"├": "|", "└": "`", "─": "-", "│": "|"})
_LABELS = 11
_ACTIONS = 10
# Narrower terminals break lines by themselves, and where there is none a line is a line.
_NARROWEST = 60


def write_tree(lines: Iterable[TreeLine]) -> None:
    """Print the lines of a tree; where standard output has no such characters, with others."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in lines:
        rail = line.rail if is_unicode() else line.rail.translate(_ASCII)
        if line.action:
            colour = COLOURS.get(line.action, "")
            head = Styled(line.action.ljust(_ACTIONS), colour, bold=bool(colour))
            write(_quiet(rail), head, Styled(line.label, "", bold=True), _quiet(f"  {line.text}"))
            continue
        first, *continuation = _wrapped(line.text, width - len(rail) - _LABELS)
        colour = CHANGED.get(line.text[:2], "") if line.label in {"", "diff"} else ""
        write(_quiet(rail + line.label.ljust(_LABELS)), Styled(first, colour) if colour else first)
        for line_text in continuation:
            write(_quiet(rail + " " * _LABELS), Styled(line_text, colour) if colour else line_text)


def _quiet(text: str) -> Part:
    return Styled(text, "bright_black") if text else ""


def _wrapped(text: str, width: int) -> list[str]:
    if width < _NARROWEST:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [text]


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
    def form_or_default(self) -> str:
        return self.form or ("tree" if sys.stdout.isatty() else "text")

    @property
    def for_people(self) -> bool:
        """Whether nothing but the plan may be printed for a program that reads it."""
        return self.form_or_default in {"tree", "text"}


def show_plan(settings: CommandSettings, selection: Selection, options: RebuildOptions, output: PlanOutput) -> bool:
    """Print the plan of a build; False if it would be rejected, or has an action that is an error."""
    # All that is read is in use until the end: looking for garbage in it takes a twentieth of a large plan.
    gc.disable()
    try:
        return _plan_and_print(settings, selection, options, output)
    finally:
        gc.enable()


def _plan_and_print(
    settings: CommandSettings, selection: Selection, options: RebuildOptions, output: PlanOutput
) -> bool:
    from engine.plan.actions.action import refused_build
    from engine.runtime.lifecycle.orphaned_tables import unfinished_rebuilds

    result = compile_and_report(settings, show_template_output=output.for_people, warnings=Warnings.SELECTED)
    selected_nodes = select_and_report(settings, result.manifest, selection, report_empty=output.for_people, daily=True)
    nodes = runnable(result.manifest, selected_nodes, "build", empty=options.get("empty", False))
    result = settings.project.defer(result, nodes, selection)
    manifest = result.manifest
    unplanned = NO_UNPLANNED
    if output.no_catalog:
        plan, unplanned = _plan_against_manifest(manifest, nodes, selection, options)
    else:
        plan = settings.project.decide(result, nodes, **options)
        settings.out.diagnostics(unfinished_rebuilds(manifest, result.target, settings.project.root))
    seconds_by_node = {} if output.no_catalog else settings.project.expected_seconds(result, plan)
    waiting = {} if output.no_catalog else _waiting_rows(result, sinks_among(selected_nodes, "build"))
    _print(manifest, plan, output, result.target.name, seconds_by_node, unplanned, waiting)
    rejection = refused_build(manifest, plan)
    errors = [
        *(rejection.diagnostics if rejection is not None else ()),
        *_disallowed_actions(manifest, plan, output.fail_on),
    ]
    settings.out.diagnostics(errors)
    return not errors


def _waiting_rows(result: Compiled, sinks: Sequence[str]) -> dict[str, str]:
    """What waits for some sinks now, in words, by id."""
    if not sinks:
        return {}
    from engine.runtime.deliver_sinks import waiting_text

    nodes = {id_: node for id_ in sinks if isinstance(node := result.manifest.nodes[id_], Sink)}
    return {id_: waiting_text(result.manifest, result.target, node) for id_, node in nodes.items()}


def _plan_against_manifest(
    manifest: Manifest, nodes: Sequence[str], selection: Selection, options: RebuildOptions
) -> tuple[Plan, UnplannedChanges]:
    """The plan against the manifest of `--state`, and what else differs from it.

    Raises UsageError: there is no such manifest, or an option needs to know what is deployed.
    """
    from engine.compile.selection.previous_state import in_state, load_previous, tables_of
    from engine.plan.against_manifest import plan_against, removed, writers_in

    if selection.state is None:
        hint = "Pass the folder of a manifest.json that was kept, such as the target/ folder of the last deployment."
        raise UsageError("usage", "--no-catalog needs --state", hint)
    if any(options.values()):
        message = "--no-catalog cannot be combined with options that depend on the deployed tables"
        raise UsageError("usage", message, "Leave out -f, --reset-checkpoint, --accept, --empty and --discard-refresh.")
    previous_manifest = load_previous(selection.state, must_exist=True)
    previous_models = writers_in(previous_manifest.nodes)
    plan, tables = plan_against(manifest, nodes, previous_models), tables_of(manifest)
    metadata_only = (
        manifest.nodes[node].name
        for node, action in plan.actions.items()
        if action.unchanged is not False
        and node in previous_models
        and in_state(manifest.nodes[node], "modified.config", previous_manifest, tables)
    )
    return plan, UnplannedChanges(removed(manifest, previous_models), tuple(metadata_only), without_catalog=True)


def _print(
    manifest: Manifest,
    plan: Plan,
    output: PlanOutput,
    target: str,
    seconds_by_node: Mapping[str, float],
    unplanned: UnplannedChanges,
    waiting: Mapping[str, str],
) -> None:
    total = total_seconds(manifest, seconds_by_node)
    if output.form_or_default == "markdown":
        write(plan_markdown(manifest, plan, target, diff=output.diff, unplanned=unplanned, total=total), end="")
        write("".join(f"\n* {line}" for line in sink_lines(manifest, waiting)), end="\n" if waiting else "")
    elif output.form_or_default == "json":
        for action in plan.actions.values():
            write(json_text(plan_record(manifest, action, diff=output.diff, seconds_by_node=seconds_by_node)))
        for name in unplanned.removed:
            write(json_text(removed_record(manifest, name)))
        for id_, text in waiting.items():
            write(json_text(sink_record(manifest, id_, text)))
    elif output.form_or_default == "tree":
        write(Styled(f"Plan for {one_line(target)}: {plan_summary(manifest, plan, total)}", "", bold=True))
        write_tree(plan_tree(manifest, plan, TreeOptions(output.diff, output.unchanged, seconds_by_node)))
        for line in (*unplanned.lines(), *sink_lines(manifest, waiting)):
            write(one_line(line))
    else:
        _print_lines(
            plan_lines(manifest, plan, diff=output.diff, seconds_by_node=seconds_by_node, total=total), diff=output.diff
        )
        for line in (*unplanned.lines(), *sink_lines(manifest, waiting)):
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


def _disallowed_actions(manifest: Manifest, plan: Plan, kinds: Sequence[str]) -> Iterator[Diagnostic]:
    for kind in dict.fromkeys(kinds):
        names = [
            node.name
            for action in plan.actions.values()
            if isinstance(node := manifest.nodes[action.node], Model) and plan_word(action) == kind
        ]
        if names:
            message = f"the plan has actions of --fail-on {kind} names: {', '.join(names)}"
            yield Diagnostic("plan-not-allowed", message, "Confirm it, and run without --fail-on; or undo the edit.")
