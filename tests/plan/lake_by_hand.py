"""What a build leaves of a stream of files, written by hand: catalog, metadata of the table, state and checkpoint."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from importlib import metadata
from pathlib import Path

from engine import __version__
from engine.compile import Model
from engine.compile.nodes.facts import plain
from engine.plan.actions.descriptions import comments_of, table_properties
from engine.plan.source_changes import Recorded, StreamSource, of_facts
from engine.state import ModelState, Phase, TableState

UUID = "00000000-0000-4000-8000-000000000001"
_COLUMNS = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"


def built(root: Path, model: Model, files: list[Path]) -> TableState:
    """Make what is there of a model that has read some files in micro-batch 0."""
    table(root / ".engine/lake", model)
    relation = model.relation
    folder = TableState(root / ".engine/state", relation.catalog, relation.schema, relation.name)
    environment = {"project": "shop", "target": "dev", "schema": "s"}
    folder.save(
        ModelState(
            str(relation), 1, Phase.PUBLISHED, UUID, model.fingerprint, "q", 0, 1, model=model.name,
            environment=environment, engine_version=__version__, spark_version=metadata.version("pyspark"),
        )
    )  # fmt: skip
    folder.save_facts(1, model.fingerprint, plain(model.facts))
    (stream,) = of_facts(model.facts)
    location = {"location": f"file:{root}/{stream.identity['path']}", "root": str(root)}
    source = StreamSource(stream.node, stream.name, stream.kind, {**stream.identity, **location})
    folder.save_note(1, "sources.json", Recorded((source,)).as_json())
    _checkpoint(folder.checkpoint(1), files)
    return folder


def table(lake: Path, model: Model) -> None:
    """Make the table of a model, with one commit."""
    comment = comments_of(model).table
    fields = [{"id": n, "name": c.name, "type": "int", "required": False, "doc": c.description}
              for n, c in enumerate(model.columns, 1)]  # fmt: skip
    folder = lake / "warehouse" / model.relation.schema / model.relation.name
    content = {
        "format-version": 2,
        "table-uuid": UUID,
        "location": folder.as_uri(),
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
        "current-schema-id": 0,
        "snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "summary": {"operation": "append"}}],
        "current-snapshot-id": 1,
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        "properties": {**table_properties(model, 1), **({"comment": comment} if comment else {})},
    }
    path = folder / "metadata" / "v1.metadata.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    relation = model.relation
    with closing(sqlite3.connect(lake / "catalog.db")) as connection, connection:
        connection.execute(f"create table if not exists iceberg_tables ({_COLUMNS})")
        row = (relation.catalog, relation.schema, relation.name, path.as_uri(), None, "TABLE")
        connection.execute("insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", row)


def _checkpoint(path: Path, files: list[Path]) -> None:
    lines = [{"path": f.as_uri(), "timestamp": f.stat().st_mtime_ns // 1_000_000, "batchId": 0} for f in files]
    for name, texts in {
        "metadata": [{"id": "q"}],
        "sources/0/0": ["v1", *lines],
        "offsets/0": ["v1", {"batchWatermarkMs": 0, "conf": {}}, {"logOffset": 0}],
        "commits/0": ["v1", {"nextBatchWatermarkMs": 0}],
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("\n".join(t if isinstance(t, str) else json.dumps(t) for t in texts))
