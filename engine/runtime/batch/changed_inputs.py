"""How a batch table is built where its inputs changed: from the changes, if they tell what they affect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Manifest, Model
from engine.compile.nodes.model_settings import History
from engine.compile.nodes.model_settings import Refresh as RefreshSetting
from engine.compile.refresh.changed_keys import InputState, follow_changes
from engine.errors import StateError
from engine.events import Outcome, Status
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import RefreshChoice, Way, refresh_choice, refused, unquoted_view
from engine.relations import quoted
from engine.runtime.batch.affected_partitions import affected_partitions
from engine.runtime.batch.followed_changes import (
    Affected,
    FollowedChanges,
    FullRefreshError,
    InputReading,
    commit_nothing,
    state_name,
    table_of,
)
from engine.runtime.batch.replace_table import replace_table
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.spark_support import hooks
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Under `auto` a table is computed in full if finding the changes would read more than this share of its inputs' rows.
# Where no partition can be replaced, reading saves a full computation only if it finds no change: the share is smaller.
_MAX_READ_SHARE, _MAX_READ_SHARE_WITHOUT_PARTITIONS = 0.5, 0.1
# So few rows are always compared: that takes less than to write a table again without need, and whatever reads it.
_FEW_ROWS = 100_000


def find_affected(
    session: SparkSession,
    lake: Lake,
    manifest: Manifest,
    model: Model,
    choice: RefreshChoice,
    table: TableFacts,
    stack: ExitStack,
) -> Affected:
    """Find what the changes of a model's inputs affect.

    Raises:
        FullRefreshError: all of it has to be computed.
        PySparkException, Py4JError: Spark failed.
    """
    auto = model.write.refresh is RefreshSetting.AUTO
    reading = InputReading(session, lake, manifest, stack)
    found_files = {unquoted_view(change.view): reading.files(change) for change in choice.inputs if change.changed}
    files = {view: differing for view, differing in found_files.items() if not differing.none}
    differing_rows = sum(change.rows for change in files.values())
    rows = sum(change.total for change in files.values())
    max_share = _MAX_READ_SHARE_WITHOUT_PARTITIONS if choice.cannot_follow_reason else _MAX_READ_SHARE
    if auto and differing_rows > max(_FEW_ROWS, max_share * rows):
        raise FullRefreshError(f"{differing_rows:,} rows are in files that changed, of {rows:,}")
    changed_views, are_few = [], True
    for change in choice.inputs:
        view = unquoted_view(change.view)
        if view in files and (net_input := reading.net_rows(change, files[view])) is not None:
            changed_views.append(view)
            are_few = are_few and net_input.are_few
            net_input.removed.createOrReplaceTempView(state_name(choice, view, InputState.REMOVED))
            net_input.added.createOrReplaceTempView(state_name(choice, view, InputState.ADDED))
    if not changed_views:
        return Affected(None, commit_nothing, f"no column that it reads changed ({differing_rows:,} rows compared)")
    try:
        return _affected_rows(reading, model, choice, table, tuple(changed_views), few=are_few)
    except FullRefreshError as full:
        names = ", ".join(f"'{change.name}'" for change in choice.inputs if unquoted_view(change.view) in changed_views)
        raise FullRefreshError(f"rows of {names} changed, and {full.reason}") from full


def _affected_rows(
    reading: InputReading,
    model: Model,
    choice: RefreshChoice,
    table: TableFacts,
    changed_views: tuple[str, ...],
    *,
    few: bool,
) -> Affected:
    if choice.cannot_follow_reason:
        raise FullRefreshError(choice.cannot_follow_reason)
    session = reading.session
    query = follow_changes(model.sql, {unquoted_view(change.view): change.columns for change in choice.inputs})
    _register(session, reading.manifest, choice)
    # The registered inputs have the types of those that are compared.
    types = {field.name.lower(): field.dataType.simpleString() for field in session.sql(model.sql).schema.fields}
    return affected_partitions(
        FollowedChanges(session, reading.lake, model, choice, query, changed_views, table, types, few)
    )


def _register(session: SparkSession, manifest: Manifest, choice: RefreshChoice) -> None:
    for change in choice.inputs:
        for state, snapshot in ((InputState.BEFORE, change.before), (InputState.AFTER, change.after)):
            frame = session.sql(f"SELECT * FROM {table_of(manifest, change).relation.sql} VERSION AS OF {snapshot}")  # noqa: S608 - quoted
            read_columns = frame.select(*map(quoted, change.columns)) if change.columns else frame
            read_columns.createOrReplaceTempView(state_name(choice, unquoted_view(change.view), state))


def plan_refresh_or_raise(
    run: Run, model: Model, state: ModelState, written_table: TableFacts | None, inputs: Mapping[str, Any]
) -> RefreshChoice | None:
    """Return how much of a batch table is computed again; None: it is a view, or always computed in full.

    Raises StateError: `refresh-not-incremental`.
    """
    view = model.computed_when_read
    if view or model.write.history is History.VERSIONS or model.write.refresh is RefreshSetting.FULL:
        return None

    def of_table(node: Model) -> TableFacts | None:
        return run.lake.table(node.relation.schema, node.relation.name)

    choice = refresh_choice(
        run.manifest, model, state, written_table, inputs, of_table, run.environment, str(run.spark.version)
    )
    if model.write.refresh is RefreshSetting.INCREMENTAL and (fault := refused(model, choice, state)) is not None:
        raise StateError.from_diagnostics((fault,))
    return choice


def why_full(model: Model, choice: RefreshChoice | None) -> str:
    if choice is None:
        always = not model.computed_when_read and model.write.refresh is RefreshSetting.FULL
        return "computed in full: the model has 'refresh: full'" if always else ""
    return f"computed in full: {choice.reason}" if choice.way is Way.FULL else ""


def refresh_changes(
    run: Run,
    session: SparkSession,
    model: Model,
    choice: RefreshChoice,
    folder: TableState,
    state: ModelState,
    table: TableFacts,
    inputs: Mapping[str, Any],
) -> Outcome | str:
    """Refresh a table from the changes of its inputs, or say in a sentence why it has to be computed in full.

    Raises StateError: `refresh-not-incremental`.
    """
    if register(session, run.manifest, model, run.place, bounded=True):
        reason = "bad records of a source are counted with all of its rows"
        return _explain_full(model, choice, reason)
    with ExitStack() as stack:
        try:
            affected_rows = find_affected(session, run.lake, run.manifest, model, choice, table, stack)
        except FullRefreshError as full:
            return _explain_full(model, choice, full.reason)
        except spark_exceptions() as error:
            return _explain_full(model, choice, f"the changes could not be read: {summary(str(error))}")
        signed_state = replace(run.signed(model, state), inputs=inputs)
        if affected_rows.frame is None:
            folder.save(signed_state)
            return Outcome(Status.UNCHANGED, affected_rows.note, snapshot_id=state.snapshot)
        kill_points.reach("refreshing", model.name)
        folder.save(replace(signed_state, phase=Phase.BUILDING, inputs={}, pinned=False))
        replaced_table = replace_table(
            run, model, affected_rows.frame, (), affected_rows.commit, markers=read_markers(inputs)
        )
    snapshot = replaced_table.commit.snapshot if replaced_table.commit else state.snapshot
    current_table = run.lake.table(model.relation.schema, model.relation.name)
    folder.save(replace(signed_state, snapshot=snapshot, made=current_table.shape if current_table is not None else {}))
    folder.journal.end(Refresh)
    hooks.run_post_hook(session, model)
    return Outcome(Status.SUCCESS, snapshot_id=snapshot, **replaced_table.metrics.numbers(), note=affected_rows.note)


def _explain_full(model: Model, choice: RefreshChoice, reason: str) -> str:
    """Why a table is computed in full after all. Raises StateError: `refresh-not-incremental`: it must not be."""
    if model.write.refresh is RefreshSetting.INCREMENTAL:
        full = replace(choice, way=Way.FULL, reason=reason)
        if (fault := refused(model, full)) is not None:
            raise StateError.from_diagnostics((fault,))
    return f"computed in full: {reason}"


def read_markers(inputs: Mapping[str, Any]) -> Mapping[str, str]:
    snapshots = {
        node: at.get("snapshot") for node, at in inputs.items() if isinstance(at, Mapping) and "snapshot" in at
    }
    return {"inputs": json.dumps(snapshots, sort_keys=True)} if snapshots else {}
