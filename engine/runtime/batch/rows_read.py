"""How many rows a query would read, by the statistics of the scans in its plan, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.spark.executions import each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_read(frame: DataFrame) -> int:
    """Return the rows of all files that the scans of a frame read, after files were skipped by its conditions.

    Spark's optimiser asks each scan for it (`LogicalPlan.stats`); Iceberg plans the files for that. What is kept in
    memory counts as nothing.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - Spark has no public way to it
    return sum(_rows(leaf) for leaf in each(plan.collectLeaves()))


def _rows(leaf: object) -> int:
    if str(leaf.nodeName()).startswith("InMemoryRelation"):  # type: ignore[attr-defined]
        return 0
    rows = leaf.stats().rowCount()  # type: ignore[attr-defined]
    return int(str(rows.get())) if rows.isDefined() else 0
