"""`build`, `run` and `test`: from a selection to a summary."""

from __future__ import annotations

from pathlib import Path

from engine.api import Command, RunOptions, Selection, runnable
from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, selected
from engine.cli.console.junit import write_junit
from engine.cli.exits import terminable

_WHAT = {"build": "models or tests", "run": "models", "test": "tests"}


def run_nodes(
    chosen: CommandSettings, command: Command, selection: Selection, options: RunOptions, junit: Path | None = None
) -> bool:
    """Run what is selected; False if something failed. `junit` is where the ends of tests are written."""
    with terminable(), log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        nodes = runnable(result.manifest, selected(chosen, result.manifest, selection, tell=False), command)
        if not nodes:
            chosen.out.say(f"The selection has no {_WHAT[command]}; nothing to do")
            return True
        results = chosen.project.execute(command, result, nodes, chosen.out.event, **options)
        if junit is not None:
            write_junit(results, result.manifest, junit, chosen.root)
        chosen.out.summary(results)
    return not results.failed
