"""A table over the files of another one: Iceberg's metadata with another UUID, another location and nothing else new.

What is written later lies below the new location. The files of the other table stay that table's: `gc.enabled` is false
here, so that nothing is removed from this side, and a tag keeps its snapshot from expiring on the other side for some
days. The history is the same, so that a position of a stream in one of them is one in the other.

Source: Iceberg's table spec (all paths are absolute), `TableMetadataParser`, and the procedure `register_table`.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from engine.compile import Relation
from engine.lake import table_writer
from engine.lake.clients.table_removal import CLONE_OF
from engine.lake.fencing.table_fence import FENCE
from engine.spark.internals.handles import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT_DAYS = 7
# They would lead to the folder of the other table, or count the leases of another state folder.
_NOT_TAKEN = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path", FENCE)


def clone_table(spark: SparkSession, other: Relation, to: Relation) -> str:
    """Make a table over the files that another one, whose lock is held, has now; return its UUID."""
    parser = jvm_of(spark).org.apache.iceberg.TableMetadataParser
    table = table_writer.load(spark, other.sql)
    metadata = table.operations().current()
    known = json.loads(parser.toJson(metadata))
    if known.get("current-snapshot-id", -1) != -1:
        tag = f"engine_clone_{to.schema}".replace("`", "").replace(".", "_")
        spark.sql(f"ALTER TABLE {other.sql} CREATE OR REPLACE TAG `{tag}` RETAIN {KEPT_DAYS} DAYS")
    made = _document(known, to, other)
    table_writer.create_namespace(spark, to.catalog, to.schema)
    file = f"{made['location']}/metadata/00000-{uuid.uuid4()}.metadata.json"
    parser.write(parser.fromJson(json.dumps(made)), table.io().newOutputFile(file))
    name = table_writer.literal(f"{to.schema}.{to.name}")
    spark.sql(
        f"CALL `{to.catalog}`.system.register_table(table => {name}, metadata_file => {table_writer.literal(file)})"
    )
    return str(made["table-uuid"])


def _document(known: dict[str, Any], to: Relation, other: Relation) -> dict[str, Any]:
    properties = {key: text for key, text in known["properties"].items() if key not in _NOT_TAKEN}
    refs = {name: ref for name, ref in known.get("refs", {}).items() if name == "main"}
    return {
        **known,
        "table-uuid": str(uuid.uuid4()),
        "location": _location(known["location"], to, other),
        "last-updated-ms": int(time.time() * 1000),
        "properties": {**properties, "gc.enabled": "false", CLONE_OF: f"{other} {known['table-uuid']}"},
        "refs": refs,
        "statistics": [],
        "partition-statistics": [],
        "metadata-log": [],
    }


def _location(known: str, to: Relation, other: Relation) -> str:
    """Where a catalog would put the new table, if the other one is where it would have put that."""
    parts = known.rstrip("/").rsplit("/", 2)
    if [part.lower() for part in parts[1:]] == [other.schema.lower(), other.name.lower()]:
        return f"{parts[0]}/{to.schema}/{to.name}-{uuid.uuid4().hex[:8]}"
    return f"{known.rstrip('/')}-{to.schema}-{uuid.uuid4().hex[:8]}"
