"""Batch models: tables that are recreated when what they read has changed, and views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.facts import plain
from engine.compile.nodes.model_settings import Overwrite
from engine.events import Outcome, Status
from engine.lake import staging_branch, view_writer
from engine.lake import table_writer as lake
from engine.lake.commits import STAGED_LAYOUT, Commit
from engine.lake.table_facts import TableFacts
from engine.plan import ActionKind
from engine.plan.actions import state_checks
from engine.plan.actions.descriptions import table_comment
from engine.plan.actions.state_checks import waits
from engine.plan.deployed import generations, state_folder
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.refresh.batch_inputs import changed_view, same_rows, same_tables
from engine.plan.refresh.refresh_choice import RefreshChoice, Way
from engine.plan.tables.column_checks import dropped_columns, given_before
from engine.runtime.batch.changed_inputs import plan_refresh_or_raise, read_markers, refresh_changes, why_full
from engine.runtime.batch.history.build_history import build_history
from engine.runtime.batch.replace_table import Committing, committing, positions, replace_table
from engine.runtime.context import ownership
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.lifecycle import full_refresh, publish, replaced_materialization
from engine.runtime.lifecycle.replaced_materialization import kind_changed
from engine.runtime.quality.bad_records import Watched
from engine.runtime.sinks import table_setup
from engine.runtime.spark_support import explain, hooks
from engine.runtime.spark_support.spark_errors import spark_exceptions
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_batch(run: Run, model: Model) -> Outcome:
    """Build a batch table or a view, unless it is up to date.

    Raises:
        StateError: the table belongs to somebody else.
        pyspark.errors.PySparkException: Spark rejected or failed the query.
    """
    folder = run.state(model)
    state = folder.load()
    table = run.lake.table(model.relation.schema, model.relation.name)
    refresh = run.plan.actions[model.id].kind is ActionKind.REFRESH
    if table is not None:
        _check_owner(model, table, state, refresh=refresh)
    inputs = positions(run, model)
    written_table = _written_table(run, model, table, refresh=refresh)
    if state is not None and not refresh and up_to_date(run, model, state, written_table, inputs):
        if table is not None:
            table_setup.set_properties(model, run.spark, table)
        return Outcome(Status.UNCHANGED, "no new data", snapshot_id=state.snapshot)
    choice = None if refresh or state is None else plan_refresh_or_raise(run, model, state, written_table, inputs)
    if state is not None and not refresh and (state.phase is Phase.PUBLISHED or _history_began(run, model, state)):
        _check_existing_table(model, state, folder, written_table)
    session = run.spark.newSession()
    hooks.run_pre_hook(session, model)
    earlier_columns = given_before(state, run.plan.actions[model.id].comparison, refresh=refresh)
    full_refresh.clear_staging(run, model, session)
    outcome_or_reason = _from_changes(run, session, model, choice, folder, state, written_table, inputs)
    if isinstance(outcome_or_reason, Outcome):
        return outcome_or_reason
    session = run.spark.newSession() if outcome_or_reason else session
    batch_state = replace(_begun_state(run, model, folder, state, table), pinned=False)
    folder.save_facts(batch_state.generation, model.fingerprint, plain(model.facts))
    state = replace(run.signed(model, batch_state), inputs=inputs)
    if model.write.history:
        existing_table = None if refresh else written_table
        outcome = build_history(run, session, model, folder, state, inputs, existing_table, earlier_columns, choice)
        _finish_build(run, session, model, folder, state)
        return outcome
    watched_inputs = register(session, run.manifest, model, run.place, bounded=True)
    frame = table_setup.checked_frame(session, model)
    explain.log_plan(model, frame)
    if model.computed_when_read:
        replaced_materialization.clear_table(session, model, folder.load(), table)
        outcome = _make_view(run, session, model, folder, state)
    else:
        existing_table = None if refresh else written_table
        note = _columns_note(model, frame, earlier_columns) if existing_table is not None else ""
        # Before the commit: a kill between commit and record must leave a table that is known to be ours.
        folder.save(replace(state, phase=Phase.BUILDING, inputs={}))
        state = replace(state, columns=tuple(frame.columns))
        outcome = _make_table(run, frame, model, watched_inputs, folder, state, existing_table)
        outcome = replace(outcome, note=note or outcome_or_reason or why_full(model, choice))
    _finish_build(run, session, model, folder, state)
    return outcome


def _check_owner(model: Model, table: TableFacts, state: ModelState | None, *, refresh: bool) -> None:
    if state is None and not refresh:
        state_checks.fresh(model, table)
    state_checks.check_ours(model, table, state)


def _history_began(run: Run, model: Model, state: ModelState) -> bool:
    return bool(model.write.history) and state.snapshot is not None and not kind_changed(run, model)


def _finish_build(run: Run, session: SparkSession, model: Model, folder: TableState, state: ModelState) -> None:
    folder.journal.end(Refresh)
    folder.discard_before(state.generation)
    if kind_changed(run, model):
        replaced_materialization.clear_deletes(run, session, model)
    hooks.run_post_hook(session, model)


def _from_changes(
    run: Run,
    session: SparkSession,
    model: Model,
    choice: RefreshChoice | None,
    folder: TableState,
    state: ModelState | None,
    table: TableFacts | None,
    inputs: Mapping[str, Any],
) -> Outcome | str:
    """Build a table from what changed, or say why it has to be computed in full; empty: that goes without saying."""
    if choice is None or state is None or table is None:
        return ""
    if choice.way is Way.NOTHING:
        # The snapshots that it was computed from may expire now.
        folder.save(replace(state, inputs=inputs))
        return Outcome(Status.UNCHANGED, choice.reason or "no new data", snapshot_id=state.snapshot)
    if choice.way is not Way.CHANGES or model.write.history:
        return ""
    return refresh_changes(run, session, model, choice, folder, state, table, inputs)


def _written_table(run: Run, model: Model, table: TableFacts | None, *, refresh: bool) -> TableFacts | None:
    """A model's table as it was written last: with what waits for its tests, where rows go beside that or it counts.

    Raises StateError: `staged-rows`, `publish-diverged`.
    """
    if refresh or table is None or not (waits(model) or model.write.overwrite is Overwrite.PARTITIONS):
        return table
    return publish.as_written(run, model)


def _begun_state(
    run: Run, model: Model, folder: TableState, state: ModelState | None, table: TableFacts | None
) -> ModelState:
    if state is not None and not kind_changed(run, model) and state.query_id is None:
        return state
    number = generations.next_number(folder, table) if state is not None else 1
    return ModelState(str(model.relation), number)


def _check_existing_table(model: Model, state: ModelState, folder: TableState, table: TableFacts | None) -> None:
    if model.write.overwrite is Overwrite.PARTITIONS or model.write.history:
        state_checks.check_table(model, state, read_checkpoint(folder, state.generation, files=False), table)


def _columns_note(model: Model, frame: DataFrame, earlier_columns: frozenset[str] | None) -> str:
    if model.write.overwrite is not Overwrite.PARTITIONS:
        return ""
    return table_setup.gone_note(
        dropped_columns(table_setup.check_columns(model, frame, earlier_columns), earlier_columns)
    )


def _make_view(run: Run, session: SparkSession, model: Model, folder: TableState, state: ModelState) -> Outcome:
    view_writer.create_view(session, model.relation.sql, model.sql, table_comment(model), {"engine.model": model.name})
    view = run.lake.view(model.relation.schema, model.relation.name)
    folder.save(replace(state, phase=Phase.PUBLISHED, made=view.shape if view is not None else {}))
    return Outcome(Status.SUCCESS)


def _make_table(
    run: Run,
    frame: DataFrame,
    model: Model,
    watched_inputs: Sequence[Watched],
    folder: TableState,
    state: ModelState,
    table: TableFacts | None,
) -> Outcome:
    view = replaced_materialization.stands_as_view(run, frame.sparkSession, model, table)
    branch, existing_table = publish.branch_of(model), table
    if branch is not None and not view:
        existing_table = _prepare_branch(run, frame, model, table)
    commit = committing(model, existing_table, branch)
    if view:
        commit = _in_place_of_view(frame.sparkSession, model, folder, state, commit)
    replaced_table = replace_table(run, model, frame, watched_inputs, commit, markers=read_markers(state.inputs))
    uuid = lake.table_uuid(frame.sparkSession, model.relation.sql)
    earlier_snapshot = existing_table.snapshot if existing_table else None
    snapshot = replaced_table.commit.snapshot if replaced_table.commit else earlier_snapshot
    # What waits for its tests becomes the table when it is published, and is noted then.
    current_table = run.lake.table(model.relation.schema, model.relation.name) if branch is None else None
    metadata_marks = current_table.shape if current_table is not None else {}
    # Others may have committed to an input after its position was noted, and the query read that.
    pinned = positions(run, model) == state.inputs
    folder.save(replace(state, phase=Phase.PUBLISHED, uuid=uuid, snapshot=snapshot, made=metadata_marks, pinned=pinned))
    return Outcome(Status.SUCCESS, snapshot_id=snapshot, **replaced_table.metrics.numbers())


def _prepare_branch(run: Run, frame: DataFrame, model: Model, table: TableFacts | None) -> TableFacts | None:
    """Make the table whose readers do not see the new rows yet, without rows if it is missing; return what is kept.

    A replacement of the whole table that waits (a failed full refresh) goes: partitions cannot be put beside it.
    """
    session, relation = frame.sparkSession, model.relation
    if run.lake.table(relation.schema, relation.name) is None:
        lake.create_table(session, relation.sql, table_setup.columns_of(model, frame), table_setup.layout(model, 1))
    elif table is not None and STAGED_LAYOUT in table.properties and model.write.overwrite is Overwrite.PARTITIONS:
        staging_branch.discard(session, relation.sql)
    else:
        return table
    return publish.as_written(run, model) if model.write.overwrite is Overwrite.PARTITIONS else None


def _in_place_of_view(
    session: SparkSession, model: Model, folder: TableState, state: ModelState, commit: Committing
) -> Committing:
    """What commits the rows of a table that takes the place of a view: they are written before the view goes."""
    staging = full_refresh.staging(model, state.generation)
    layout = table_setup.layout(model, state.generation)
    layout = replace(layout, properties={**layout.properties, state_folder.STAGING: "true"})

    def replace_view(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        ownership.drop_beside(session, model, folder, staging, state_folder.STAGING, state.generation)
        lake.replace(rows, staging.sql, layout, markers, model.write.write_options)
        view_writer.drop_view(session, model.relation.sql)
        kill_points.reach("exchanging", model.name)
        staged_rows = session.table(staging.sql)
        if waits(model):
            lake.create_table(session, model.relation.sql, staged_rows, table_setup.layout(model, 1))
        commit_made = commit(staged_rows, markers)
        lake.drop_table(session, staging.sql)
        return commit_made

    return replace_view


def up_to_date(run: Run, model: Model, state: ModelState, table: TableFacts | None, inputs: Mapping[str, Any]) -> bool:
    if not model.computed_when_read:
        return same_rows(run.manifest, model, state, table, inputs)
    is_published = state.phase is Phase.PUBLISHED and state.fingerprint == model.fingerprint
    view = run.lake.view(model.relation.schema, model.relation.name) if is_published else None
    is_current = is_published and changed_view(state, view) is None and same_tables(state.inputs, inputs)
    return is_current and _same_columns(run, model)


def _same_columns(run: Run, model: Model) -> bool:
    """Whether a view is there with the columns that its query has now: it keeps those of the day it was made."""
    session = run.spark.newSession()
    try:
        register(session, run.manifest, model, run.place, bounded=True)
        query_schema = session.sql(model.sql).schema
        view_schema = session.table(model.relation.sql).schema
    except spark_exceptions():
        return False
    return query_schema.simpleString() == view_schema.simpleString()
