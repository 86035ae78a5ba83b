"""Reading some data files of a table, with their deletes, through a scan task set.

The read option `scan-task-set-id` is ignored in Iceberg 1.12.0; the table is named in Iceberg's own cache of rewrites,
as for staged files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.lake.table_writer import tables_by_name
from engine.spark.internals.handles import activate, java_list, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_tasks(session: SparkSession, table: Any, tasks: Sequence[Any], name: str) -> DataFrame:
    """Return the rows of scan tasks, as the table's schema is now; `forget_tasks` releases them by `name`."""
    jvm = jvm_of(session)
    activate(session)
    listed = java_list(session, tasks)
    jvm.org.apache.iceberg.spark.ScanTaskSetManager.get().stageTasks(table, name, listed)
    tables_by_name(session).add(name, table)
    return session.read.format("iceberg").load(name)


def forget_tasks(session: SparkSession, table: Any, name: str) -> None:
    jvm = jvm_of(session)
    jvm.org.apache.iceberg.spark.ScanTaskSetManager.get().removeTasks(table, name)
    tables_by_name(session).remove(name)
