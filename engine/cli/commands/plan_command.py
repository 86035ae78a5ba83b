"""`engine plan`: what a build would do to each node, and why, without Java and without writing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.api import RebuildOptions, Selection, runnable
from engine.api.deferral import deferred_inputs
from engine.api.plan_record import plan_record
from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, compiled, selected
from engine.cli.console.terminal import json_text, write
from engine.compile import Manifest, Model, UnitTest

if TYPE_CHECKING:
    from engine.plan import Action, Plan, Unread


def show_plan(chosen: CommandSettings, selection: Selection, options: RebuildOptions, output: str) -> bool:
    """Print the plan of a build; False if the build would be rejected."""
    from engine.plan.actions.refused_build import refused_build

    as_text = output == "text"
    result = compiled(chosen, heard=as_text, warnings=Warnings.SELECTED)
    found = selected(chosen, result.manifest, selection, tell=as_text, daily=True)
    nodes = runnable(result.manifest, found, "build", empty=options.get("empty", False))
    result = chosen.project.defer(result, nodes, selection)
    manifest = result.manifest
    plan = chosen.project.decide(result, nodes, **options)
    lines = _text(manifest, plan) if as_text else (json_text(plan_record(manifest, a)) for a in plan.actions.values())
    for line in lines:
        write(line)
    refused = refused_build(manifest, plan)
    if refused is not None:
        chosen.out.diagnostics(refused.diagnostics)
    return refused is None


def _text(manifest: Manifest, plan: Plan) -> Iterator[str]:
    """A line a model, its reasons and what it reads below it; tests are counted."""
    counted: Counter[str] = Counter()
    for action in plan.actions.values():
        node = manifest.nodes[action.node]
        if not isinstance(node, Model):
            kind = "unit test" if isinstance(node, UnitTest) else "data test"
            counted[f"cached {kind}" if action.unchanged else kind] += 1
            continue
        word = _word(action)
        counted[word] += 1
        yield one_line(f"{word:<10} {node.materialized.value} {node.relation}")
        details = [*action.reasons, *(_reads(unread) for unread in action.unread if unread.count != 0)]
        details += [f"{name} is deferred to {table}" for name, table in deferred_inputs(manifest, node.id).items()]
        yield from (f"{'':<10} {one_line(detail)}" for detail in details)
    if counted:
        yield ", ".join(
            f"{number} {word}{'s' if 'test' in word and number > 1 else ''}" for word, number in counted.items()
        )


def _word(action: Action) -> str:
    if action.refusals:
        return "rejected"
    return "unchanged" if action.unchanged else action.kind.value


def _reads(unread: Unread) -> str:
    """What a stream reads next."""
    if unread.count is None:
        return f"reads what is new in {unread.name}"
    names = ", ".join(unread.names)
    more = f": {names}{', ...' if unread.count > len(unread.names) else ''}" if names else ""
    what = unread.what[:-1] if unread.count == 1 else unread.what
    return f"reads {unread.count:,} new {what} of {unread.name}{more}"
