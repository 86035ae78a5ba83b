"""A full refresh of a model that was materialized as something else: a table takes the place of a view, or a view its.

What is needed of the new is made and checked first; the old goes last. A kill in between leaves neither, and a state
that says what there was: the next build finishes the refresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Materialized, Model
from engine.errors import Diagnostic, Level, Location, StateError
from engine.events import Diagnosed
from engine.lake import table_writer as lake
from engine.lake import view_writer
from engine.lake.table_facts import TableFacts
from engine.plan import ActionKind
from engine.plan.actions import state_checks
from engine.runtime.context.run_context import Run
from engine.runtime.sinks.deleted_keys import SUFFIX as DELETED
from engine.state import ModelState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def announce(run: Run, model: Model) -> None:
    comparison = run.plan.actions[model.id].comparison
    if comparison is not None and comparison.kind_changed:
        message = f"{model.relation} is replaced: {'; '.join(comparison.reasons)}"
        place = Location(model.file)
        diagnostic = Diagnostic(
            "materialization-changed", message, comparison.discarded, Level.WARNING, node=model.name, location=place
        )
        run.emit(Diagnosed(diagnostic))


def kind_changed(run: Run, model: Model) -> bool:
    comparison = run.plan.actions[model.id].comparison
    return comparison is not None and comparison.kind_changed


def stands_as_view(run: Run, session: SparkSession, model: Model, table: TableFacts | None) -> bool:
    """Return whether a view has the name of a table to be made; only the model's own is dropped, by a full refresh.

    Raises StateError: `name-taken` if the model did not make it, `state-missing` without a full refresh.
    """
    if table is not None:
        return False
    properties = view_writer.view_properties(session, model.relation.sql)
    if properties is None:
        return False
    state = run.state(model).load()
    facts = run.state(model).facts(state) if state is not None else None
    is_own = facts is not None and facts["materialized"] == Materialized.VIEW.value
    if not is_own and properties.get("engine.model") != model.name:
        message = f"{model.relation} is a view that was not made by this model"
        hint = f"Give the model another 'alias', or drop {model.relation} if nobody needs it."
        raise StateError("name-taken", message, hint, node=model.name)
    if run.plan.actions[model.id].kind is not ActionKind.REFRESH:
        message = f"{model.relation} is a view, but the state folder has no state of it"
        hint = f"Restore the state folder from a backup, or replace the view: engine build -f -s {model.name}"
        raise StateError("state-missing", message, hint, node=model.name)
    return True


def clear_table(session: SparkSession, model: Model, state: ModelState | None, table: TableFacts | None) -> None:
    """Drop the table that is in place of a view, once it is certain that the view can be made.

    Raises:
        StateError: `name-taken`: the table was not made by the model.
        pyspark.errors.AnalysisException: Spark rejects the view; the table stays.
    """
    if table is None:
        return
    state_checks.check_ours(model, table, state)
    trial = f"{model.relation.sql[:-1]}__trial`"
    view_writer.check_view(session, trial, model.sql, {"engine.model": model.name, "engine.trial": "true"})
    lake.drop_table(session, model.relation.sql)
    kill_points.reach("exchanging", model.name)


def clear_deletes(run: Run, session: SparkSession, model: Model) -> None:
    relation = model.relation
    deleted_keys = run.lake.table(relation.schema, relation.name + DELETED)
    if deleted_keys is not None and deleted_keys.properties.get("engine.model") == model.name:
        lake.drop_table(session, f"{relation.sql[:-1]}{DELETED}`")
