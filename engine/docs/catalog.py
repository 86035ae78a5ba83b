"""target/catalog.json in the shape of dbt's version 1: the tables as they are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.compile.artifacts.dbt_manifest import unique_id
from engine.compile.artifacts.write_artifacts import artifact_metadata, write_text
from engine.compile.nodes.manifest import Manifest, Model
from engine.docs.site.table_statistics import StoredTable

FILE = "catalog.json"


def write_catalog(manifest: Manifest, tables: Mapping[str, StoredTable], folder: Path) -> Path:
    """Write catalog.json: every model that has a table; what stores nothing is not in it."""
    nodes = {
        unique_id(model.id, manifest.project): _node(model, tables[model.id], manifest.project)
        for model in manifest.models
        if model.id in tables
    }
    record = {"metadata": artifact_metadata("catalog/v1"), "nodes": nodes, "sources": {}, "errors": None}
    return write_text(folder, FILE, json.dumps(record, indent=1))


def _node(model: Model, table: StoredTable, project: str) -> dict[str, Any]:
    descriptions = {column.name.lower(): column.description for column in model.columns}
    columns = {
        name: {"type": kind, "index": place, "name": name, "comment": descriptions.get(name.lower()) or None}
        for place, (name, kind) in enumerate(table.columns, 1)
    }
    relation = model.relation
    return {
        "metadata": {
            "type": "table",
            "schema": relation.schema,
            "name": relation.name,
            "database": relation.catalog,
            "comment": model.description or None,
            "owner": None,
        },
        "columns": columns,
        "stats": _stats(table),
        "unique_id": unique_id(model.id, project),
    }


def _stats(table: StoredTable) -> dict[str, Any]:
    last = table.last
    values = {
        "num_rows": ("Rows", float(table.rows)),
        "num_bytes": ("Bytes", float(table.bytes)),
        "num_files": ("Data files", float(table.files)),
        "num_snapshots": ("Snapshots", float(table.commits)),
        "last_modified": ("Last modified", last.at.isoformat() if last else None),
        "last_batch": ("Last micro-batch", float(last.batch) if last and last.batch is not None else None),
        "quarantined_rows": ("Quarantined rows", float(table.quarantined[-1].rows) if table.quarantined else None),
    }
    stats = {
        key: {"id": key, "label": label, "value": value, "include": True}
        for key, (label, value) in values.items()
        if value is not None
    }
    return {"has_stats": {"id": "has_stats", "label": "Has stats", "value": bool(stats), "include": False}, **stats}
