"""How a build begins with a model: created, resumed, reset, refreshed or rebuilt, from what is deployed of it."""

from __future__ import annotations

from pathlib import Path

from engine.compile import Model
from engine.plan.actions.action import ActionKind, PlanOptions
from engine.plan.actions.refresh_checks import rebuilds
from engine.plan.comparison import Change
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.plan.deployed.generations import has_commits
from engine.state import Phase


def kind_of(model: Model, deployed_model: DeployedModel, options: PlanOptions, change: Change) -> ActionKind:
    kind = _kind_with_rows(model, deployed_model, options, change)
    left_empty = options.empty and not model.computed_when_read and not has_rows(deployed_model, kind)
    return ActionKind.EMPTY if left_empty else kind


def _kind_with_rows(model: Model, deployed_model: DeployedModel, options: PlanOptions, change: Change) -> ActionKind:
    if rebuilds(deployed_model, options):
        return ActionKind.REFRESH
    if not model.streaming:
        deployed_facts = deployed_model.view if model.computed_when_read else deployed_model.table
        return ActionKind.CREATE if deployed_facts is None else ActionKind.REBUILD
    written = deployed_model.written
    if options.reset is not None and written is not None and (written.history or _started(deployed_model)):
        return ActionKind.RESET
    unmade = deployed_model.state is None or deployed_model.state.phase is not Phase.PUBLISHED
    anew = unmade or (unwritten(deployed_model) and not (change is Change.UNCHANGED and _ended(deployed_model)))
    return ActionKind.CREATE if anew else ActionKind.RESUME


def _ended(deployed_model: DeployedModel) -> bool:
    state, checkpoint = deployed_model.state, deployed_model.checkpoint or CheckpointFacts(Path())
    return state is not None and checkpoint.started == checkpoint.committed == state.batch


def _started(deployed_model: DeployedModel) -> bool:
    has_beginnings = deployed_model.checkpoint is not None and deployed_model.checkpoint.has_beginnings
    return deployed_model.state is not None and (deployed_model.state.query_id is not None or has_beginnings)


def unwritten(deployed_model: DeployedModel) -> bool:
    """Return whether nothing was committed to the table or quarantine; rows read may still be in its state."""
    state, table = deployed_model.state, deployed_model.written
    if state is None or table is None or table.uuid != state.uuid or has_commits(table):
        return False
    if state.batch is not None and (deployed_model.checkpoint is None or not deployed_model.checkpoint.unread):
        return False
    query = deployed_model.checkpoint.query_id if deployed_model.checkpoint is not None else None
    commits = deployed_model.quarantine.history if deployed_model.quarantine is not None else ()
    return query is None or all(commit.marker("query-id") != query for commit in commits)


def has_rows(deployed_model: DeployedModel, kind: ActionKind) -> bool:
    """Return whether something was committed to a model's table, or its query has begun; a view counts, too."""
    written = has_commits(deployed_model.table) or has_commits(deployed_model.written)
    return written or deployed_model.view is not None or kind is ActionKind.RESUME
