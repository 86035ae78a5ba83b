"""Where the tables, views and files are that a data test reads: from the catalog and from listings, without Java."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.compile import DataTest, Manifest, Model, Source, Target, UnitTest
from engine.errors import EngineError
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts, names_refs
from engine.plan.actions.staged_rows import waits
from engine.plan.deployed.deployed_facts import DeployedSource
from engine.plan.deployed.state_folder import table_state
from engine.plan.refresh.batch_inputs import volatile
from engine.state import Phase

Position = Mapping[str, Any]


@dataclass(slots=True)
class ReadPositions:
    """What data tests would read now; each table is looked at once. `staged`: models of which rows are staged."""

    manifest: Manifest
    target: Target
    lake: Lake
    sources: Mapping[str, DeployedSource]
    staged: set[str] = field(default_factory=set)
    _known: dict[tuple[str, bool], Position | None] = field(default_factory=dict)

    def of(self, nodes: Iterable[str], sql: str) -> dict[str, Position | None]:
        """Return the positions of what a query reads, by id; None: its rows may differ and nobody can tell."""
        refs = names_refs(sql)
        for node in nodes:
            if (node, refs) not in self._known:
                try:
                    self._known[node, refs] = self._position(node, refs=refs)
                except EngineError:
                    # What is wrong with it is reported by the test.
                    self._known[node, refs] = None
        return {node: self._known[node, refs] for node in nodes}

    def stored(self, test: DataTest | UnitTest) -> Position | None:
        """Return where the table of a test's failing rows is; None: the test keeps none."""
        if not isinstance(test, DataTest) or test.stored is None:
            return None
        try:
            table = self.lake.table(test.stored.schema, test.stored.name)
        except EngineError:
            table = None
        return table.position() if table is not None else {}

    def _position(self, node_id: str, *, refs: bool) -> Position | None:
        node = self.manifest.nodes[node_id]
        if isinstance(node, Source):
            return self._source(node)
        if not isinstance(node, Model):
            return None
        if node.computed_when_read:
            return self._view(node)
        table = self._table(node)
        return table.position(refs=refs) if table is not None else None

    def _source(self, source: Source) -> Position | None:
        found = self.sources.get(source.id)
        # What a connection sets is rendered when the source is read.
        if found is None or found.fault is not None or "connection" in source.spec.settings:
            return None
        return found.position()

    def _table(self, model: Model) -> TableFacts | None:
        relation = model.relation
        if not waits(model):
            return self.lake.table(relation.schema, relation.name)
        pending = table_state(self.target, model).pending()
        table = self.lake.table(relation.schema, relation.name, STAGED)
        whole = pending is not None and pending.phase is Phase.STAGED
        if whole or (table is not None and STAGED in table.branches):
            self.staged.add(model.id)
        # A refresh that waits is another table, and becomes this one when it is published.
        return None if whole else table

    def _view(self, view: Model) -> Position | None:
        state = table_state(self.target, view).load()
        found = self.lake.view(view.relation.schema, view.relation.name)
        if found is None or state is None or state.fingerprint != view.fingerprint or volatile(self.manifest, view):
            return None
        inner = self.of([item.node for item in view.inputs], view.sql)
        if any(position is None for position in inner.values()):
            return None
        self.staged.update({view.id} if self.staged.intersection(inner) else ())
        return {"view": found.version, **inner}
