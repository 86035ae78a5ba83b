"""How a batch table is committed: rewritten in full, or only the partitions that its rows fall into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.compile.nodes.model_settings import Overwrite
from engine.errors import Location, StateError
from engine.lake import table_writer as lake
from engine.lake.commits import Commit
from engine.lake.staged_replacement import stage_replacement
from engine.lake.table_facts import TableFacts
from engine.lake.table_layout import same_partitions
from engine.runtime.sinks import table_setup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Committing = Callable[["DataFrame", Mapping[str, str]], Commit | None]


def committing(model: Model, table: TableFacts | None, branch: str | None = None) -> Committing:
    """What commits the rows of a batch table, once, beside those of `table`; no commit if no partition is touched."""
    relation, options = model.relation.sql, model.write.write_options
    if model.write.overwrite is Overwrite.TABLE or table is None:
        layout = table_setup.layout(model, 1)
        if branch is not None:
            return lambda rows, markers: stage_replacement(rows, relation, layout, markers, options)
        return lambda rows, markers: lake.replace(rows, relation, layout, markers, options)

    def partitions(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        if not same_partitions(lake.load(rows.sparkSession, relation), table_setup.layout(model, 1)):
            message = f"{model.relation} is not partitioned as 'partition_by' declares"
            hint = f"Only whole partitions can be replaced; rebuild the table: engine build -f -s {model.name}"
            raise StateError("table-schema", message, hint, node=model.name, location=Location(model.file))
        return lake.overwrite_partitions(lake.stage(fitted, relation, options), markers, branch)

    return partitions
