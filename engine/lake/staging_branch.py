"""The branch in which rows wait until their tests have passed, and the commit that shows them to readers.

Readers of a table read `main`, streams always (measured). The branch exists only while it is ahead of `main`:
publishing moves `main` on and removes the branch, in one commit. Columns belong to the table: a column that comes with
staged rows is visible to readers at once, with NULLs.

A replacement of the whole table is staged as the snapshot that Iceberg's replace transaction would commit to `main`.
Its columns, partitioning and order are added to the table, whose own stay in force: readers of `main` see the old one.
The property `STAGED_LAYOUT` has what publishing makes of the table: the numbers of its partitioning and order, and the
properties that change. A snapshot read by its id has its own columns, read by the name of the branch the table's
(measured, Iceberg 1.12.0).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.lake import table_replacement
from engine.lake.commits import STAGED, STAGED_LAYOUT, Commit, retry_replacement, until_committed
from engine.lake.table_fence import Fence, fence_of
from engine.lake.table_layout import TableLayout
from engine.lake.table_writer import commit_marked, load, stage_in
from engine.spark.internals.handles import java_map, java_set, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAIN = "main"
# The operation of a commit that changes files and no rows.
_REWRITING = "replace"
_CONFLICT = "CommitFailedException"


def stage_replacement(
    frame: DataFrame, relation: str, layout: TableLayout, markers: Mapping[str, str], options: Mapping[str, str]
) -> Commit:
    """Put the rows of a frame on the staging branch of an existing table, in one marked commit; nobody sees them.

    What was staged before goes in that commit. A higher format version counts at once.
    """
    session = frame.sparkSession
    kill_points.reach("staging", relation)
    fence = fence_of(markers)

    def attempt() -> Commit:
        change = table_replacement.begin_replacement(session, relation, frame, layout)
        staged = stage_in(frame, change.table(), relation, options)
        added = change.newFastAppend()
        for file in staged.files:
            added.appendFile(file)
        commit_marked(added, staged, markers)
        replacement = change.table().operations().current()
        operations = load(session, relation).operations()
        base = operations.current()
        if fence is not None:
            fence.check(base)
        with_branch = _with_staged_branch(session, base, replacement, fenced=fence is not None)
        kill_points.reach("written", relation)
        operations.commit(base, with_branch)
        return Commit(int(replacement.currentSnapshot().snapshotId()), staged.rows)

    commit = retry_replacement(attempt, lambda: load(session, relation), markers, STAGED)
    kill_points.reach("staged", relation)
    return commit


def _with_staged_branch(session: SparkSession, base: Any, replacement: Any, *, fenced: bool) -> Any:
    """The table's metadata with the snapshot of a replacement on the branch.

    A REST catalog compares only what a commit changes: with a fence main is moved and moved back, to be compared.
    """
    change = _metadata(session).buildFrom(base).upgradeFormatVersion(replacement.formatVersion())
    # In the order of their numbers: they get the same here.
    for schema in sorted(replacement.schemas(), key=lambda schema: int(schema.schemaId())):
        if not base.schemasById().containsKey(schema.schemaId()):
            change.addSchema(schema)
    # Iceberg checks a partition specification against the current schema when it is added.
    change.setCurrentSchema(replacement.currentSchemaId()).addPartitionSpec(replacement.spec()).addSortOrder(
        replacement.sortOrder()
    )
    change.setCurrentSchema(base.currentSchemaId())
    if base.ref(STAGED) is not None:
        change.removeRef(STAGED)
    base_properties = dict(base.properties())
    becomes = {
        "spec": int(replacement.defaultSpecId()),
        "order": int(replacement.defaultSortOrderId()),
        "properties": {
            key: text for key, text in dict(replacement.properties()).items() if base_properties.get(key) != text
        },
    }
    change.setProperties(java_map(session, {STAGED_LAYOUT: json.dumps(becomes, sort_keys=True)}))
    change.setBranchSnapshot(replacement.currentSnapshot(), STAGED)
    if fenced and (main := base.currentSnapshot()) is not None:
        change.setBranchSnapshot(replacement.currentSnapshot().snapshotId(), "main")
        change.setBranchSnapshot(main.snapshotId(), "main")
    metadata = change.build()
    has_columns = metadata.schemasById().get(replacement.currentSchemaId()).sameSchema(replacement.schema())
    if not has_columns or not metadata.specsById().get(replacement.defaultSpecId()).equals(replacement.spec()):
        raise RuntimeError("the staged table lost its columns or partitioning")
    return metadata


def publish_metadata(session: SparkSession, base: Any) -> Any:
    becomes = json.loads(base.properties().get(STAGED_LAYOUT))
    snapshot = base.snapshot(base.ref(STAGED).snapshotId())
    change = _metadata(session).buildFrom(base).setCurrentSchema(snapshot.schemaId())
    change.setDefaultPartitionSpec(becomes["spec"]).setDefaultSortOrder(becomes["order"])
    change.setProperties(java_map(session, becomes["properties"]))
    change.setBranchSnapshot(snapshot.snapshotId(), "main").removeRef(STAGED)
    return _without_layout(session, change).build()


def discard(session: SparkSession, relation: str) -> None:
    operations = load(session, relation).operations()
    base = operations.current()
    if base.properties().containsKey(STAGED_LAYOUT):
        change = _metadata(session).buildFrom(base)
        if base.ref(STAGED) is not None:
            change.removeRef(STAGED)
        operations.commit(base, _without_layout(session, change).build())


def _without_layout(session: SparkSession, change: Any) -> Any:
    return change.removeProperties(java_set(session, [STAGED_LAYOUT]))


def _metadata(session: SparkSession) -> Any:
    jvm = jvm_of(session)
    return jvm.org.apache.iceberg.TableMetadata


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

    A staged replacement of the whole table takes the place of main, whatever was committed to it. Otherwise main moves
    forward to the branch, also where only files were rewritten in main since the branch began: the branch has the same
    rows in the files of before. With a fence the commit is one that a catalog compares with both branches.

    Raises:
        StateError: `lease-lost`.
        Py4JJavaError: others have committed rows to the table since the branch began, or commit all the time.
    """

    def attempt() -> int:
        table = load(session, relation)
        if fence is not None:
            fence.check(table.operations().current())
        if table.properties().containsKey(STAGED_LAYOUT):
            _publish_replacement(session, table)
        elif _only_rewritten_since(session, table) is None and (fence is None or not _descends(session, table)):
            table.manageSnapshots().fastForwardBranch(_MAIN, STAGED).removeBranch(STAGED).commit()
        else:
            _replace_main(session, table, fenced=fence is not None)
        table.refresh()
        return int(table.currentSnapshot().snapshotId())

    kill_points.reach("publishing", relation)
    snapshot = until_committed(attempt, (_CONFLICT,))
    kill_points.reach("published", relation)
    return snapshot


def _publish_replacement(session: SparkSession, table: Any) -> None:
    operations = table.operations()
    base = operations.current()
    operations.commit(base, publish_metadata(session, base))


def _replace_main(session: SparkSession, table: Any, *, fenced: bool) -> None:
    staged = int(table.snapshot(STAGED).snapshotId())
    base = table.snapshot(STAGED).parentId() if fenced else None

    def with_staged_as_main(builder: Any) -> Any:
        if base is not None and table.snapshot(base) is not None:
            # A REST catalog compares a branch that is moved, and not one that is removed.
            builder.setBranchSnapshot(int(base), STAGED)
        return builder.setBranchSnapshot(staged, _MAIN).removeRef(STAGED)

    _commit_metadata(session, table, with_staged_as_main)


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
