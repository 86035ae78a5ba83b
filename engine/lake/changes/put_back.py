"""The version of a table that another one replaced: kept by a tag, and put back in one commit, without copying rows.

The branch main, columns, partitioning, order and properties become those of before. The tag's age (`max-ref-age-ms`)
keeps the snapshot until nobody goes back (Iceberg's documentation, "Branching and Tagging").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.lake.changes.table_version import TableVersion
from engine.lake.commits import CONFLICTS, PREVIOUS, until_committed
from engine.lake.table_fence import FENCE, Fence
from engine.lake.table_writer import load
from engine.spark.internals.handles import java_map, java_set, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAIN = "main"


def keep_version(session: SparkSession, relation: str, seconds: float, fence: Fence | None) -> TableVersion | None:
    """Tag what readers see of a table for some time; None: it has no snapshot. Raises StateError: `lease-lost`."""

    def attempt() -> TableVersion | None:
        operations = load(session, relation).operations()
        base = operations.current()
        if fence is not None:
            fence.check(base)
        if base.currentSnapshot() is None:
            return None
        operations.commit(base, _tagged(session, _builder(session).buildFrom(base), base, seconds).build())
        return _version(base)

    version = until_committed(attempt, CONFLICTS)
    kill_points.reach("previous kept", relation)
    return version


def put_back(
    session: SparkSession, relation: str, earlier_version: TableVersion, seconds: float, fence: Fence | None
) -> None:
    """Make a table what it was before, in one commit; what it is now takes the place of that under the tag.

    Raises:
        StateError: `lease-lost`; nothing was changed.
        Py4JJavaError: others commit all the time, or the snapshot is gone.
    """

    def attempt() -> None:
        operations = load(session, relation).operations()
        base = operations.current()
        if fence is not None:
            fence.check(base)
        change = _tagged(session, _builder(session).buildFrom(base), base, seconds)
        # Specifications and orders are checked against the columns that count when they do.
        change.setCurrentSchema(earlier_version.schema).setDefaultPartitionSpec(
            earlier_version.spec
        ).setDefaultSortOrder(earlier_version.order)
        current_properties = {key: text for key, text in dict(base.properties()).items() if key != FENCE}
        then = {key: text for key, text in earlier_version.properties.items() if key != FENCE}
        if removed := current_properties.keys() - then.keys():
            change.removeProperties(java_set(session, removed))
        if changed_properties := {key: text for key, text in then.items() if current_properties.get(key) != text}:
            change.setProperties(java_map(session, changed_properties))
        operations.commit(base, change.setBranchSnapshot(earlier_version.snapshot, _MAIN).build())

    until_committed(attempt, CONFLICTS)


def version_of(session: SparkSession, relation: str) -> TableVersion:
    return _version(load(session, relation).operations().current())


def _version(base: Any) -> TableVersion:
    return TableVersion(
        int(base.currentSnapshot().snapshotId()),
        int(base.currentSchemaId()),
        int(base.defaultSpecId()),
        int(base.defaultSortOrderId()),
        {str(key): str(text) for key, text in dict(base.properties()).items()},
    )


def _tagged(session: SparkSession, change: Any, base: Any, seconds: float) -> Any:
    """Tag the current snapshot. Iceberg counts the age of a tag from the time of its snapshot."""
    jvm = jvm_of(session)
    snapshot = base.currentSnapshot()
    age_ms = int(jvm.java.lang.System.currentTimeMillis()) - int(snapshot.timestampMillis())
    tag = jvm.org.apache.iceberg.SnapshotRef.tagBuilder(snapshot.snapshotId())
    return change.setRef(PREVIOUS, tag.maxRefAgeMs(max(age_ms + int(seconds * 1000), 1)).build())


def _builder(session: SparkSession) -> Any:
    jvm = jvm_of(session)
    return jvm.org.apache.iceberg.TableMetadata
