"""How a table is laid out: partition fields with their names, the order inside files, properties.

Spark's DDL gives partition fields names of its own, and takes others only by an ALTER TABLE afterwards: the first
specification would stay in the table. So tables are made through Iceberg's catalog.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import local_paths
from engine.relations import Partition, SortColumn
from engine.spark.internals.handles import activate, java_frame, java_map, java_session, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "format-version"
# Defaults fit for streams: one commit a micro-batch, for years.
TABLE_DEFAULTS: Mapping[str, str] = {
    FORMAT: "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "history.expire.min-snapshots-to-keep": "100",
    "commit.retry.num-retries": "10",
}
# Each commit rewrites the table, or a part of it: a snapshot kept is a copy kept.
REWRITTEN: Mapping[str, str] = {"history.expire.min-snapshots-to-keep": "3"}
# A MERGE writes what changed, not whole files, and minds only rows that others changed meanwhile (measured:
# copy-on-write and the serializable default fail beside any other writer).
MERGED: Mapping[str, str] = {
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.merge.isolation-level": "snapshot",
    "write.update.isolation-level": "snapshot",
    "write.delete.isolation-level": "snapshot",
}
_TAGS = "engine.tags"
_DISTRIBUTION = "write.distribution-mode"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """What a table is beside its columns; Iceberg's `properties` win over the defaults."""

    partitions: tuple[Partition, ...] = ()
    sort: tuple[SortColumn, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""

    def all_properties(self) -> dict[str, str]:
        # A table with an order would be written in the range of its values, which samples the data in another job.
        order = {_DISTRIBUTION: "hash" if self.partitions else "none"} if self.sort else {}
        comment = {"comment": self.comment} if self.comment else {}
        return {**TABLE_DEFAULTS, **order, **comment, **self.properties}

    def absent_properties(self) -> tuple[str, ...]:
        return tuple(sorted({*MERGED, _DISTRIBUTION, _TAGS} - self.all_properties().keys()))


def builder(session: SparkSession, relation: str, columns: DataFrame, layout: TableLayout) -> Any:
    iceberg = jvm_of(session).org.apache.iceberg
    tables, identifier = _catalog(session, relation)
    schema = iceberg_schema(session, columns)
    table_builder = tables.buildTable(identifier, schema)
    if (place := _separate_location(session, relation)) and not tables.tableExists(identifier):
        table_builder = table_builder.withLocation(place)
    return (
        table_builder.withPartitionSpec(_partition_spec(iceberg, schema, layout))
        .withSortOrder(_sort_order(iceberg, schema, layout))
        .withProperties(java_map(session, layout.all_properties()))
    )


def _separate_location(session: SparkSession, relation: str) -> str:
    """Where a table is made whose folder has the files of another one, which was renamed; empty: in its folder.

    Two tables in one folder would lose files to each other's removal of orphans. Of a warehouse on this machine only:
    elsewhere the server decides, or `engine maintain` leaves the orphans of such tables.
    """
    catalog, *schema, name = relation.replace("`", "").split(".")
    warehouse = str(session.conf.get(f"spark.sql.catalog.{catalog}.warehouse", "") or "")
    warehouse_path = local_paths.path_of_location(warehouse)
    if warehouse_path is None:
        return ""
    folder = Path(warehouse_path, *schema, name)
    if not any((folder / "metadata").glob("*.metadata.json*")):
        return ""
    return f"{warehouse.rstrip('/')}/{'/'.join([*schema, name])}-{uuid.uuid4().hex[:8]}"


def _catalog(session: SparkSession, relation: str) -> tuple[Any, Any]:
    iceberg = jvm_of(session).org.apache.iceberg
    activate(session)
    catalog, name = relation.replace("`", "").split(".", 1)
    tables = iceberg.spark.Spark3Util.loadIcebergCatalog(java_session(session), catalog)
    return tables, iceberg.catalog.TableIdentifier.parse(name)


def find_table(session: SparkSession, relation: str) -> Any | None:
    tables, identifier = _catalog(session, relation)
    return tables.loadTable(identifier) if tables.tableExists(identifier) else None


def not_older(session: SparkSession, relation: str, layout: TableLayout) -> TableLayout:
    """The layout with the format of the table that it is to replace, if that is a newer one: there is no way back."""
    tables, identifier = _catalog(session, relation)
    if not tables.tableExists(identifier):
        return layout
    version = int(tables.loadTable(identifier).operations().current().formatVersion())
    if version <= int(layout.all_properties()[FORMAT]):
        return layout
    return replace(layout, properties={**layout.properties, FORMAT: str(version)})


def iceberg_schema(session: SparkSession, columns: DataFrame) -> Any:
    convert = jvm_of(session).org.apache.iceberg.spark.SparkSchemaUtil.convert
    return convert(java_frame(columns).schema().asNullable())


def _partition_spec(iceberg: Any, schema: Any, layout: TableLayout) -> Any:
    spec = iceberg.PartitionSpec.builderFor(schema).caseSensitive(False)
    for part in layout.partitions:
        add = getattr(spec, part.transform)
        spec = (
            add(part.column, part.field_name) if part.number is None else add(part.column, part.number, part.field_name)
        )
    return spec.build()


def _sort_order(iceberg: Any, schema: Any, layout: TableLayout) -> Any:
    if not layout.sort:
        return iceberg.SortOrder.unsorted()
    order, nulls = iceberg.SortOrder.builderFor(schema).caseSensitive(False), iceberg.NullOrder
    for part in layout.sort:
        first = (not part.descending) if part.nulls_first is None else part.nulls_first
        add = order.desc if part.descending else order.asc
        order = add(part.column, nulls.NULLS_FIRST if first else nulls.NULLS_LAST)
    return order.build()


def same_partitions(table: Any, layout: TableLayout) -> bool:
    table_fields = [
        (str(part.name()), str(table.schema().findColumnName(part.sourceId())).lower(), str(part.transform()))
        for part in table.spec().fields()
    ]
    return table_fields == [(part.field_name, part.column.lower(), _transform(part)) for part in layout.partitions]


def _transform(part: Partition) -> str:
    return part.transform if part.number is None else f"{part.transform}[{part.number}]"
