"""What forbids a full refresh: protected models, streams from rebuilt tables, files that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, Location
from engine.plan.actions.action import PlanOptions
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.history_edits import protected

# Consequences that the user accepts by these names.
DOWNSTREAM_STOPS, FILES_GONE = "downstream-stops", "files-gone"


def rebuilds(deployed_model: DeployedModel, options: PlanOptions) -> bool:
    if options.full_refresh:
        return True
    given_up = options.discard_refresh or options.empty or options.reset is not None
    return deployed_model.refresh is not None and not given_up


def refresh_reasons(deployed_model: DeployedModel, options: PlanOptions) -> tuple[str, ...]:
    if deployed_model.refresh is None or options.full_refresh or not rebuilds(deployed_model, options):
        return ()
    return (f"the full refresh of {deployed_model.refresh.at} (UTC) was not finished",)


def rebuilt_first(
    manifest: Manifest, model: Model, rebuilt: Collection[str], deployed: Deployed
) -> Iterator[Diagnostic]:
    for item in model.inputs:
        node, deployed_model = manifest.nodes[item.node], deployed.models.get(item.node)
        if not item.stream or item.node in rebuilt or deployed_model is None or deployed_model.refresh is None:
            continue
        message = f"the full refresh of '{node.name}', which '{model.name}' streams from, was not finished"
        hint = f"Select both: engine build -s {node.name}+. To keep the tables as they are: --discard-refresh"
        yield Diagnostic("refresh-unfinished", message, hint, node=model.name, location=Location(model.file))


def refresh_refusals(
    manifest: Manifest, model: Model, rebuilt: Collection[str], built: Collection[str], accept: Collection[str]
) -> Iterator[Diagnostic]:
    if protected(model):
        yield _protected(model)
    if DOWNSTREAM_STOPS not in accept and (stopped := _stopped(manifest, model, rebuilt, built)):
        yield _stopping(model, stopped)
    if FILES_GONE not in accept and model.id in built:
        yield from files_gone(manifest, model)


def files_gone(manifest: Manifest, model: Model) -> Iterator[Diagnostic]:
    """Yield what a full refresh of a model that was built would not read again, because it was archived or deleted."""
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if not isinstance(node, Source) or "after_reading" not in node.spec.settings:
            continue
        message = (
            f"'{model.name}' would lose the rows of files of '{item.name}' that were archived or deleted after reading"
        )
        archive = node.spec.settings.get("archive_path")
        hint = f"Move the files from {archive} back to {node.spec.settings['path']} first. " if archive else ""
        hint += f"To build it from the existing files: --accept {FILES_GONE}"
        yield Diagnostic("files-gone", message, hint, node=model.name, location=node.location)


def _protected(model: Model) -> Diagnostic:
    message = f"'{model.name}' is protected from a full refresh (full_refresh: false)"
    if model.operation.full_refresh is None:
        message = f"'{model.name}' keeps history, which a full refresh cannot rebuild"
        hint = "Leave it out (--exclude), or set 'full_refresh: true' in its header to discard all earlier versions."
        return Diagnostic("full-refresh-protected", message, hint, node=model.name, location=Location(model.file))
    hint = "Leave it out (--exclude), or remove the key from its header if you mean it."
    return Diagnostic("full-refresh-protected", message, hint, node=model.name, location=Location(model.file))


def _stopped(manifest: Manifest, model: Model, rebuilt: Collection[str], built: Collection[str]) -> list[str]:
    return [
        reader.name
        for reader in manifest.models
        if reader.id not in rebuilt
        and reader.id in built
        and next((item.node for item in reader.inputs if item.stream and item.node in rebuilt), "") == model.id
    ]


def _stopping(model: Model, names: Sequence[str]) -> Diagnostic:
    one, quoted_names = len(names) == 1, ", ".join(f"'{name}'" for name in names)
    rebuilt = model.name
    message = f"{quoted_names} {'streams' if one else 'stream'} from '{rebuilt}' and cannot resume once that is rebuilt"
    hint = (
        f"Rebuild {'it' if one else 'them'} too (-f -s {rebuilt}+), make '{rebuilt}' a static input (remove it from "
        f"'streams:'), or accept that {'it stops' if one else 'they stop'}: --accept {DOWNSTREAM_STOPS}"
    )
    return Diagnostic(DOWNSTREAM_STOPS, message, hint, node=rebuilt)
