"""What cannot be rebuilt beside its table, found before anything is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.compile import Manifest, Model, Source, Target
from engine.compile.nodes.topological_order import ancestors
from engine.errors import Diagnostic, EngineError, Location
from engine.lake.lake_reader import Lake
from engine.plan.deployed.renamed_tables import state_now
from engine.plan.deployed.state_folder import next_relation, next_state, table_state
from engine.plan.tables.upstream_tables import decide_start, upstreams_of
from engine.sources import Place
from engine.state.operations import Rebuild

UNAVAILABLE = "rebuild-unavailable"


def rebuild_faults(manifest: Manifest, target: Target, place: Place, models: Sequence[Model]) -> Iterator[Diagnostic]:
    if not isinstance(target.state, Path):
        message = f"the state of target '{target.name}' is in a bucket, where no checkpoint is copied yet"
        yield Diagnostic(UNAVAILABLE, message, _FULL.format(f"{models[0].name}+"))
        return
    rebuilt, lake = {model.id for model in models}, Lake(target.catalog)
    owners = {str(model.relation): model for model in manifest.models if model.in_catalog}
    for model in models:
        for message, hint in _faults(manifest, model, rebuilt):
            yield Diagnostic(UNAVAILABLE, message, hint, node=model.name, location=Location(model.file))
        yield from _rename_faults(target, model)
        yield from _name_faults(lake, target, model, owners.get(str(next_relation(model.relation))))
        yield from _initial_snapshots(manifest, lake, place, model, rebuilt)


_FULL = "Rebuild it in place: engine build -f -s {0}"


def _faults(manifest: Manifest, model: Model, rebuilt: Collection[str]) -> Iterator[tuple[str, str]]:
    full = _FULL.format(f"{model.name}+")
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if item.stream and isinstance(node, Source) and "after_reading" in node.spec.settings:
            message = f"'{model.name}' reads '{item.name}', whose files are archived or deleted after reading"
            yield message, f"Two generations cannot both read them. {full}"
        if not item.stream and isinstance(node, Model) and node.id not in rebuilt:
            for read_name in _rebuilt_upstreams(manifest, node, rebuilt)[:1]:
                message = (
                    f"'{model.name}' reads '{node.name}' in full, which is made from '{read_name}' and not rebuilt here"
                )
                yield message, full
    if model.operation.pre_hook or model.operation.post_hook:
        yield f"'{model.name}' has hooks, which would run for both generations", full


def _rebuilt_upstreams(manifest: Manifest, node: Model, rebuilt: Collection[str]) -> list[str]:
    parents = {name: set(manifest.parents(name)) for name in manifest.order}
    return [manifest.nodes[name].name for name in sorted(ancestors(parents, node.id).intersection(rebuilt))]


def _rename_faults(target: Target, model: Model) -> Iterator[Diagnostic]:
    own_state, current_state = table_state(target, model), state_now(target, model)
    if current_state != own_state:
        message = f"{current_state.name} becomes {own_state.name} first, which the previous code would not find"
        hint = f"Build it once without the edit of its query, and rebuild it then. {_FULL.format(model.name)}"
        yield Diagnostic(UNAVAILABLE, message, hint, node=model.name, location=Location(model.file))


def _name_faults(lake: Lake, target: Target, model: Model, same_name_model: Model | None) -> Iterator[Diagnostic]:
    relation, folder = next_relation(model.relation), next_state(target, model)
    rebuild_note = folder.journal.open_operation(Rebuild)
    if rebuild_note is not None and rebuild_note.model == model.name and same_name_model is None:
        return
    table = lake.table(relation.schema, relation.name)
    if same_name_model is not None or table is not None or folder.load() is not None:
        message = f"{relation} exists, and '{model.name}' would be rebuilt there"
        hint = f"Give the other table another 'alias', or drop {relation} if nobody needs it."
        yield Diagnostic("name-taken", message, hint, node=model.name, location=Location(model.file))


def _initial_snapshots(
    manifest: Manifest, lake: Lake, place: Place, model: Model, rebuilt: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield the tables that a model could only stream from after an initial snapshot, which is not taken over yet."""
    with_other_inputs = replace(model, inputs=tuple(item for item in model.inputs if item.node not in rebuilt))
    try:
        upstreams = upstreams_of(
            manifest,
            with_other_inputs,
            place,
            lambda node: lake.table(node.relation.schema, node.relation.name),
        )
        seeded = [u for u in upstreams if decide_start(model, u, "", {}).seed is not None]
    except EngineError as error:
        yield from error.diagnostics
        return
    for upstream in seeded:
        message = (
            f"'{model.name}' would begin with an initial snapshot of {upstream.full}, whose first commits have expired"
        )
        yield Diagnostic(UNAVAILABLE, message, _FULL.format(f"{model.name}+"), node=model.name)
