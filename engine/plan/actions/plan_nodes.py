"""The plan of a build: an action for each node, from the manifest, what is deployed and what the user says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from engine.compile import Manifest, Model, Node
from engine.compile.nodes.model_settings import History, Refresh
from engine.errors import Diagnostic, Location
from engine.lake.table_facts import TableFacts
from engine.plan.actions.action import Action, ActionKind, Plan, PlanOptions, written_rows
from engine.plan.actions.action_kinds import kind_of
from engine.plan.actions.model_refusals import PlannedModel, model_refusals, unreadable_sources
from engine.plan.actions.refresh_checks import rebuilds, refresh_reasons
from engine.plan.actions.reset_checks import reset_of_model
from engine.plan.actions.unchanged import REWRITTEN, batch_inputs_now, work_left
from engine.plan.actions.unread_input import unread_inputs
from engine.plan.compare_models import compare_model
from engine.plan.comparison import Change, Comparison, state_store_notes
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.deployed.read_deployed import read_by
from engine.plan.refresh.batch_inputs import same_rows
from engine.plan.refresh.refresh_choice import RefreshChoice, Way, refresh_choice
from engine.times import time_text

_NOTED = {Change.FORWARD, Change.ADDITIVE}


def make_plan(manifest: Manifest, selected: Iterable[str], deployed: Deployed, options: PlanOptions) -> Plan:
    """Decide what a build does to each node; `selected` is in build order, `deployed` has them and what they read."""
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
    refusals = tuple(unreadable_sources(test, deployed))
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
    kind = kind_of(model, deployed_model, options, comparison.change)
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
    kind = kind_of(model, deployed_model, options, comparison.change)
    choice = planned_choice(manifest, model, kind, deployed)
    faults, events_from = reset_of_model(manifest, model, deployed_model, deployed, options, kind)
    planned = PlannedModel(manifest, model, deployed, options, rebuilt, before, kind, comparison, choice)
    refusals = model_refusals(planned, faults)
    unread = unread_inputs(manifest, model, kind, deployed, before) if model.streaming else ()
    work, certain = work_left(manifest, model, kind, deployed, before, unread, choice)
    unchanged = None if refusals or not certain else True
    edited = comparison.change is not Change.UNCHANGED
    if work or any(item.count for item in unread) or edited:
        unchanged = False
    reasons = (
        *refresh_reasons(deployed_model, options),
        *comparison.reasons,
        *_work_reasons(planned, work, events_from),
    )
    followed = choice is not None and choice.way is Way.NOTHING and unchanged
    inputs = batch_inputs_now(manifest, model, deployed) if followed else None
    rows = deployed_model.written.rows if deployed_model.written is not None else None
    writes = "" if refusals or unchanged else written_rows(model, kind, rows, choice, edited=edited)
    action = Action(
        model.id, kind, reasons, refusals, unread, unchanged, comparison, _notes(planned), inputs,
        events_from=events_from, writes=writes, rows=rows,
    )  # fmt: skip
    return _renamed(action, deployed_model)


def _notes(planned: PlannedModel) -> tuple[str, ...]:
    kind, comparison, writer = planned.kind, planned.comparison, planned.deployed_model.writer
    notes = comparison.reasons if kind is not ActionKind.REFRESH and comparison.change in _NOTED else ()
    if kind is ActionKind.RESUME and writer is not None:
        notes += state_store_notes(planned.model, writer.frozen)
    return notes


def _work_reasons(planned: PlannedModel, work: Iterable[str], events_from: int | None) -> Iterator[str]:
    if events_from is not None:
        yield f"windows from {time_text(events_from)} (UTC) on follow the query as it is now"
    if planned.deployed_model.columns_renamed and planned.comparison.change is Change.UNCHANGED:
        work = (reason for reason in work if reason != REWRITTEN)
    yield from _rewritten(planned.model, planned.comparison, work)


def _rewritten(model: Model, comparison: Comparison, work: Iterable[str]) -> Iterator[str]:
    for reason in work:
        if reason != REWRITTEN:
            yield reason
        elif not comparison.reasons:
            from engine.plan.edits.changed_clauses import with_clauses  # reads SQL

            same = "; it means the same" if comparison.change is Change.UNCHANGED else ""
            yield f"{with_clauses(REWRITTEN, comparison.before, model.facts)}{same}"


def _renamed(action: Action, deployed_model: DeployedModel) -> Action:
    if deployed_model.renaming is None and not deployed_model.columns_renamed:
        return action
    of_table = (str(deployed_model.renaming),) if deployed_model.renaming is not None else ()
    of_columns = tuple(
        f"its column '{old}' is renamed to '{new}'" for old, new in deployed_model.columns_renamed.items()
    )
    return replace(
        action, reasons=(*of_table, *of_columns, *action.reasons), unchanged=False, renaming=deployed_model.renaming
    )


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
