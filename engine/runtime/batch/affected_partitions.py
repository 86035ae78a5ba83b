"""Computing again the partitions of a table that hold rows that may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lake import table_writer as lake
from engine.lake.changes.file_replacement import FieldValues, replace_files
from engine.lake.changes.listed_files import listed_files
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import Commit
from engine.lake.quoted_names import quoted
from engine.lake.table_layout import same_partitions
from engine.runtime.batch.followed_changes import Affected, FollowedChanges, FullRefreshError, no_commit
from engine.runtime.batch.partition_values import PartitionValues, field_sql, partition_values
from engine.runtime.sinks import table_setup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Partitions that are named in conditions; more are not a small part of a table.
_MOST_PARTITIONS = 1_000
_MOST_REPLACED, _FEW_PARTITIONS = 0.5, 4
# Types of partition fields, as Spark prints them, whose values have one text here and in `listed_files`.
_LISTED = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "string", "date", "timestamp"})


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
    found = changes.affected_values(keys)
    values = partition_values(found, parts, catalog, _MOST_PARTITIONS)
    if values is None:
        raise FullRefreshError(f"more than {_MOST_PARTITIONS:,} partitions are affected")
    files = _files(changes, values)
    spec = int(current.spec().specId())
    if any(file.spec != spec for file in files):
        raise FullRefreshError("the table has files of an earlier partitioning")
    total = len({file.partition for file in files})
    if not values.values:
        return Affected(None, no_commit, f"no row of it is affected, 0 of {total:,} partitions")
    gone = frozenset(file.path for file in files if file.affected)
    replaced = len({file.partition for file in files if file.affected})
    if changes.auto and total > _FEW_PARTITIONS and replaced > _MOST_REPLACED * total:
        raise FullRefreshError(f"{replaced:,} of {total:,} partitions are affected")
    ranges = values.ranges([changes.types[part.column.lower()] for part in parts])
    frame = changes.now(ranges, {part.column.lower(): part.transform for part in parts})
    for column, known in ranges.items():
        spans = (f"({quoted(column)} >= {low} AND {quoted(column)} < {high})" for low, high in known)
        frame = frame.where(" OR ".join(spans))
    # The ranges of one time say all; Iceberg's functions are computed row by row.
    if len(parts) > 1 or not ranges:
        frame = frame.where(f"({values.where([field_sql(part, catalog) for part in parts])})")
    expected = ExpectedTable(model.name, table.uuid, table.snapshot)

    def commit(rows: DataFrame, markers: Mapping[str, str]) -> Commit | None:
        fitted, _ = table_setup.fitted(model, rows)
        staged = lake.stage(fitted, relation, model.write.write_options)
        if not staged.files and not gone:
            return None
        first = FieldValues(parts[0], values.types[0], sorted({each[0] for each in values.values}, key=str))
        return replace_files(staged, gone, markers, expected, first)

    number = len(values.values)
    return Affected(frame, commit, f"refreshed {number:,} of {total + number - replaced:,} partitions")


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    spec: int
    partition: tuple[Any, ...]
    affected: bool


def _files(changes: FollowedChanges, values: PartitionValues) -> list[_File]:
    relation, affected = changes.model.relation, frozenset(values.values)
    if _LISTED.issuperset(values.types):
        listed = listed_files(changes.lake, relation.schema, relation.name, changes.table.snapshot)
        if listed is not None:
            return [_File(one.path, one.spec, one.partition, one.partition in affected) for one in listed]
    names = [f"partition.{quoted(part.field_name)}" for part in values.parts]
    among = values.where(names) if values.values else "false"
    columns = f"file_path, spec_id, partition, coalesce({among}, false) AS affected"
    rows = changes.session.sql(f"SELECT {columns} FROM {relation.sql}.data_files").collect()  # noqa: S608 - quoted
    return [_File(*row) for row in rows]
