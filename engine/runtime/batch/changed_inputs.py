"""How a batch table is built where its inputs changed: from the changes, if they tell what they affect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Model
from engine.compile.nodes.model_settings import History
from engine.compile.nodes.model_settings import Refresh as RefreshSetting
from engine.errors import StateError
from engine.events import Outcome, Status
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.refresh_choice import RefreshChoice, Way, refresh_choice, refused
from engine.runtime.batch.followed_changes import FullRefreshError
from engine.runtime.batch.refresh_table import find_affected
from engine.runtime.batch.replace_table import replace_table
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.register_inputs import register
from engine.runtime.spark_support import hooks
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def choose_refresh(
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
        signed = replace(run.signed(model, state), inputs=inputs)
        if affected_rows.frame is None:
            folder.save(signed)
            return Outcome(Status.UNCHANGED, affected_rows.note, snapshot_id=state.snapshot)
        kill_points.reach("refreshing", model.name)
        folder.save(replace(signed, phase=Phase.BUILDING, inputs={}, pinned=False))
        replaced_table = replace_table(
            run, model, affected_rows.frame, (), affected_rows.commit, markers=read_markers(inputs)
        )
    snapshot = replaced_table.commit.snapshot if replaced_table.commit else state.snapshot
    current_table = run.lake.table(model.relation.schema, model.relation.name)
    folder.save(replace(signed, snapshot=snapshot, made=current_table.shape if current_table is not None else {}))
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
