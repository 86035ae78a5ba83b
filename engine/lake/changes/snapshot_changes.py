"""The rows by which two snapshots of a table differ, read from the files that differ.

Iceberg's changelog scan rejects tables with delete files (measured with 1.12.0, format 2 and 3). The file plans of both
snapshots are compared instead: a data file with the same deletes in both has the same rows in both. What is left is
read through a scan task set (see `read_files`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lake.changes.read_files import forget_tasks, read_tasks
from engine.lake.table_writer import load
from engine.relations import quoted
from engine.spark.internals.handles import each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIDE = "__side"
_READ = "#read-"
# Grouping takes -0.0 for 0.0; as text they differ.
_ZEROS = ("float", "double")
# Spark compares no values of these types, or not all that a query could see of them (the order of a map).
_UNCOMPARED = ("map<", "variant", "geometry", "geography", "interval", "void")


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """`rows` counts both sides, deleted rows included; `total` counts the rows of the newer snapshot's files."""

    table: Any
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    rows: int
    total: int
    name: str

    @property
    def none(self) -> bool:
        return not self.before and not self.after


def changed_files(session: SparkSession, relation: str, older: int, newer: int) -> ChangedFiles:
    """Compare the file plans of two snapshots, which need not be ancestors of each other.

    Raises Py4JError: a snapshot has expired, or its manifests are gone.
    """
    table = load(session, relation)
    old, _ = _plan(table, older)
    new, total = _plan(table, newer)
    removed_tasks = [old[key] for key in old.keys() - new.keys()]
    added_tasks = [new[key] for key in new.keys() - old.keys()]
    rows = sum(count for _, count in (*removed_tasks, *added_tasks))
    removed_files, added_files = (tuple(task for task, _ in tasks) for tasks in (removed_tasks, added_tasks))
    name = f"{relation.replace('`', '')}{_READ}{uuid.uuid4().hex}"
    return ChangedFiles(table, removed_files, added_files, rows, total, name)


def _plan(table: Any, snapshot: int) -> tuple[dict[tuple[Any, ...], tuple[Any, int]], int]:
    tasks, total = {}, 0
    for task in each(table.newScan().useSnapshot(snapshot).planFiles()):
        file = task.file()
        deletes = frozenset(
            (str(delete_file.location()), str(delete_file.contentOffset())) for delete_file in each(task.deletes())
        )
        count = int(file.recordCount())
        tasks[str(file.location()), deletes] = (task, count)
        total += count
    return tasks, total


def net_changes(session: SparkSession, files: ChangedFiles, columns: Sequence[str]) -> DataFrame:
    """Return the rows that only one of two snapshots has, by some columns.

    `__side` is negative for rows of the older snapshot, positive for those of the newer one. Rows that were rewritten
    alike, or of which only other columns changed, are in neither.
    """
    from pyspark.sql import functions

    parts = [
        _read_side(session, files, tasks, side).select(*map(quoted, columns)).withColumn(SIDE, functions.lit(side))
        for tasks, side in ((files.before, -1), (files.after, 1))
        if tasks
    ]
    both_sides = parts[0].unionAll(parts[1]) if len(parts) > 1 else parts[0]
    types = {field.name: field.dataType.simpleString() for field in both_sides.schema.fields}
    texts = [functions.col(quoted(name)).cast("string") for name in columns if _has_zeros(types[name])]
    text_columns = [text.alias(f"__text{number}") for number, text in enumerate(texts)]
    grouped = both_sides.groupBy(*(functions.col(quoted(name)) for name in columns), *text_columns)
    summed = grouped.agg(functions.sum(SIDE).alias(SIDE)).where(f"{SIDE} <> 0")
    return summed.select(*map(quoted, columns), SIDE)


def comparable(type_name: str) -> bool:
    return not any(word in type_name.lower() for word in _UNCOMPARED)


def _has_zeros(type_name: str) -> bool:
    return any(word in type_name for word in _ZEROS)


def _read_side(session: SparkSession, files: ChangedFiles, tasks: Sequence[Any], side: int) -> DataFrame:
    return read_tasks(session, files.table, tasks, f"{files.name}{side}")


def forget_files(session: SparkSession, files: ChangedFiles) -> None:
    for side, tasks in ((-1, files.before), (1, files.after)):
        if tasks:
            forget_tasks(session, files.table, f"{files.name}{side}")
