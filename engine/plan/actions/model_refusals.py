"""What forbids a build of a model, in the order in which it is asked: a later fault may follow from an earlier one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.compile import DataTest, Manifest, Model, Node
from engine.compile.nodes.model_settings import OnSchemaChange, Overwrite, Refresh
from engine.errors import Diagnostic, Location
from engine.plan.actions.action import Action, ActionKind, PlanOptions
from engine.plan.actions.action_kinds import unwritten
from engine.plan.actions.file_checks import file_faults
from engine.plan.actions.refresh_checks import rebuilt_first, refresh_refusals
from engine.plan.actions.reset_checks import topic_faults
from engine.plan.actions.state_checks import table_faults
from engine.plan.actions.unchanged import has_columns
from engine.plan.comparison import Change, Comparison
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.deployed.generations import ROLLBACK_UNFINISHED
from engine.plan.deployed.renamed_tables import interrupted
from engine.plan.refresh.refresh_choice import RefreshChoice, refused, refused_query
from engine.plan.tables.upstream_tables import upstream_faults
from engine.state.operations import Drop, Rename, Rollback

# Edits that a new checkpoint allows, and those that matter only once something is written.
_WITH_RESET = {Change.STATE_BREAKING, Change.SOURCE_CHANGED}
_UNWRITTEN = {Change.STATE_BREAKING, Change.KEY_CHANGED, Change.IDENTITY_CHANGED}
# Of these sources a checkpoint fixes no beginning: it is found again from what is there.
_FOUND_AGAIN = {"files", "table"}


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """A model, and what decides what a build does to it; `before` has the actions of the nodes before it."""

    manifest: Manifest
    model: Model
    deployed: Deployed
    options: PlanOptions
    rebuilt: Collection[str]
    before: Mapping[str, Action]
    kind: ActionKind
    comparison: Comparison
    choice: RefreshChoice | None

    @property
    def deployed_model(self) -> DeployedModel:
        return self.deployed.models.get(self.model.id, DeployedModel())


def model_refusals(planned: PlannedModel, reset_faults: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return why a model cannot be built; what is read and written is checked where nothing else forbids it."""
    model, comparison = planned.model, planned.comparison
    refusals = [*_deployed_faults(planned), *reset_faults]
    if comparison.refusal is not None and not _is_edit_allowed(planned):
        refusals.append(comparison.refusal)
    if model.streaming and not refusals:
        # What is wrong with what a model has read is asked of the model that has read it.
        refusals += _upstream_faults(planned)
    if not refusals:
        refusals += _column_faults(planned)
    if not refusals:
        refusals += _refresh_faults(planned)
    refusals += _sink_faults(planned)
    return tuple(refusals)


def _deployed_faults(planned: PlannedModel) -> Iterator[Diagnostic]:
    manifest, model, deployed, deployed_model = (
        planned.manifest,
        planned.model,
        planned.deployed,
        planned.deployed_model,
    )
    yield from deployed_model.faults
    yield from _unfinished(model, deployed_model)
    yield from unreadable_sources(model, deployed)
    yield from table_faults(model, planned.kind, deployed_model)
    if planned.kind is ActionKind.RESUME:
        yield from file_faults(manifest, model, deployed_model, deployed)
        yield from topic_faults(manifest, model, deployed_model, deployed)
    if model.id in planned.rebuilt:
        accept = planned.options.accept
        if deployed_model.refresh is not None:
            accept = (*accept, *deployed_model.refresh.accept)
        yield from refresh_refusals(manifest, model, planned.rebuilt, deployed.built, accept)
        yield from rebuilt_first(manifest, model, planned.rebuilt, deployed)


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


def unreadable_sources(node: Node, deployed: Deployed) -> Iterator[Diagnostic]:
    if isinstance(node, Model):
        read: Iterable[str] = (item.node for item in node.inputs)
    else:
        read = node.depends_on if isinstance(node, DataTest) else ()
    for name in read:
        source = deployed.sources.get(name)
        if source is not None and source.fault is not None:
            yield source.fault


def _is_edit_allowed(planned: PlannedModel) -> bool:
    deployed_model, comparison, kind = planned.deployed_model, planned.comparison, planned.kind
    if kind is ActionKind.REFRESH:
        return True
    if kind is ActionKind.RESET:
        return comparison.change in _WITH_RESET
    if not planned.model.streaming or comparison.kind_changed or not unwritten(deployed_model):
        return False
    before = (
        deployed_model.writer.recorded_sources.streams
        if deployed_model.writer is not None and deployed_model.writer.recorded_sources is not None
        else ()
    )
    if comparison.change is Change.SOURCE_CHANGED:
        return all(source.kind in _FOUND_AGAIN for source in before)
    return comparison.change in _UNWRITTEN


def _upstream_faults(planned: PlannedModel) -> Iterator[Diagnostic]:
    manifest, model, deployed, kind = planned.manifest, planned.model, planned.deployed, planned.kind
    deployed_model = planned.deployed_model
    started = deployed_model.checkpoint is not None and deployed_model.checkpoint.started is not None
    begin = deployed_model.state.begin if deployed_model.state is not None else {}
    if kind is ActionKind.RESUME and started:
        return upstream_faults(manifest, model, deployed, planned.before, None)
    if kind in {ActionKind.CREATE, ActionKind.EMPTY} and started:
        # Whether its checkpoint is kept is decided when its empty table is recreated.
        return iter(())
    if kind is ActionKind.REFRESH:
        begin = {}
    elif kind is ActionKind.RESET and planned.options.reset is not None:
        begin = {"at": planned.options.reset.at}
    return upstream_faults(manifest, model, deployed, planned.before, begin)


def _sink_faults(planned: PlannedModel) -> Iterable[Diagnostic]:
    if planned.comparison.change is Change.UNCHANGED and not planned.deployed_model.columns_renamed:
        return ()
    # Types are read, which only edited models need.
    from engine.plan.actions.sink_checks import sink_faults

    return sink_faults(planned.manifest, planned.model, planned.deployed_model, planned.options.accept)


def _column_faults(planned: PlannedModel) -> Iterator[Diagnostic]:
    model, kind, comparison, before = planned.model, planned.kind, planned.comparison, planned.before
    deployed_model = planned.deployed_model
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

    query = query_columns(planned.manifest, model, planned.deployed, before)
    if query is not None:
        yield from column_faults(
            planned.manifest, model, query, deployed_model.written, given_before(deployed_model.state, comparison)
        )


def _same_names(model: Model, deployed_model: DeployedModel) -> bool:
    """Whether a query gives the columns that it gave last; a model that it reads may have been built since."""
    names = {column.name.lower() for column in model.columns if column.sql} - set(model.write.history.columns)
    before = {name.lower() for name in deployed_model.state.columns} if deployed_model.state is not None else set()
    return not names or not before or names == before or model.write.on_schema_change is not OnSchemaChange.FAIL


def _refresh_faults(planned: PlannedModel) -> Iterator[Diagnostic]:
    model, choice = planned.model, planned.choice
    if model.write.refresh is not Refresh.INCREMENTAL or not model.recomputed:
        return
    fault = refused_query(planned.manifest, model)
    if fault is None and choice is not None and planned.kind is ActionKind.REBUILD:
        fault = refused(model, choice, planned.deployed_model.state)
    if fault is not None:
        yield fault
