"""Whether a model is still what wrote its table last; without a difference no SQL is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.compile import Manifest, Model
from engine.errors import Location
from engine.plan import new_checkpoint, source_changes
from engine.plan.comparison import Change, Comparison, StreamsRead
from engine.plan.deployed.deployed_facts import LastWriter
from engine.plan.source_changes import StreamSource


def compare_model(
    manifest: Manifest, model: Model, writer: LastWriter | None, streams: Sequence[StreamSource] | None = None
) -> Comparison:
    """Compare a model with what wrote its table last; `writer` None: it was never built."""
    if writer is None:
        return Comparison(Change.NEW)
    read = StreamsRead.compare(model, writer, streams)
    if (difference := read.difference) is not None and writer.recorded_sources is not None:
        finding = source_changes.rejection(
            str(model.relation),
            model.name,
            difference,
            new_checkpoint.ways(manifest, model),
            source_changes.elsewhere(read.before, read.now),
        )
        edited = writer.fingerprint != model.fingerprint
        return Comparison(
            Change.SOURCE_CHANGED,
            (difference,),
            finding.at(Location(model.file), model.name),
            before=writer.facts if edited else None,
        )
    if writer.fingerprint == model.fingerprint:
        return Comparison(Change.UNCHANGED)
    from engine.plan.changed_query import changed_query  # only where something changed: it reads SQL

    return replace(changed_query(manifest, model, writer, read), before=writer.facts)
