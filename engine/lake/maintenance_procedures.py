"""Maintenance of tables through Iceberg's own procedures.

Source: Iceberg docs, "Spark procedures" and "Maintenance". All of them are safe beside writers: what they cannot
commit because of one, they leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.lake.commits import PREVIOUS, until_committed
from engine.lake.table_writer import literal, load
from engine.relations import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Iceberg's defaults: fewer small files than this stay as they are, and a file below this part of the target is small.
MIN_FILES = 5
_SMALL = 0.75
_MOVED = "could not be found in the latest snapshot"
_TARGET_SIZE = ("write.target-file-size-bytes", 512 * 1024 * 1024)


def tag(session: SparkSession, relation: Relation, tags: Mapping[str, int], prefix: str) -> None:
    """Make the tags with a prefix the wanted ones, in one commit at most; the one for a rollback stays."""
    # Several tags in one commit are for Iceberg's Java API only.
    table = load(session, str(relation))
    refs = {key: int(ref.snapshotId()) for key, ref in dict(table.refs()).items() if key.startswith(prefix)}
    present_tags = {key: snapshot for key, snapshot in refs.items() if key != PREVIOUS}
    if present_tags == dict(tags):
        return
    change = table.manageSnapshots()
    for key in present_tags.keys() - tags.keys():
        change.removeTag(key)
    for key, snapshot in tags.items():
        if key not in present_tags:
            change.createTag(key, snapshot)
        elif present_tags[key] != snapshot:
            change.replaceTag(key, snapshot)
    change.commit()


def compact(session: SparkSession, relation: Relation) -> tuple[int, int]:
    kill_points.reach("compacting", relation.name)
    options = {"min-input-files": str(MIN_FILES), "delete-file-threshold": str(MIN_FILES)}
    pairs = ", ".join(f"{literal(k)}, {literal(v)}" for k, v in options.items())
    row = _call(session, relation, "rewrite_data_files", options=f"map({pairs})")
    return row["rewritten_data_files_count"], row["added_data_files_count"]


def rewrite_manifests(session: SparkSession, relation: Relation) -> tuple[int, int]:
    """Order the lists of files: how many were read and written.

    A writer whose commit joins such lists has the right of way: Iceberg's BaseRewriteManifests then rejects.
    """
    row = until_committed(lambda: _call(session, relation, "rewrite_manifests"), (_MOVED,))
    return row["rewritten_manifests_count"], row["added_manifests_count"]


def expire(session: SparkSession, relation: Relation, older_than: int, retain: int) -> int:
    """Drop snapshots before `older_than` (ms since 1970) with their files, but not the newest `retain`."""
    row = _call(session, relation, "expire_snapshots", older_than=_timestamp(older_than), retain_last=str(retain))
    return sum(int(count or 0) for key, count in row.items() if key.startswith("deleted_"))


def expire_here(session: SparkSession, relation: Relation, older_than: int, retain: int) -> None:
    """Drop snapshots as `expire` does, in this process and without a Spark job: for the few that one build adds."""
    table = load(session, str(relation))
    table.expireSnapshots().expireOlderThan(older_than).retainLast(retain).commit()


def orphans(session: SparkSession, relation: Relation, older_than: int, *, dry_run: bool) -> int:
    """Remove unknown files from before `older_than` (ms since 1970); Iceberg rejects less than a day ago."""
    rows = session.sql(
        _text(relation, "remove_orphan_files", older_than=_timestamp(older_than), dry_run=str(dry_run).lower())
    )
    return rows.count()


def small_files(session: SparkSession, relation: Relation, properties: Mapping[str, str]) -> int:
    key, default = _TARGET_SIZE
    frame = session.table(f"{relation.sql}.`files`").where("content = 0")
    small = frame.where(f"file_size_in_bytes < {int(properties.get(key, default)) * _SMALL:.0f}")
    groups = small.groupBy("partition") if "partition" in small.columns else small.groupBy()
    return sum(row["count"] for row in groups.count().collect() if row["count"] >= MIN_FILES)


def would_expire(session: SparkSession, relation: Relation, older_than: int, retain: int) -> int:
    """How many snapshots `expire` would drop: the old ones among no kept ancestors and under no tag or branch."""
    rows = session.sql(
        "SELECT snapshot_id, parent_id, unix_millis(committed_at) AS at "  # noqa: S608 - our own names
        f"FROM {relation.sql}.`snapshots`"
    ).collect()
    parents = {row["snapshot_id"]: row["parent_id"] for row in rows}
    refs = {row["name"]: row["snapshot_id"] for row in session.table(f"{relation.sql}.`refs`").collect()}
    kept_ids, at = set(refs.values()), refs.get("main")
    for _ in range(retain):
        if at is None:
            break
        kept_ids.add(at)
        at = parents.get(at)
    return sum(1 for row in rows if row["at"] < older_than and row["snapshot_id"] not in kept_ids)


def snapshots(session: SparkSession, relation: Relation) -> int:
    return session.table(f"{relation.sql}.`snapshots`").count()


def _timestamp(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}'"


def _call(session: SparkSession, relation: Relation, procedure: str, **arguments: str) -> dict[str, Any]:
    (row,) = session.sql(_text(relation, procedure, **arguments)).collect()
    return row.asDict()


def _text(relation: Relation, procedure: str, **arguments: str) -> str:
    all_arguments = {"table": literal(relation.in_catalog), **arguments}
    argument_list = ", ".join(f"{key} => {value}" for key, value in all_arguments.items())
    return f"CALL `{relation.catalog}`.system.{procedure}({argument_list})"
