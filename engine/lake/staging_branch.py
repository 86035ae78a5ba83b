"""The branch in which rows wait until their tests have passed, and the commit that shows them to readers.

Readers of a table read `main`, streams always (measured). The branch is there only while it is ahead of `main`: what
publishes it moves `main` on and takes the branch away, in one commit. What the columns are is the table's affair: a
column that comes with staged rows is at once there for readers, with NULLs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.lake.commits import STAGED, STAGED_LAYOUT, until_committed
from engine.lake.staged_replacement import publish_metadata
from engine.lake.table_fence import Fence
from engine.lake.table_writer import load
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAIN = "main"
# The operation of a commit that changes files and no rows.
_REWRITING = "replace"
_CONFLICT = "CommitFailedException"


def ensure_branch(session: SparkSession, relation: str, markers: Mapping[str, str]) -> None:
    """Make the branch if it is missing; of a table without rows it begins with an empty, marked commit."""
    table = load(session, relation)
    if table.refs().containsKey(STAGED):
        return
    if table.currentSnapshot() is not None:
        table.manageSnapshots().createBranch(STAGED).commit()
        return
    change = table.newAppend().toBranch(STAGED)
    for key, value in markers.items():
        change.set(f"engine.{key}", value)
    change.commit()


def publish(session: SparkSession, relation: str, fence: Fence | None = None) -> int:
    """Show the staged rows to readers, in one commit: the id of the snapshot that they read from then on.

    Where only files were rewritten in main since the branch began, main becomes the branch all the same: its rows are
    there, in the files of before. A replacement of the whole table takes the
    place of main, whatever was committed to it.

    Raises:
        StateError: `lease-lost`.
        Py4JJavaError: others have committed rows to the table since the branch began, or commit all the time.
    """

    def attempt() -> int:
        table = load(session, relation)
        if fence is not None:
            fence.check(table.operations().current())
        if table.properties().containsKey(STAGED_LAYOUT):
            operations = table.operations()
            base = operations.current()
            operations.commit(base, publish_metadata(session, base))
        elif _only_rewritten_since(session, table) is None and (fence is None or not _descends(session, table)):
            table.manageSnapshots().fastForwardBranch(_MAIN, STAGED).removeBranch(STAGED).commit()
        else:
            staged = int(table.snapshot(STAGED).snapshotId())
            base = table.snapshot(STAGED).parentId() if fence is not None else None

            def with_staged_as_main(builder: Any) -> Any:
                if base is not None and table.snapshot(base) is not None:
                    # A REST catalog compares a branch that is moved, and not one that is removed.
                    builder.setBranchSnapshot(int(base), STAGED)
                return builder.setBranchSnapshot(staged, _MAIN).removeRef(STAGED)

            _commit_metadata(session, table, with_staged_as_main)
        table.refresh()
        return int(table.currentSnapshot().snapshotId())

    kill_points.reach("publishing", relation)
    snapshot = until_committed(attempt, (_CONFLICT,))
    kill_points.reach("published", relation)
    return snapshot


def undo_rewriting(session: SparkSession, relation: str) -> bool:
    """Set main back to where the branch begins, if only files were rewritten since; whether there is a branch."""

    def attempt() -> bool:
        table = load(session, relation)
        if not table.refs().containsKey(STAGED):
            return False
        branch_start = _only_rewritten_since(session, table)
        if branch_start is not None and table.snapshot(branch_start) is not None:
            _commit_metadata(session, table, lambda changed: changed.setBranchSnapshot(branch_start, _MAIN))
        return True

    return until_committed(attempt, (_CONFLICT,))


def _only_rewritten_since(session: SparkSession, table: Any) -> int | None:
    """The snapshot of main with which the branch begins, if what came behind it in main rewrites files and no rows."""
    util: Any = jvm_of(session).org.apache.iceberg.util.SnapshotUtil
    snapshot, staged = table.currentSnapshot(), table.snapshot(STAGED)
    rewritten = False
    while snapshot is not None and staged is not None:
        if util.isAncestorOf(table, staged.snapshotId(), snapshot.snapshotId()):
            return int(snapshot.snapshotId()) if rewritten else None
        if snapshot.operation() != _REWRITING or snapshot.parentId() is None:
            return None
        rewritten, parent = True, int(snapshot.parentId())
        snapshot = table.snapshot(parent)
        if snapshot is None and util.isParentAncestorOf(table, staged.snapshotId(), parent):
            return parent
    return None


def _descends(session: SparkSession, table: Any) -> bool:
    util: Any = jvm_of(session).org.apache.iceberg.util.SnapshotUtil
    main = table.currentSnapshot()
    return main is None or bool(util.isAncestorOf(table, table.snapshot(STAGED).snapshotId(), main.snapshotId()))


def _commit_metadata(session: SparkSession, table: Any, change: Callable[[Any], Any]) -> None:
    """Change the branches of a table as it was looked at, or not at all."""
    operations = table.operations()
    before = operations.current()
    changed: Any = jvm_of(session).org.apache.iceberg.TableMetadata.buildFrom(before)
    operations.commit(before, change(changed).build())
