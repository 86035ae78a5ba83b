"""What a batch model reads at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.compile import Model, Source
from engine.errors import errors_at
from engine.lake.table_facts import TableFacts
from engine.plan.refresh.batch_inputs import batch_positions
from engine.runtime.context.run_context import Run
from engine.sources import KINDS


def positions(run: Run, model: Model) -> dict[str, Any]:
    def of_source(source: Source) -> Mapping[str, Any]:
        kind = KINDS[source.spec.format]
        with errors_at(source.location):
            kind.check(source.spec, run.place)
            return kind.position(run.spark, source.spec, run.place)

    def of_table(node: Model) -> TableFacts | None:
        return run.lake.table(node.relation.schema, node.relation.name)

    return batch_positions(run.manifest, model, of_source, of_table)
