"""Recreating a table in a transaction: rows, columns, partitioning, order and properties at once.

Iceberg gives a column of the new table the id of the one that has its name now, whatever its type. Partition
specifications stay in the metadata with the ids of their columns: one by day over what has become a string makes the
table unreadable (measured with Iceberg 1.12.0: "Unsupported type: string"). So a column of another type gets a new id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.lake.commits import CONFLICTS, until_committed
from engine.lake.table_fence import Fence
from engine.lake.table_layout import TableLayout, builder, find_table, not_older
from engine.spark.internals.handles import jvm_of

# Behind the name of a column whose type has changed, in metadata that nobody reads.
_RETYPED = "#retyped"
# Far enough in the future that every snapshot is older.
_DAY_MS = 86_400_000
_MAIN = "main"

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def begin_replacement(
    session: SparkSession, relation: str, columns: DataFrame, layout: TableLayout, *, new: bool = False
) -> Any:
    """Begin to replace a table, or to make it: Iceberg's transaction, in Java.

    Its table has the new columns and no rows; branches stay. Nothing is committed. One that is made as `new` fails if
    others make it meanwhile.
    """
    table_builder = builder(session, relation, columns, not_older(session, relation, layout))
    if new:
        return table_builder.createTransaction()
    change = table_builder.createOrReplaceTransaction()
    replacement = change.table().operations().current()
    table = find_table(session, relation)
    if table is None:
        return change
    retyped = _retyped(table.schema(), replacement.schema())
    if not retyped:
        return change
    # Rename the old column, rather than drop it, so that its partition specification keeps a column.
    renamed = table.updateSchema()
    for column in retyped:
        renamed.renameColumn(column, f"{column}{_RETYPED}")
    operations, jvm = table.operations(), jvm_of(session)
    start = _with_schema(jvm, operations.current(), renamed.apply()).buildReplacement(
        replacement.schema(),
        replacement.spec(),
        replacement.sortOrder(),
        replacement.location(),
        replacement.properties(),
    )
    return jvm.org.apache.iceberg.Transactions.replaceTableTransaction(relation.replace("`", ""), operations, start)


def make_empty(
    session: SparkSession, relation: str, columns: DataFrame, layout: TableLayout, fence: Fence | None
) -> None:
    """Make an empty table. One of that name that exists gets the columns and the layout, and keeps its UUID.

    Whoever has begun to stream from a table that has no rows yet continues with it. Its commits stay, too: a fence is
    one (see `engine.lake.table_fence`).

    Raises StateError: `lease-lost`; nothing was changed.
    """

    def attempt() -> None:
        table = find_table(session, relation)
        if table is None:
            builder(session, relation, columns, layout).create()
            return
        operations = table.operations()
        base = operations.current()
        if fence is not None:
            fence.check(base)
        replacement = begin_replacement(session, relation, columns, layout).table().operations().current()
        if (head := base.ref(_MAIN)) is not None:
            change = jvm_of(session).org.apache.iceberg.TableMetadata.buildFrom(replacement)
            replacement = change.setBranchSnapshot(int(head.snapshotId()), _MAIN).build()
        operations.commit(base, replacement)
        table.refresh()
        without_lost_partitions(session, table)

    until_committed(attempt, CONFLICTS)


def without_lost_partitions(session: SparkSession, table: Any) -> None:
    """Remove partition specifications by columns that a replaced table no longer has, and its earlier snapshots.

    A MERGE into such a table fails (measured with Iceberg 1.12.0: "Cannot find field .. optional unknown in struct<>").
    Data files stay for those who read them just now; maintenance removes them later.
    """
    schema = table.schema()
    fields = [field for spec in table.specs().values() for field in spec.fields()]
    if all(schema.findField(field.sourceId()) is not None for field in fields):
        return
    other_refs = {str(name): bool(ref.isBranch()) for name, ref in dict(table.refs()).items() if name != "main"}
    if other_refs:
        change = table.manageSnapshots()
        for name, is_branch in other_refs.items():
            change = change.removeBranch(name) if is_branch else change.removeTag(name)
        change.commit()
    now_ms = jvm_of(session).java.lang.System.currentTimeMillis()
    expired = table.expireSnapshots().expireOlderThan(now_ms + _DAY_MS).retainLast(1).cleanExpiredFiles(False)
    expired.cleanExpiredMetadata(True).commit()


def _retyped(old_schema: Any, new_schema: Any) -> list[str]:
    pairs = ((old_schema.findField(column.fieldId()), column) for column in new_schema.columns())
    return [
        str(old_column.name())
        for old_column, column in pairs
        if old_column is not None and not old_column.type().equals(column.type())
    ]


def _with_schema(jvm: Any, metadata: Any, schema: Any) -> Any:
    change = jvm.org.apache.iceberg.TableMetadata.buildFrom(metadata).addSchema(schema)
    number = next(
        metadata_schema.schemaId() for metadata_schema in change.build().schemas() if metadata_schema.sameSchema(schema)
    )
    return change.setCurrentSchema(number).build()
