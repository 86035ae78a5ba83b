"""Whether a stream can begin or continue with the tables that it reads, as they are before a build.

What is wrong now is wrong after more commits too, so that a table which is built before it in the same build is looked
at as well; what those commits may bring is asked when the query starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, EngineError, Location
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.new_checkpoint import begun_at
from engine.plan.tables.upstream_tables import Upstream, beginning, continued, decided, is_table, upstreams_of
from engine.sources.iceberg.column_changes import changed_columns
from engine.state import ModelState


def upstream_faults(
    manifest: Manifest, model: Model, deployed: Deployed, built: Collection[str], begin: Mapping[str, Any] | None
) -> Iterator[Diagnostic]:
    """Yield `upstream-history`, `-replaced`, `-rewritten`, `source-columns`; `begin` None: the stream resumes."""
    tables = {
        item.node: _table(deployed, manifest.nodes[item.node])
        for item in model.inputs
        if item.stream and is_table(manifest.nodes[item.node])
    }
    if unread := [fault for node in tables for fault in deployed.models.get(node, DeployedModel()).faults]:
        yield from unread
        return
    # A table that is made first has nothing that could be wrong; that of a source is reported as missing elsewhere.
    if any(facts is None and (node in built or node in deployed.sources) for node, facts in tables.items()):
        return

    def of_source(source: Source) -> tuple[tuple[str, str, str], TableFacts]:
        found = deployed.sources[source.id]
        if found.table is None:
            raise TypeError(source.id)
        return found.parts, found.table

    known = deployed.models.get(model.id, DeployedModel())
    state, place = known.state, Location(model.file)
    try:
        found = upstreams_of(manifest, model, of_source, lambda node: tables[node.id])
        if begin is None and state is not None and known.checkpoint is not None:
            continued(model, state, known.checkpoint, found, known.initial_snapshots)
    except EngineError as error:
        yield from (diagnostic.at(place, model.name) for diagnostic in error.diagnostics)
        return
    for upstream in found if begin is not None else ():
        try:
            beginning(model, upstream, decided(model, _moved(upstream, begin or {}), "", begin or {}))
        except EngineError as error:
            yield from (diagnostic.at(place, model.name) for diagnostic in error.diagnostics)
    if begin is None and state is not None:
        yield from _changed_columns(manifest, model, deployed, state)


def _table(deployed: Deployed, node: object) -> TableFacts | None:
    if isinstance(node, Source):
        source = deployed.sources.get(node.id)
        return source.table if source is not None else None
    return deployed.models.get(node.id, DeployedModel()).table if isinstance(node, Model) else None


def _moved(upstream: Upstream, begin: Mapping[str, Any]) -> Upstream:
    if upstream.spec is None or not begin:
        return upstream
    return replace(upstream, spec=begun_at(upstream.spec, begin.get("at")))


def _changed_columns(manifest: Manifest, model: Model, deployed: Deployed, state: ModelState) -> Iterator[Diagnostic]:
    for item in model.inputs:
        node, source = manifest.nodes[item.node], deployed.sources.get(item.node)
        if not item.stream or not isinstance(node, Source) or source is None or not source.columns:
            continue
        before = state.sources.get(node.id, {}).get("columns", {})
        found = changed_columns(".".join(source.parts), model.name, before, source.columns)
        if found is not None:
            yield found.at(node.location, model.name)
