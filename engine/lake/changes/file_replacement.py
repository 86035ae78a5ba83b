"""Replacing the data files of some partitions by staged files, in one marked commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from engine.errors import RunError
from engine.lake.commit_guard import ExpectedTable, guard
from engine.lake.commits import Commit, settled
from engine.lake.table_writer import Staged, commit_marked
from engine.spark.executions import each


def replace_files(staged: Staged, gone: Collection[str], markers: Mapping[str, str], expected: ExpectedTable) -> Commit:
    """Put staged files in place of data files of the expected snapshot, in one marked commit.

    It is made onto that snapshot only: a file that was compacted meanwhile would stay beside its new rows.

    Args:
        staged: the new files; there may be none.
        gone: the locations of the files that they replace.
        markers: of the commit, without the prefix `engine.`.
        expected: the table, with the snapshot that has the files.

    Raises:
        RunError: `commit-conflict`; nothing was committed.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    table, snapshot = staged.table, expected.snapshot
    tasks = each(table.newScan().useSnapshot(snapshot).planFiles())
    files = [file for task in tasks if str((file := task.file()).location()) in gone]
    if len(files) != len(set(gone)):
        raise RuntimeError(f"{table.name()} does not have all the files that are to be replaced")
    guarded = guard(staged.session, table, None, expected, markers)

    def attempt() -> None:
        if guarded.head != snapshot:
            raise _moved(table, expected)
        change = guarded.validated(table.newOverwrite(), exact=True)
        for file in files:
            change.deleteFile(file)
        for file in staged.files:
            change.addFile(file)
        commit_marked(change, staged, markers)

    return settled(table, markers, attempt, staged.rows, guarded)


def _moved(table: Any, expected: ExpectedTable) -> RunError:
    message = f"{table.name()} was changed by another writer while '{expected.model}' was refreshed"
    return RunError("commit-conflict", message, f"Build again: engine build -s {expected.model}", node=expected.model)
