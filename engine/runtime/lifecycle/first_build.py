"""A streaming table of which nothing is written yet: its first build failed, or was killed, before its first commit.

Such a table is recreated with the query as it is by now. What stays is where its sources begin: Spark fixes that
before the first micro-batch (`latest` becomes offsets, a timestamp too), and a later start would fix another
beginning, behind records that nobody has read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Model, Source
from engine.plan import Change
from engine.runtime.context.run_context import Run
from engine.runtime.sinks import table_setup
from engine.sources import answers_of
from engine.state import ModelState, Phase, TableState
from engine.state.first_offsets import begun, keep_beginnings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def begin(run: Run, model: Model, folder: TableState, frame: DataFrame) -> ModelState:
    """Make the empty table of a model of which nothing is written; its sources begin where they began at first."""
    before, generation = folder.load(), max(folder.generations(), default=1)
    if before is None or before.generation != generation or before.table != str(model.relation):
        made = table_setup.make(model, model.relation, generation, folder, frame)
    elif _resumes(run, model, folder, before):
        made = table_setup.remake(model, model.relation, before, folder, frame)
    else:
        keep_beginnings(folder.checkpoint(generation))
        fresh = replace(table_setup.new_state(model.relation, generation), begin=before.begin, sources=before.sources)
        made = table_setup.remake(model, model.relation, replace(fresh, remembers=before.remembers), folder, frame)
    made = replace(made, phase=Phase.PUBLISHED)
    folder.save(made)
    return made


def _resumes(run: Run, model: Model, folder: TableState, state: ModelState) -> bool:
    known = run.plan.actions[model.id].comparison
    fits = known is not None and known.refusal is None and known.change is not Change.NEW
    nodes = [run.manifest.nodes[item.node] for item in model.inputs if item.stream]
    # Where the others begin is found again from what is there, and what is there may be corrected in between.
    fixed = any(isinstance(node, Source) and not answers_of(node.spec.format).start_is_repeatable for node in nodes)
    return fits and fixed and begun(folder.checkpoint(state.generation))
