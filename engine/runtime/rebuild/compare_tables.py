"""How rebuilt tables differ from those that are there."""

from __future__ import annotations

from collections.abc import Iterator

from engine.lake.lake_reader import Lake
from engine.plan.deployed.state_folder import next_relation
from engine.runtime.build import spark_session
from engine.runtime.rebuild.tables_beside import Rebuild
from engine.runtime.rollback.compare_versions import VersionDifference, compare_relations


def compare_tables(one: Rebuild) -> Iterator[tuple[str, VersionDifference]]:
    """Yield the difference of each table that exists, with the name of its model.

    Raises:
        RunError: `query-failed`.
        SetupError: Spark or the catalog cannot be had.
    """
    lake = Lake(one.target.catalog)
    models = [one.model(node) for node in one.models]
    models = [m for m in models if (t := lake.table(m.relation.schema, m.relation.name)) is not None and t.history]
    if not models:
        return
    with spark_session(one.target, one.target_dir) as spark:
        for model in models:
            relation = next_relation(model.relation)
            what = "the rebuilt table, with the one that readers see"
            yield model.name, compare_relations(spark.newSession(), model, what, model.relation.sql, relation.sql)
