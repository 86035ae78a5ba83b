"""Computing again the partitions of a table that hold rows that may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.lake import table_writer as lake
from engine.lake.changes.file_replacement import replace_files
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.quoted_names import quoted
from engine.lake.table_layout import same_partitions
from engine.runtime.batch.followed_changes import Affected, FollowedChanges, FullRefreshError, no_commit
from engine.runtime.batch.partition_values import field_sql, partition_values
from engine.runtime.sinks import table_setup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Partitions that are named in conditions; more are not a small part of a table.
_MOST_PARTITIONS = 1_000
_MOST_REPLACED, _FEW_PARTITIONS = 0.5, 4


def affected_partitions(changes: FollowedChanges) -> Affected:
    """Find the partitions that may have changed, and compute them with literal conditions.

    Raises:
        FullRefreshError: all of the table has to be computed.
        PySparkException, Py4JError: Spark failed.
    """
    session, model, table = changes.session, changes.model, changes.table
    relation, parts, catalog = model.relation.sql, model.write.partition_by, model.relation.catalog
    current = lake.load(session, relation)
    if not same_partitions(current, table_setup.layout(model, 1)):
        raise FullRefreshError("the table is not partitioned as 'partition_by' declares")
    keys = list(dict.fromkeys(part.column.lower() for part in parts))
    found = changes.affected_keys(keys)
    values = partition_values(found, parts, catalog, _MOST_PARTITIONS)
    if values is None:
        raise FullRefreshError(f"more than {_MOST_PARTITIONS:,} partitions are affected")
    listed = session.sql(f"SELECT file_path, spec_id, record_count, partition FROM {relation}.data_files")  # noqa: S608 - quoted
    listed = listed.persist()
    try:
        if listed.where(f"spec_id <> {int(current.spec().specId())}").limit(1).count():
            raise FullRefreshError("the table has files of an earlier partitioning")
        total = listed.select("partition").distinct().count()
        if not values.values:
            return Affected(None, no_commit, f"no row of it is affected, 0 of {total:,} partitions")
        names = [f"partition.{quoted(part.field_name)}" for part in parts]
        gone = listed.where(values.where(names)).select("file_path", "partition").collect() if total else []
    finally:
        listed.unpersist()
    replaced = len({row["partition"] for row in gone})
    if changes.auto and total > _FEW_PARTITIONS and replaced > _MOST_REPLACED * total:
        raise FullRefreshError(f"{replaced:,} of {total:,} partitions are affected")
    frame = changes.now()
    types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
    exact = values.where([field_sql(part, catalog) for part in parts])
    ranges = values.ranges([types[part.column.lower()] for part in parts])
    frame = frame.where(f"({exact})" + (f" AND {ranges}" if ranges else ""))
    files = frozenset(row["file_path"] for row in gone)
    expected = ExpectedTable(model.name, table.uuid, table.snapshot)

    def commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        staged = lake.stage(fitted, relation, model.write.write_options)
        if not staged.files and not files:
            return None
        return replace_files(staged, files, markers, expected)

    number = len(values.values)
    return Affected(frame, commit, f"refreshed {number:,} of {total + number - replaced:,} partitions")
