"""The tables that a model reads as streams, as they are at this moment."""

from __future__ import annotations

from engine.compile import Model, Source
from engine.lake.table_facts import TableFacts
from engine.plan.tables.upstream_tables import Upstream, upstreams_of
from engine.runtime.context.run_context import Run
from engine.sources import iceberg


def read_upstreams(run: Run, model: Model) -> tuple[Upstream, ...]:
    """Return the tables, each once.

    Raises:
        StateError: `upstream-history`, a model's table does not exist.
        SetupError: `source-table`, a source's does not.
    """

    def of_source(source: Source) -> tuple[tuple[str, str, str], TableFacts]:
        return iceberg.table_parts(source.spec, run.place), iceberg.facts(source.spec, run.place)

    def of_model(node: Model) -> TableFacts | None:
        return run.lake.table(node.relation.schema, node.relation.name)

    return upstreams_of(run.manifest, model, of_source, of_model)
