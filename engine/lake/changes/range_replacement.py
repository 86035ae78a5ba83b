"""Replacing the rows of a range in a table by other rows, in one marked commit.

The commit makes two snapshots at once: one of operation `overwrite` with the rows, and behind it one of operation
`replace` that changes nothing. A stream of Iceberg cannot continue from an overwrite, not even where it has read all
that is before it; it can from a `replace` (measured with Iceberg 1.12.0), which is where readers are moved to.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import RunError
from engine.lake.changes.read_files import forget_tasks, read_tasks
from engine.lake.commit_guard import ExpectedTable, guard
from engine.lake.commits import Commit, commit_with_retries
from engine.lake.table_writer import commit_marked, load, stage
from engine.spark.internals.handles import each, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replace_range(
    session: SparkSession,
    relation: str,
    condition: str,
    rows: DataFrame,
    markers: Mapping[str, str],
    expected: ExpectedTable,
    options: Mapping[str, str],
) -> Commit:
    """Put rows in place of those that are in a range, in one commit onto the expected snapshot.

    Files that hold rows of the range are written again with their other rows.

    Raises:
        RunError: `commit-conflict`; nothing was committed.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    session.catalog.refreshTable(relation)
    range_files = {row[0] for row in session.table(relation).where(condition).select("_file").distinct().collect()}
    table = load(session, relation)
    tasks = list(each(table.newScan().useSnapshot(expected.snapshot).planFiles()))
    rewritten_tasks = [task for task in tasks if str(task.file().location()) in range_files]
    if len(rewritten_tasks) < len(range_files):
        raise _moved(table, expected)
    if not rewritten_tasks and tasks:
        # Rows that are only added would be an append, and new rows to each stream of the table.
        rewritten_tasks = [min(tasks, key=lambda task: int(task.file().recordCount()))]
    name = f"{relation.replace('`', '')}#kept-{uuid.uuid4().hex}"
    try:
        if rewritten_tasks:
            other_rows = read_tasks(session, table, rewritten_tasks, name).where(f"not coalesce({condition}, false)")
            rows = other_rows.unionByName(rows)
        staged = stage(rows, relation, options)
    finally:
        forget_tasks(session, table, name)
    guarded = guard(session, staged.table, None, expected, markers)
    every_row: Any = jvm_of(session).org.apache.iceberg.expressions.Expressions.alwaysTrue()

    def attempt() -> None:
        if guarded.head != expected.snapshot:
            raise _moved(table, expected)
        together = staged.table.newTransaction()
        change = guarded.validated(together.newOverwrite(), exact=True)
        for task in rewritten_tasks:
            change.deleteFile(task.file())
        for file in staged.files:
            change.addFile(file)
        # An empty table too: what only adds files is an append.
        commit_marked(change if rewritten_tasks else change.overwriteByRowFilter(every_row), staged, markers)
        commit_marked(together.rewriteManifests(), staged, markers)
        together.commitTransaction()

    return commit_with_retries(staged.table, markers, attempt, staged.rows, guarded)


def _moved(table: Any, expected: ExpectedTable) -> RunError:
    message = f"{table.name()} was changed by another writer while rows of '{expected.model}' were replaced"
    return RunError("commit-conflict", message, "Run the command again.", node=expected.model)
