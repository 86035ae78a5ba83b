"""What a rebuild made beside its table, and that the model keeps beside its own: quarantined records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.plan.deployed import generations
from engine.runtime.context.run_context import Run
from engine.runtime.quality.quarantine import quarantine_of
from engine.state import ModelState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def take_over_quarantine(run: Run, session: SparkSession, model: Model, state: ModelState, name: str) -> None:
    """Append what was quarantined during a rebuild to the quarantine of the model, once.

    Args:
        run: that holds the locks.
        session: for it.
        model: whose quarantine.
        state: of the generation that was rebuilt.
        name: of the quarantine that the rebuild made, in the schema of the model.

    Raises:
        StateError: `name-taken`.
    """
    relation = replace(model.relation, name=name)
    if run.lake.table(relation.schema, relation.name) is None:
        return
    own = quarantine_of(run, model)
    if own.facts is not None and generations.has_published(own.facts.history, state):
        return
    rows = session.table(relation.sql)
    own.take_over(session, rows, run.markers(model, state, state.batch))
