"""What forbids a full refresh: protected models, streams from rebuilt tables, files that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, Location

# Consequences that the user accepts by these names.
DOWNSTREAM_STOPS, FILES_GONE = "downstream-stops", "files-gone"


def refresh_refusals(
    manifest: Manifest, model: Model, rebuilt: Collection[str], built: Collection[str], accept: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield why a model cannot be rebuilt.

    Args:
        manifest: the compiled project.
        model: of it.
        rebuilt: ids of all models that are rebuilt with it.
        built: ids of the models that have a state.
        accept: names of consequences.
    """
    if model.operation.full_refresh is False:
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
    hint = "Leave it out (--exclude), or remove the key from its header if you mean it."
    return Diagnostic("full-refresh-protected", message, hint, node=model.name, location=Location(model.file))


def _stopped(manifest: Manifest, model: Model, rebuilt: Collection[str], built: Collection[str]) -> list[str]:
    """The streams from a table that is rebuilt, which are not rebuilt themselves: all rows would come again."""
    return [
        reader.name
        for reader in manifest.models
        if reader.id not in rebuilt
        and reader.id in built
        and next((item.node for item in reader.inputs if item.stream and item.node in rebuilt), "") == model.id
    ]


def _stopping(model: Model, names: Sequence[str]) -> Diagnostic:
    """What a rebuilt table means for all streams that read it: one cause, one message."""
    one, shown = len(names) == 1, ", ".join(f"'{name}'" for name in names)
    rebuilt = model.name
    message = f"{shown} {'streams' if one else 'stream'} from '{rebuilt}' and cannot resume once that is rebuilt"
    hint = (
        f"Rebuild {'it' if one else 'them'} too (-f -s {rebuilt}+), make '{rebuilt}' a static input (remove it from "
        f"'streams:'), or accept that {'it stops' if one else 'they stop'}: --accept {DOWNSTREAM_STOPS}"
    )
    return Diagnostic(DOWNSTREAM_STOPS, message, hint, node=rebuilt)
