"""The plan of a build: an action for each node, from the manifest, what is deployed and what the user says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from engine.compile import DataTest, Manifest, Model, Node
from engine.compile.nodes.model_settings import History, OnSchemaChange, Overwrite, Refresh
from engine.errors import Diagnostic, Location
from engine.lake.table_facts import TableFacts
from engine.plan import setting_changes
from engine.plan.actions.action import Action, ActionKind, Plan, PlanOptions, written_rows
from engine.plan.actions.file_checks import file_faults
from engine.plan.actions.refresh_checks import (
    rebuilds,
    rebuilt_first,
    refresh_reasons,
    refresh_refusals,
)
from engine.plan.actions.reset_checks import reset_of_model, topic_faults
from engine.plan.actions.state_checks import table_faults
from engine.plan.actions.unchanged import REWRITTEN, batch_inputs_now, has_columns, work_left
from engine.plan.actions.unread_input import unread_inputs
from engine.plan.compare_models import compare_model
from engine.plan.comparison import Change, Comparison
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.deployed.generations import has_commits
from engine.plan.deployed.previous_generation import ROLLBACK_UNFINISHED
from engine.plan.deployed.read_deployed import read_by
from engine.plan.deployed.renamed_tables import interrupted
from engine.plan.refresh.batch_inputs import same_rows
from engine.plan.refresh.refresh_choice import RefreshChoice, Way, refresh_choice, refused, refused_query
from engine.plan.tables.upstream_tables import upstream_faults
from engine.state import Phase
from engine.state.operations import Drop, Rename, Rollback
from engine.times import time_text

# Edits that a new checkpoint allows, and those that matter only once something is written.
_WITH_RESET = {Change.STATE_BREAKING, Change.SOURCE_CHANGED}
_UNWRITTEN = {Change.STATE_BREAKING, Change.KEY_CHANGED, Change.IDENTITY_CHANGED}
# Of these sources a checkpoint fixes no beginning: it is found again from what is there.
_FOUND_AGAIN = {"files", "table"}
_NOTED = {Change.FORWARD, Change.ADDITIVE}


def make_plan(manifest: Manifest, selected: Iterable[str], deployed: Deployed, options: PlanOptions) -> Plan:
    """Decide what a build does to each node.

    Args:
        manifest: the compiled project.
        selected: ids of models and tests, in the order of the build.
        deployed: what there is of them and of what they read.
        options: what the user says about the build.
    """
    nodes = [manifest.nodes[node] for node in selected]
    models = [node for node in nodes if isinstance(node, Model)]
    rebuilt = {m.id for m in models if rebuilds(deployed.models.get(m.id, DeployedModel()), options)}
    actions: dict[str, Action] = {}
    for node in nodes:
        if isinstance(node, Model):
            untouched = _left_alone(manifest, node, deployed, options)
            actions[node.id] = untouched or _model_action(manifest, node, deployed, options, rebuilt, actions)
        else:
            actions[node.id] = _test_action(manifest, node, deployed, actions)
    return Plan(actions)


def _test_action(manifest: Manifest, test: Node, deployed: Deployed, before: Mapping[str, Action]) -> Action:
    refusals = tuple(_unreadable(test, deployed))
    built = (before[node] for node in read_by(manifest, test) if node in before)
    if refusals or test.id not in deployed.passed or not all(action.unchanged for action in built):
        return Action(test.id, ActionKind.TEST, refusals=refusals)
    reason = f"it passed at {deployed.passed[test.id]}, and nothing that it reads has changed"
    return Action(test.id, ActionKind.TEST, (reason,), unchanged=True)


def _left_alone(manifest: Manifest, model: Model, deployed: Deployed, options: PlanOptions) -> Action | None:
    """The action for a table with rows that `--empty` leaves as it is; None: it is another case."""
    deployed_model = deployed.models.get(model.id, DeployedModel())
    if not options.empty or model.computed_when_read:
        return None
    comparison = compare_model(manifest, model, deployed_model.writer, deployed.streams.get(model.id))
    kind = _kind(model, deployed_model, options, comparison.change)
    return left_alone(model, deployed_model, kind, comparison) if kind is not ActionKind.EMPTY else None


def _model_action(
    manifest: Manifest,
    model: Model,
    deployed: Deployed,
    options: PlanOptions,
    rebuilt: set[str],
    before: Mapping[str, Action],
) -> Action:
    deployed_model = deployed.models.get(model.id, DeployedModel())
    comparison = compare_model(manifest, model, deployed_model.writer, deployed.streams.get(model.id))
    kind = _kind(model, deployed_model, options, comparison.change)
    refusals = [*deployed_model.faults, *_unfinished(model, deployed_model), *_unreadable(model, deployed)]
    refusals += table_faults(model, kind, deployed_model)
    if kind is ActionKind.RESUME:
        refusals += file_faults(manifest, model, deployed_model, deployed)
        refusals += topic_faults(manifest, model, deployed_model, deployed)
    if model.id in rebuilt:
        accept = (*options.accept, *(deployed_model.refresh.accept if deployed_model.refresh is not None else ()))
        refusals += refresh_refusals(manifest, model, rebuilt, deployed.built, accept)
        refusals += rebuilt_first(manifest, model, rebuilt, deployed)
    faults, events_from = reset_of_model(manifest, model, deployed_model, deployed, options, kind)
    refusals += faults
    if comparison.refusal is not None and not _allowed(model, deployed_model, comparison, kind):
        refusals.append(comparison.refusal)
    if model.streaming and not refusals:
        # What is wrong with what a model has read is asked of the model that has read it.
        refusals += _upstream_faults(manifest, model, kind, deployed, options, before)
    if not refusals:
        refusals += _column_faults(manifest, model, kind, deployed, comparison, before)
    refusals += _sink_faults(manifest, model, deployed_model, comparison, options)
    notes = comparison.reasons if kind is not ActionKind.REFRESH and comparison.change in _NOTED else ()
    if kind is ActionKind.RESUME and deployed_model.writer is not None:
        notes += setting_changes.state_store_notes(model, deployed_model.writer.frozen)
    unread = unread_inputs(manifest, model, kind, deployed, before) if model.streaming else ()
    choice = planned_choice(manifest, model, kind, deployed)
    refusals += _refresh_faults(manifest, model, deployed_model, kind, choice) if not refusals else ()
    work, certain = work_left(manifest, model, kind, deployed, before, unread, choice)
    unchanged = None if refusals or not certain else True
    edited = comparison.change is not Change.UNCHANGED
    if work or any(item.count for item in unread) or edited:
        unchanged = False
    if deployed_model.columns_renamed and not edited:
        work = tuple(reason for reason in work if reason != REWRITTEN)
    work = tuple(_rewritten(model, comparison, work))
    if events_from is not None:
        work = (f"windows from {time_text(events_from)} (UTC) on follow the query as it is now", *work)
    reasons = (*refresh_reasons(deployed_model, options), *comparison.reasons, *work)
    followed = choice is not None and choice.way is Way.NOTHING and unchanged
    inputs = batch_inputs_now(manifest, model, deployed) if followed else None
    rows = deployed_model.written.rows if deployed_model.written is not None else None
    writes = "" if refusals or unchanged else written_rows(model, kind, rows, choice, edited=edited)
    action = Action(
        model.id, kind, reasons, tuple(refusals), unread, unchanged, comparison, notes, inputs,
        events_from=events_from, writes=writes, rows=rows,
    )  # fmt: skip
    return (
        _renamed(action, deployed_model)
        if deployed_model.renaming is not None or deployed_model.columns_renamed
        else action
    )


def _rewritten(model: Model, comparison: Comparison, work: Iterable[str]) -> Iterator[str]:
    for reason in work:
        if reason != REWRITTEN:
            yield reason
        elif not comparison.reasons:
            from engine.plan.edits.changed_clauses import with_clauses  # reads SQL

            same = "; it means the same" if comparison.change is Change.UNCHANGED else ""
            yield f"{with_clauses(REWRITTEN, comparison.before, model.facts)}{same}"


def _renamed(action: Action, deployed_model: DeployedModel) -> Action:
    of_table = (str(deployed_model.renaming),) if deployed_model.renaming is not None else ()
    of_columns = tuple(
        f"its column '{old}' is renamed to '{new}'" for old, new in deployed_model.columns_renamed.items()
    )
    return replace(
        action, reasons=(*of_table, *of_columns, *action.reasons), unchanged=False, renaming=deployed_model.renaming
    )


def _refresh_faults(
    manifest: Manifest, model: Model, deployed_model: DeployedModel, kind: ActionKind, choice: RefreshChoice | None
) -> Iterator[Diagnostic]:
    if model.write.refresh is not Refresh.INCREMENTAL or not model.recomputed:
        return
    fault = refused_query(manifest, model)
    if fault is None and choice is not None and kind is ActionKind.REBUILD:
        fault = refused(model, choice, deployed_model.state)
    if fault is not None:
        yield fault


def _upstream_faults(
    manifest: Manifest,
    model: Model,
    kind: ActionKind,
    deployed: Deployed,
    options: PlanOptions,
    before: Mapping[str, Action],
) -> Iterator[Diagnostic]:
    deployed_model = deployed.models.get(model.id, DeployedModel())
    started = deployed_model.checkpoint is not None and deployed_model.checkpoint.started is not None
    begin = deployed_model.state.begin if deployed_model.state is not None else {}
    if kind is ActionKind.RESUME and started:
        return upstream_faults(manifest, model, deployed, before, None)
    if kind in {ActionKind.CREATE, ActionKind.EMPTY} and started:
        # Whether its checkpoint is kept is decided when its empty table is recreated.
        return iter(())
    if kind is ActionKind.REFRESH:
        begin = {}
    elif kind is ActionKind.RESET and options.reset is not None:
        begin = {"at": options.reset.at}
    return upstream_faults(manifest, model, deployed, before, begin)


def _sink_faults(
    manifest: Manifest, model: Model, deployed_model: DeployedModel, comparison: Comparison, options: PlanOptions
) -> Iterable[Diagnostic]:
    if comparison.change is Change.UNCHANGED and not deployed_model.columns_renamed:
        return ()
    # Types are read, which only edited models need.
    from engine.plan.actions.sink_checks import sink_faults

    return sink_faults(manifest, model, deployed_model, options.accept)


def _column_faults(
    manifest: Manifest,
    model: Model,
    kind: ActionKind,
    deployed: Deployed,
    comparison: Comparison,
    before: Mapping[str, Action],
) -> Iterator[Diagnostic]:
    deployed_model = deployed.models.get(model.id, DeployedModel())
    keeps_rows = model.write.overwrite is Overwrite.PARTITIONS or model.write.history
    parts = kind is ActionKind.REBUILD and keeps_rows
    if deployed_model.written is None or not (parts or kind in {ActionKind.RESUME, ActionKind.RESET}):
        return
    if kind is ActionKind.RESUME and unwritten(deployed_model):
        # A table that nothing was written to gets the columns of the query.
        return
    read = [action.comparison for item in model.inputs if (action := before.get(item.node)) is not None]
    edited = any(c is not None and c.change is not Change.UNCHANGED for c in (comparison, *read))
    if not edited and has_columns(deployed_model.written, deployed_model.state) and _same_names(model, deployed_model):
        return
    # Types are read, which only edited models and their readers need.
    from engine.plan.tables.column_checks import column_faults, given_before, query_columns

    query = query_columns(manifest, model, deployed, before)
    if query is not None:
        yield from column_faults(
            manifest, model, query, deployed_model.written, given_before(deployed_model.state, comparison)
        )


def _same_names(model: Model, deployed_model: DeployedModel) -> bool:
    """Whether a query gives the columns that it gave last; a model that it reads may have been built since."""
    names = {column.name.lower() for column in model.columns if column.sql} - set(model.write.history.columns)
    before = {name.lower() for name in deployed_model.state.columns} if deployed_model.state is not None else set()
    return not names or not before or names == before or model.write.on_schema_change is not OnSchemaChange.FAIL


def _kind(model: Model, deployed_model: DeployedModel, options: PlanOptions, change: Change) -> ActionKind:
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


def _allowed(model: Model, deployed_model: DeployedModel, comparison: Comparison, kind: ActionKind) -> bool:
    if kind is ActionKind.REFRESH:
        return True
    if kind is ActionKind.RESET:
        return comparison.change in _WITH_RESET
    if not model.streaming or comparison.kind_changed or not unwritten(deployed_model):
        return False
    before = (
        deployed_model.writer.recorded_sources.streams
        if deployed_model.writer is not None and deployed_model.writer.recorded_sources is not None
        else ()
    )
    if comparison.change is Change.SOURCE_CHANGED:
        return all(source.kind in _FOUND_AGAIN for source in before)
    return comparison.change in _UNWRITTEN


def _unfinished(model: Model, deployed_model: DeployedModel) -> Iterator[Diagnostic]:
    for one in deployed_model.open_operations:
        if isinstance(one, Drop):
            message = f"a drop of {model.relation} was begun and not finished"
            hint = f"Finish it: engine drop {model.relation}"
            yield Diagnostic("drop-unfinished", message, hint, node=model.relation.name, location=Location(model.file))
        elif isinstance(one, Rename) and deployed_model.renaming is None:
            yield interrupted(str(model.relation), one.to).at(Location(model.file), model.name)
        elif isinstance(one, Rollback):
            message = f"a rollback of {model.relation} was begun and not finished"
            hint = f"Finish it: engine rollback {model.name}"
            yield Diagnostic(ROLLBACK_UNFINISHED, message, hint, node=model.name, location=Location(model.file))


def _unreadable(node: Node, deployed: Deployed) -> Iterator[Diagnostic]:
    if isinstance(node, Model):
        read: Iterable[str] = (item.node for item in node.inputs)
    else:
        read = node.depends_on if isinstance(node, DataTest) else ()
    for name in read:
        source = deployed.sources.get(name)
        if source is not None and source.fault is not None:
            yield source.fault


def planned_choice(manifest: Manifest, model: Model, kind: ActionKind, deployed: Deployed) -> RefreshChoice | None:
    """Return what is computed again; None: a first build, up to date, `refresh: full`, or not a batch table."""
    deployed_model = deployed.models.get(model.id, DeployedModel())
    if not model.recomputed or kind is not ActionKind.REBUILD or deployed_model.state is None:
        return None
    inputs = batch_inputs_now(manifest, model, deployed)
    if (
        model.write.history is History.VERSIONS
        or model.write.refresh is Refresh.FULL
        or same_rows(manifest, model, deployed_model.state, deployed_model.written, inputs)
    ):
        return None

    def of_table(node: Model) -> TableFacts | None:
        return deployed.models.get(node.id, DeployedModel()).table

    return refresh_choice(
        manifest,
        model,
        deployed_model.state,
        deployed_model.written,
        inputs,
        of_table,
        deployed.environment,
        deployed.spark_version,
    )


def has_rows(deployed_model: DeployedModel, kind: ActionKind) -> bool:
    """Return whether something was committed to a model's table, or its query has begun; a view counts, too."""
    written = has_commits(deployed_model.table) or has_commits(deployed_model.written)
    return written or deployed_model.view is not None or kind is ActionKind.RESUME


def left_alone(model: Model, deployed_model: DeployedModel, kind: ActionKind, comparison: Comparison) -> Action:
    """Return the action for a table with rows: none, or a refusal if the model is not what wrote them."""
    refusals = list(deployed_model.faults)
    if comparison.change is not Change.UNCHANGED:
        message = f"{model.relation} exists, and '{model.name}' has changed since it was written"
        hint = (
            "--empty makes tables that do not exist, and changes no other: use a schema of its own (--target), or "
            f"exclude the model: --exclude {model.name}+"
        )
        refusals.append(Diagnostic("empty-existing", message, hint, node=model.name, location=Location(model.file)))
    reasons = ("its table exists, and is left as it is",)
    unchanged = None if refusals else True
    return Action(model.id, kind, reasons, tuple(refusals), unchanged=unchanged, comparison=comparison)
