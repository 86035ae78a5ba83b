"""`engine state`: what a streaming table's query holds, a table for each step."""

from __future__ import annotations

from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, named_model
from engine.cli.console.amounts import amount
from engine.cli.console.rows_text import format_rows
from engine.cli.console.safe_output import write, write_json
from engine.compile import Model
from engine.runtime.operations.held_state import HeldState, held_state


def show_state(chosen: CommandSettings, name: str, limit: int, output: str) -> None:
    """Print what the query of a model holds.

    Raises:
        EngineError: there is no such model, or nothing to show.
    """
    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        model = named_model(result.manifest, name)
        held = list(held_state(result.target, model, chosen.target_dir, limit))
    if output == "json":
        write_json(_json(model, held))
        return
    for one in held:
        shown = len(one.sample.rows)
        more = f", {shown} of them shown" if shown < one.count else ""
        write(f"{amount(one.count, 'entry', 'entries')}: {one.meaning}{more}")
        if one.sample.rows:
            write(format_rows((one.sample.names, one.sample.rows), "text"))


def _json(model: Model, held: list[HeldState]) -> dict[str, object]:
    steps = [
        {
            "step": one.step,
            "operator": one.operator,
            "meaning": one.meaning,
            "count": one.count,
            "columns": one.sample.names,
            "sample": [list(row) for row in one.sample.rows],
        }
        for one in held
    ]
    return {"model": model.name, "steps": steps}
