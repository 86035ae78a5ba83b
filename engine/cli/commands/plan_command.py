"""`engine plan`: what a build would do to each node, and why, without Java and without writing anything."""

from __future__ import annotations

from engine.api import RebuildOptions, Selection, runnable
from engine.api.plan_output import plan_lines, plan_record
from engine.cli.command_setup import CommandSettings, Warnings, compiled, selected
from engine.cli.console.terminal import json_text, write


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
    records = (json_text(plan_record(manifest, action)) for action in plan.actions.values())
    lines = plan_lines(manifest, plan) if as_text else records
    for line in lines:
        write(line)
    refused = refused_build(manifest, plan)
    if refused is not None:
        chosen.out.diagnostics(refused.diagnostics)
    return refused is None
