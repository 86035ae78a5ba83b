"""Before a query starts: do its sources still have what it has not read?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Model, Source
from engine.errors import EngineError
from engine.events import Diagnosed
from engine.plan.actions.topic_checks import of_reader
from engine.runtime.context.run_context import Run
from engine.sources import KINDS
from engine.state import ModelState, TableState
from engine.state import checkpoint as spark_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def resume_sources(
    run: Run, model: Model, session: SparkSession, state: ModelState, folder: TableState
) -> Mapping[str, Any]:
    """Ask each source that is read as a stream; what they find worth knowing is shown.

    Returns:
        What is to be remembered of each, by node.

    Raises:
        StateError: a source lacks records that were not read; nothing was read or written.
    """
    kill_points.reach("resuming", model.name)
    offsets = spark_checkpoint.standing(folder.checkpoint(state.generation))
    remembered = dict(state.sources)
    for item in model.inputs:
        node = run.manifest.nodes[item.node]
        if not item.stream or not isinstance(node, Source):
            continue
        try:
            found = KINDS[node.spec.format].resume(
                session, node.spec, run.place, state.sources.get(node.id, {}), offsets
            )
        except EngineError as error:
            error.diagnostics = tuple(of_reader(found, model, node) for found in error.diagnostics)
            raise
        for note in found.notes:
            run.emit(Diagnosed(of_reader(note, model, node)))
        if found.known:
            remembered[node.id] = dict(found.known)
    return remembered
