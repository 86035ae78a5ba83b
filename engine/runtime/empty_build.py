"""`--empty`: the table of a model is made with the columns of its query, and no row is read.

It is what a first build leaves that ends before its first commit. The next build takes it for that: a stream has no
checkpoint yet and begins with its first record, and a batch table is computed.
"""

from __future__ import annotations

from dataclasses import replace

from engine.compile import Model
from engine.events import Outcome, Status
from engine.plan.actions import state_checks
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.lifecycle import full_refresh
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support import hooks
from engine.runtime.streams.generation import open_generation
from engine.runtime.streams.stream_query import open_query, open_session
from engine.state import ModelState

_DONE = Outcome(Status.SUCCESS, note="made without rows")


def make_empty(run: Run, model: Model) -> Outcome:
    """Make the table of a model of which nothing is written; its hooks run as in any build.

    Raises:
        StateError: the name of the table is taken.
        RunError: the columns are not those that are declared, or cannot be stored.
        pyspark.errors.PySparkException: Spark rejects the query.
    """
    (_make_stream if model.streaming else _make_batch)(run, model)
    return _DONE


def _make_stream(run: Run, model: Model) -> None:
    session, folder = open_session(run, model), run.state(model)
    query = open_query(run, model, session, folder, None)
    full_refresh.clear_staging(query.run, query.model, session)
    made = open_generation(query, None, None).state
    _note(run, model, made)
    hooks.after(session, model)


def _make_batch(run: Run, model: Model) -> None:
    folder = run.state(model)
    state, table = folder.load(), run.lake.table(model.relation.schema, model.relation.name)
    if table is not None:
        if state is None:
            state_checks.fresh(model, table)
        state_checks.check_ours(model, table, state)
    session = run.spark.newSession()
    hooks.before(session, model)
    register(session, run.manifest, model, run.place, bounded=True)
    frame = table_setup.checked_frame(session, model)
    made = table_setup.make(model, model.relation, max(folder.generations(), default=1), folder, frame)
    _note(run, model, made)
    hooks.after(session, model)


def _note(run: Run, model: Model, made: ModelState) -> None:
    """Save whose table it is; without a fingerprint, as no query has written to it."""
    run.state(model).save(replace(run.signed(model, made), fingerprint=""))
