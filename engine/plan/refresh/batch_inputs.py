"""What a batch table or view was computed from, compared with what it would be computed from now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.compile import Manifest, Model, Source
from engine.lake.table_facts import TableFacts, ViewFacts, names_refs
from engine.state import ModelState, Phase


def batch_positions(
    manifest: Manifest,
    model: Model,
    of_source: Callable[[Source], Mapping[str, Any] | None],
    of_table: Callable[[Model], TableFacts | None],
) -> dict[str, Any]:
    """Return snapshots of tables and a hash of listed files; views count by what they read; None: not known."""
    positions: dict[str, Any] = {}
    refs = names_refs(model.sql)
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if isinstance(node, Source):
            position = of_source(node)
            positions[item.node] = dict(position) if position is not None else None
        elif isinstance(node, Model) and node.computed_when_read and node.deferred_from is not None:
            # What it reads belongs to another target: its rows may be others each time.
            positions[item.node] = {"view": node.fingerprint, "read": manifest.invocation_id}
        elif isinstance(node, Model) and node.computed_when_read:
            positions[item.node] = {"view": node.fingerprint, **batch_positions(manifest, node, of_source, of_table)}
        elif isinstance(node, Model):
            table = of_table(node)
            positions[item.node] = table.position(refs=refs) if table else None
    return positions


def same_rows(
    manifest: Manifest, model: Model, state: ModelState, table: TableFacts | None, inputs: Mapping[str, Any]
) -> bool:
    if state.phase is not Phase.PUBLISHED or state.fingerprint != model.fingerprint:
        return False
    same = changed_table(state, table) is None and state.inputs == inputs
    return same and not volatile(manifest, model)


def changed_table(state: ModelState, table: TableFacts | None) -> str | None:
    """Return how a batch table differs from what its last build made of it, in a sentence; None: it does not."""
    if table is None or table.uuid != state.uuid or not table.only_files_since(state.snapshot):
        return "its table is not as it was written"
    if state.made and table.shape != state.made:
        return "another program changed the columns, the partitioning or the order of its table"
    return None


def changed_view(state: ModelState, view: ViewFacts | None) -> str | None:
    """Return how a view differs from what its last build made of it, in a sentence; None: it does not."""
    if view is None or (state.made and view.shape != state.made):
        return "another program changed the view"
    return None


def same_tables(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    uuids = [
        {node: place.get("table") for node, place in i.items() if isinstance(place, Mapping)} for i in (before, now)
    ]
    return uuids[0] == uuids[1]


def same_columns(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if before.keys() != now.keys():
        return False
    for old, new in ((before[node], now[node]) for node in now):
        if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
            if old != new:
                return False
        elif "view" in new:
            inner = [{node: at for node, at in one.items() if node != "view"} for one in (old, new)]
            if old.get("view") != new["view"] or not same_columns(inner[0], inner[1]):
                return False
        elif any(old.get(key) != new.get(key) for key in ("table", "columns")):
            return False
    return True


def volatile(manifest: Manifest, model: Model) -> bool:
    """Whether the query, or a view that it reads, reads the clock or draws random numbers."""
    views = (manifest.nodes[item.node] for item in model.inputs)
    return not model.deterministic or any(
        isinstance(view, Model) and view.computed_when_read and volatile(manifest, view) for view in views
    )
