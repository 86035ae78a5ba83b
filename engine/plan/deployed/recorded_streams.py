"""The sources of a streaming query in the order of its SQL, and what a generation recorded of those it began with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.compile import Input, Manifest, Model, Source
from engine.errors import StateError
from engine.plan import source_changes
from engine.plan.source_changes import Recorded, StreamSource
from engine.sources import Place, SourceSpec, answers_of, kind_of
from engine.sources.credentials import identified
from engine.state import TableState

RECORD = "sources.json"


def recorded(folder: TableState, generation: int) -> Recorded | None:
    """What a generation recorded of its sources; None: it was begun by a version that recorded nothing.

    Raises:
        StateError: `state-unreadable`.
    """
    data = folder.note(generation, RECORD)
    try:
        return None if data is None else Recorded.of(data)
    except (KeyError, TypeError, AttributeError) as error:
        path = folder.generation(generation) / RECORD
        hint = "Restore the file from a backup: it records what the checkpoint has read."
        raise StateError("state-unreadable", f"{path} cannot be read: {error}", hint) from error


def in_text(manifest: Manifest, model: Model, place: Place) -> tuple[StreamSource, ...]:
    views = streams_by_view(model)
    named = (slot.view.strip("`") for slot in model.slots)
    return tuple(identified_stream(manifest, views[view], place) for view in named if view in views)


def with_earlier_tables(
    now: Sequence[StreamSource], before: Sequence[StreamSource], uuids: Mapping[str, str]
) -> tuple[StreamSource, ...]:
    """Return streams with the names that their tables had when a generation began; `uuids` by node."""
    tables = {source.identity.get("table") for source in before}
    earlier = {source.identity["uuid"]: source.identity for source in before if source.identity.get("uuid")}

    def known(source: StreamSource) -> StreamSource:
        was = earlier.get(uuids.get(source.node, ""))
        # A table that has the name of before may be another one of that name: that is found out elsewhere.
        renamed = was is not None and source.kind == "table" and source.identity.get("table") not in tables
        return replace(source, identity={**source.identity, "table": was["table"]}) if was and renamed else source

    return tuple(map(known, now))


def streams_by_view(model: Model) -> dict[str, Input]:
    return {item.view.strip("`"): item for item in model.inputs if item.stream}


def identified_stream(manifest: Manifest, item: Input, place: Place) -> StreamSource:
    node = manifest.nodes[item.node]
    if not isinstance(node, Source):
        table = str(node.relation) if isinstance(node, Model) else item.name
        return StreamSource(item.node, item.name, "table", {"table": table})
    spec = node.spec
    known = source_changes.of_source(item.name, spec.format, spec.settings)
    return replace(known, node=item.node, identity={**known.identity, **_placed(spec, place)})


def _placed(spec: SourceSpec, place: Place) -> Mapping[str, Any]:
    placed, kind = answers_of(spec.format).placed, kind_of(spec.format)
    if placed is not None:
        return placed(spec, place)
    return {"location": identified(kind.location(spec), "location")} if kind is not None else {}
