"""What a rebuild has beside its table becomes the model's own: remembered deletes and quarantined records.

It is appended before the rows are published, once, as the outputs of a micro-batch are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Model, Relation
from engine.plan.deployed import generations
from engine.runtime.context.run_context import Run
from engine.runtime.quality.quarantine import SUFFIX as QUARANTINE
from engine.runtime.quality.quarantine import quarantine_of
from engine.runtime.sinks.deleted_keys import SUFFIX as DELETED
from engine.runtime.sinks.deleted_keys import deleted_of
from engine.state import ModelState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def take_over(run: Run, session: SparkSession, model: Model, state: ModelState, made: Relation) -> None:
    """Take over what a rebuild has beside its table.

    `run`: that holds the locks.

    Raises:
        StateError: `name-taken`.
    """
    batch = generations.NO_BATCH if state.batch is None else state.batch
    markers = run.markers(model, state, batch)
    deleted, rows = deleted_of(run, model), replace(made, name=made.name + DELETED)
    if deleted is not None and _is_missing(run, deleted.relation, rows, state):
        deleted.take_over(session, session.table(rows.sql), state.remembers or state.query_id or "", markers)
    rows = replace(made, name=made.name + QUARANTINE)
    quarantine = quarantine_of(run, model)
    if _is_missing(run, quarantine.relation, rows, state):
        quarantine.take_over(session, session.table(rows.sql), markers)


def _is_missing(run: Run, own: Relation, made: Relation, state: ModelState) -> bool:
    if run.lake.table(made.schema, made.name) is None:
        return False
    table = run.lake.table(own.schema, own.name)
    return table is None or not generations.has_published(table.history, state)
