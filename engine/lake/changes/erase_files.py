"""Erasing rows of a table for good: files are written without them, and nothing keeps the files that had them.

The commit is one of operation `replace`, as a compaction: a stream skips it, and skips nothing else. (Iceberg's options
that skip commits skip all of a kind.) Manifests keep the bounds of removed files, so a second snapshot of the same kind
has them written again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.errors import RunError
from engine.lake.changes.read_files import forget_tasks, read_tasks
from engine.lake.commit_guard import ExpectedTable, guard
from engine.lake.commits import Commit, commit_with_retries
from engine.lake.table_facts import ERASE
from engine.lake.table_writer import Staged, commit_marked, load, stage
from engine.spark.exceptions import spark_exceptions
from engine.spark.internals.handles import each, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class CurrentFiles:
    """`clean` files have no deletes; some rows of `deleted` files are deleted, but still in the file."""

    clean: frozenset[str]
    deleted: frozenset[str]


def current_files(session: SparkSession, relation: str) -> CurrentFiles:
    clean: set[str] = set()
    deleted: set[str] = set()
    for task in each(load(session, relation).newScan().planFiles()):
        (deleted if task.deletes().size() else clean).add(str(task.file().location()))
    return CurrentFiles(frozenset(clean), frozenset(deleted))


def erase_rows(
    session: SparkSession,
    relation: str,
    erased_files: Collection[str],
    keep_rows: Callable[[DataFrame], DataFrame],
    markers: Mapping[str, str],
    expected: ExpectedTable,
) -> Commit:
    """Write some data files again with the rows that are kept, and all manifests, in one marked commit.

    Raises:
        RunError: `commit-conflict`; nothing was committed.
        StateError: the table is not as expected (see `engine.lake.commit_guard`).
    """
    table, markers = load(session, relation), {**markers, ERASE: "rows"}
    tasks = [
        task
        for task in each(table.newScan().useSnapshot(expected.snapshot).planFiles())
        if _location(task) in erased_files
    ]
    if len(tasks) != len(erased_files):
        raise _moved(table, expected)
    staged = Staged(session, table, ())
    if tasks:
        name = f"{relation.replace('`', '')}#erase-{uuid.uuid4().hex}"
        try:
            staged = stage(keep_rows(read_tasks(session, table, tasks, name)), relation)
        finally:
            forget_tasks(session, table, name)
        kill_points.reach("written", relation, where=str(table.name()))
    guarded = guard(session, staged.table, None, expected, markers)
    jvm = jvm_of(session)
    # All files in one group. Without a group Iceberg leaves manifests as they are.
    together = jvm.com.google.common.base.Functions.constant("")

    def attempt() -> None:
        if guarded.head != expected.snapshot:
            raise _moved(table, expected)
        transaction = staged.table.newTransaction()
        if tasks:
            change = guarded.validated(transaction.newRewrite(), exact=True).validateFromSnapshot(expected.snapshot)
            for task in tasks:
                change.deleteFile(task.file())
            deletes = {str(f.location()) + str(f.contentOffset()): f for task in tasks for f in each(task.deletes())}
            for file in deletes.values():
                change.deleteFile(file)
            for file in staged.files:
                change.addFile(file)
            commit_marked(change, staged, markers)
        lists = transaction.rewriteManifests().clusterBy(together)
        commit_marked(lists if tasks else guarded.validated(lists, exact=True), staged, markers)
        transaction.commitTransaction()

    return commit_with_retries(staged.table, markers, attempt, staged.rows, guarded)


def _location(task: Any) -> str:
    return str(task.file().location())


def _moved(table: Any, expected: ExpectedTable) -> RunError:
    message = f"{table.name()} was changed by another writer while rows were erased"
    return RunError("commit-conflict", message, "Run the command again.", node=expected.model)


def expire_all(session: SparkSession, relation: str, prefix: str) -> int:
    """Remove tags and branches with a prefix, then snapshots that no ref needs; return how many snapshots remain."""
    table = load(session, relation)
    refs = {str(name): ref for name, ref in dict(table.refs()).items() if str(name).startswith(prefix)}
    if refs:
        change = table.manageSnapshots()
        for name, ref in refs.items():
            (change.removeTag if ref.isTag() else change.removeBranch)(name)
        change.commit()
    table.refresh()
    newest = max(int(snapshot.timestampMillis()) for snapshot in each(table.snapshots()))
    table.expireSnapshots().expireOlderThan(newest + 1).retainLast(1).commit()
    table.refresh()
    return sum(1 for _ in each(table.snapshots()))


def files_on_disk(session: SparkSession, relation: str) -> tuple[str, ...]:
    table = load(session, relation)
    folder = f"{str(table.location()).rstrip('/')}/data/"
    try:
        return tuple(str(file.location()) for file in each(table.io().listPrefix(folder)))
    except spark_exceptions() as error:
        # There is no such folder, or the files are in a store that lists nothing.
        if any(text in str(error) for text in ("FileNotFoundException", "does not exist")):
            return ()
        raise


def remove_files(session: SparkSession, relation: str, locations: Collection[str]) -> None:
    io: Any = load(session, relation).io()
    for location in locations:
        io.deleteFile(location)
