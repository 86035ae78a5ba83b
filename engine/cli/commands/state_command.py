"""`engine state`: what a streaming table's query holds, a table for each step."""

from __future__ import annotations

from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, find_model, log_file
from engine.cli.console.amounts import amount
from engine.cli.console.rows_text import format_rows
from engine.cli.console.safe_output import write, write_json
from engine.compile import Model
from engine.runtime.operations.held_state import HeldState, held_state


def show_state(settings: CommandSettings, name: str, limit: int, output: str) -> None:
    """Print what the query of a model holds. Raises EngineError: there is no such model, or nothing to show."""
    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        model = find_model(result.manifest, name)
        steps = list(held_state(result.target, model, settings.target_dir, limit))
    if output == "json":
        write_json(_json(model, steps))
        return
    for one in steps:
        sample_size = len(one.sample.rows)
        sample_note = f", {sample_size} of them shown" if sample_size < one.count else ""
        write(f"{amount(one.count, 'entry', 'entries')}: {one.meaning}{sample_note}")
        if one.sample.rows:
            write(format_rows((one.sample.names, one.sample.rows), "text"))


def _json(model: Model, state_steps: list[HeldState]) -> dict[str, object]:
    steps = [
        {
            "step": one.step,
            "operator": one.operator,
            "meaning": one.meaning,
            "count": one.count,
            "columns": one.sample.names,
            "sample": [list(row) for row in one.sample.rows],
        }
        for one in state_steps
    ]
    return {"model": model.name, "steps": steps}
