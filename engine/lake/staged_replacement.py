"""A table that is recreated on the staging branch, where its readers do not see it, and the commit that shows it.

Iceberg's replace transaction puts the new content into main. Here the snapshot that it would commit is added as the
branch instead, with its columns, partitioning and order beside those of the table, which stay: readers of main see the
old table. The property `STAGED_LAYOUT` says what the table becomes when it is published: the numbers of its
partitioning and order, and the properties that change. A snapshot read by its id has the columns of its own (measured
with Iceberg 1.12.0); read by the name of the branch it would have the table's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.lake import table_replacement
from engine.lake.commits import STAGED, STAGED_LAYOUT, Commit, retry_replacement
from engine.lake.table_fence import fence_of
from engine.lake.table_layout import TableLayout
from engine.lake.table_writer import commit_marked, load, stage_in
from engine.spark.internals.handles import java_map, java_set, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    # A specification is checked against the columns that count when it comes.
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
