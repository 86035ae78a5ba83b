"""Whether a build of a model would do nothing: only where files and the catalog leave no doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine import __version__, local_paths
from engine.compile import Manifest, Model, Source
from engine.compile.nodes.model_settings import OutputMode
from engine.lake.commits import STAGED
from engine.lake.table_facts import TableFacts
from engine.plan.actions.action import Action, ActionKind, Unread
from engine.plan.actions.descriptions import changed_properties, described
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.deployed.generations import committed_batch
from engine.plan.refresh.batch_inputs import batch_positions, changed_table, changed_view, same_columns, volatile
from engine.plan.refresh.refresh_choice import RefreshChoice, Way
from engine.sources import source_traits
from engine.state import ModelState, Phase

# Said where no comparison of the queries says more.
REWRITTEN = "its query is written in another way"


def work_left(
    manifest: Manifest,
    model: Model,
    kind: ActionKind,
    deployed: Deployed,
    upstream: Mapping[str, Action],
    unread: Sequence[Unread],
    choice: RefreshChoice | None = None,
) -> tuple[tuple[str, ...], bool]:
    """Return the work in sentences, and whether that is all that can be known; `choice` None: all, if changed."""
    deployed_model = deployed.models.get(model.id, DeployedModel())
    state = deployed_model.state
    if kind not in {ActionKind.RESUME, ActionKind.REBUILD} or state is None:
        return (), False
    work = list(_of_any(model, deployed_model, state, deployed))
    if model.streaming:
        work += _of_stream(manifest, model, deployed_model, state, deployed)
        certain = all(item.count is not None for item in unread) and _same_sources(manifest, model, state, deployed)
        return tuple(work), certain
    changed, certain = _of_batch(manifest, model, deployed_model, state, deployed, choice)
    waits = any(not upstream[i.node].unchanged for i in model.inputs if i.node in upstream)
    return (*work, *changed), certain and not waits


def _of_any(model: Model, deployed_model: DeployedModel, state: ModelState, deployed: Deployed) -> Iterator[str]:
    if state.fingerprint != model.fingerprint:
        yield REWRITTEN
    if state.engine_version != __version__:
        yield f"it was built by version {state.engine_version or 'unknown'} of Headrace"
    if state.spark_version != deployed.spark_version:
        yield f"it was built with Spark {state.spark_version or 'unknown'}"
    if deployed_model.renaming is None and (state.model != model.name or state.environment != deployed.environment):
        yield "it was built under another name, project or target"
    if deployed_model.leftovers:
        yield "will clean up after an interrupted build"
    if deployed_model.table is not None and STAGED in deployed_model.table.branches:
        yield "staged rows are not published"
    if not described(model, deployed_model):
        yield "its descriptions changed"
    if model.operation.explain:
        yield "it shows its plan (explain)"


def _of_stream(
    manifest: Manifest, model: Model, deployed_model: DeployedModel, state: ModelState, deployed: Deployed
) -> Iterator[str]:
    checkpoint, table = deployed_model.checkpoint, deployed_model.written
    if checkpoint is None:
        yield "its checkpoint is lost"
        return
    all_committed = checkpoint.committed == checkpoint.started == state.batch
    if not all_committed or checkpoint.query_id != state.query_id:
        yield "a micro-batch was started and not finished"
    if checkpoint.watermark_moved and model.stateful and model.write.output_mode is not OutputMode.COMPLETE:
        yield "the watermark has moved: the windows that it has passed are still to be written"
    if table is None or table.uuid != state.uuid or not _whole(table, state):
        yield "its table is not as it was written"
    elif changed_properties(model, table):
        yield "its table properties changed"
    if model.operation.pre_hook or model.operation.post_hook:
        yield "its hooks run with each build"
    if state.begin.get("at") is not None and "past" not in state.begin:
        yield "files before its new beginning are still to be skipped"
    yield from _of_files(manifest, model, checkpoint, deployed)


def _whole(table: TableFacts, state: ModelState) -> bool:
    reached = committed_batch(table.history, state)
    has_snapshot = state.snapshot is None or table.holds(state.snapshot)
    return (
        has_snapshot
        and has_columns(table, state)
        and (reached is None or (state.batch is not None and reached <= state.batch))
    )


def has_columns(table: TableFacts, state: ModelState | None) -> bool:
    names = {name.lower() for name, _ in table.columns}
    return state is None or all(name.lower() in names for name in state.columns)


def _of_files(manifest: Manifest, model: Model, checkpoint: CheckpointFacts, deployed: Deployed) -> Iterator[str]:
    noted = {local_paths.decoded(file.uri): file.modified for log in checkpoint.logs or () for file in log.files}
    noted |= checkpoint.accepted
    for item in model.inputs:
        node, source = manifest.nodes[item.node], deployed.sources.get(item.node)
        if not item.stream or not isinstance(node, Source) or source is None or source.files is None:
            continue
        if source.files and "after_reading" in node.spec.settings:
            yield f"files of '{item.name}' are to be archived or deleted"
        if any(noted.get(file.uri, file.modified) != file.modified for file in source.files):
            yield f"files of '{item.name}' changed after being read"


def _same_sources(manifest: Manifest, model: Model, state: ModelState, deployed: Deployed) -> bool:
    for item in model.inputs:
        node, source = manifest.nodes[item.node], deployed.sources.get(item.node)
        if not item.stream:
            continue
        if isinstance(node, Source) and source is not None and source.topics is not None:
            remembered = state.sources.get(node.id, {})
            if not source_traits(node.spec.format).same_start(node.spec, remembered, source.topics):
                return False
            continue
        if isinstance(node, Source):
            if source is None or (source.table is None and source.files is None):
                return False
            before = state.sources.get(node.id, {}).get("columns")
            if source.table is not None and not node.spec.schema and before != source.columns:
                return False
        table = source.table if source is not None else deployed.models.get(item.node, DeployedModel()).table
        start = state.starts.get(item.node)
        streamed = not isinstance(node, Source) or source is None or source.files is None
        if streamed and (table is None or start is None or start.get("seed") or start.get("uuid") != table.uuid):
            return False
    return True


def _of_batch(
    manifest: Manifest,
    model: Model,
    deployed_model: DeployedModel,
    state: ModelState,
    deployed: Deployed,
    choice: RefreshChoice | None,
) -> tuple[list[str], bool]:
    inputs = batch_inputs_now(manifest, model, deployed)
    if state.phase is not Phase.PUBLISHED:
        return ["a build of it was not finished"], True
    if model.computed_when_read:
        certain = all(_declared(manifest, item.node) for item in model.inputs)
        work = [] if same_columns(state.inputs, inputs) else ["the columns of its inputs changed"]
        return [*work, *filter(None, [changed_view(state, deployed_model.view)])], certain
    work = []
    if volatile(manifest, model):
        work.append("it reads the clock or draws random numbers")
    work += filter(None, [changed_table(state, deployed_model.written)])
    if deployed_model.table is not None and changed_properties(model, deployed_model.table):
        work.append("its table properties changed")
    names = {item.node: item.name for item in model.inputs}
    unknown = [node for node, position in inputs.items() if not _is_known(position)]
    if choice is not None and choice.way is Way.NOTHING:
        return work, not unknown
    other = [n for n in {*inputs, *state.inputs} if n not in unknown and inputs.get(n) != state.inputs.get(n)]
    work += [f"'{names.get(node, node.partition('.')[2])}' changed" for node in sorted(other)]
    if choice is not None and other:
        work += filter(None, [choice.compared if model.write.history else choice.full_reason])
    return work, not unknown


def batch_inputs_now(manifest: Manifest, model: Model, deployed: Deployed) -> dict[str, Any]:
    """Return what a batch model reads now; None for a source of which only Spark knows."""

    def of_source(node: Source) -> Mapping[str, Any] | None:
        source = deployed.sources.get(node.id)
        return source.position() if source is not None and source.fault is None else None

    return batch_positions(manifest, model, of_source, lambda node: deployed.models.get(node.id, DeployedModel()).table)


def _is_known(position: Any) -> bool:
    if isinstance(position, Mapping):
        return all(_is_known(inner) for inner in position.values())
    return position is not None


def _declared(manifest: Manifest, node_id: str) -> bool:
    node = manifest.nodes[node_id]
    if isinstance(node, Source):
        return bool(node.spec.schema) or source_traits(node.spec.format).knows_columns
    return not isinstance(node, Model) or all(_declared(manifest, item.node) for item in node.inputs)
