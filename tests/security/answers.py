"""Answers and artifacts as they are when nobody damages them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.cli.main import invoke
from engine.compile import Catalog
from engine.lake.catalog.catalog_settings import prepare
from tests.lab import writable_catalog
from tests.projects import write_files
from tests.security.test_hostile_catalogs import METADATA, VIEWS

SNAPSHOT = {
    "snapshot-id": 5, "sequence-number": 1, "timestamp-ms": 1602638573590, "schema-id": 0,
    "summary": {"operation": "append", "total-records": "2", "engine.batch": "1"},
    "manifest-list": "s3://bucket/folder/snap-5.avro",
}  # fmt: skip
TABLE = {
    **METADATA,
    "properties": {"comment": "x", "engine.generation": "1"},
    "current-snapshot-id": 5,
    "snapshots": [SNAPSHOT],
    "refs": {"main": {"snapshot-id": 5, "type": "branch"}},
    "snapshot-log": [{"snapshot-id": 5, "timestamp-ms": 1602638573590}],
    "metadata-log": [{"metadata-file": "s3://bucket/folder/v0.metadata.json", "timestamp-ms": 1602638573590}],
}
VIEW = {
    "view-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c2",
    "format-version": 1,
    "location": "s3://bucket/folder/v",
    "schemas": METADATA["schemas"],
    "current-version-id": 1,
    "versions": [{"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "representations": []}],
    "version-log": [],
    "properties": {},
}
_LISTED = (
    b'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Name>bucket</Name><Prefix>folder/</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys>"
    b"<IsTruncated>false</IsTruncated>"
    b"<Contents><Key>folder/a.json</Key><LastModified>2026-11-24T00:00:00.000Z</LastModified><ETag>&quot;a&quot;</ETag>"
    b"<Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>"
    b"<Contents><Key>folder/b.json</Key><LastModified>2026-11-24T00:00:01.000Z</LastModified><Size>6</Size></Contents>"
    b"</ListBucketResult>"
)
_SCHEMA = {
    "type": "record",
    "name": "Paid",
    "fields": [{"name": "id", "type": "int"}, {"name": "at", "type": ["null", "long"]}],
}
ARTIFACTS = ("manifest.json", "run_results.json")
COMMANDS = (
    ("ls", "-s", "state:modified", "--state", "{state}"),
    ("ls", "-s", "state:modified.body", "--state", "{state}"),
    ("ls", "-s", "state:new", "state:old", "state:unmodified", "--state", "{state}"),
    ("ls", "-s", "result:error", "result:success+", "--state", "{state}"),
    ("ls", "-s", "source_status:fresher+", "--state", "{state}"),
    ("plan", "-s", "b", "--defer", "--state", "{state}"),
    ("plan", "-s", "b", "--defer", "--favor-state", "--state", "{state}"),
)


# Those that read a table and its state.
READING = (
    ("plan",), ("docs", "generate"), ("show", "m", "--table"), ("state", "m"), ("drop", "m", "--yes"), ("lineage",),
)  # fmt: skip


def rest() -> dict[str, Any]:
    """Of a REST catalog."""
    return {
        "GET /v1/config": {"defaults": {"s3.region": "x"}, "overrides": {"prefix": ""}, "endpoints": [VIEWS, "GET /v1/config"]},
        "POST /v1/oauth/tokens": {"access_token": "issued", "token_type": "bearer", "expires_in": 60},
        "GET /v1/namespaces/s/tables": {"identifiers": [{"namespace": ["s"], "name": "base"}], "next-page-token": None},
        "GET /v1/namespaces/s/tables/base": {
            "metadata-location": "s3://bucket/folder/v1.metadata.json", "metadata": TABLE,
            "config": {"s3.path-style-access": "true"},
            "storage-credentials": [{"prefix": "s3://", "config": {"s3.access-key-id": "a", "s3.secret-access-key": "b"}}],
        },
        "GET /v1/namespaces/s/views": {"identifiers": [{"namespace": ["s"], "name": "v"}]},
        "GET /v1/namespaces/s/views/base": {"metadata-location": "s3://bucket/folder/v", "metadata": VIEW},
    }  # fmt: skip


def s3() -> dict[str, Any]:
    """Of a store."""
    return {"GET /bucket?": _LISTED, "GET /bucket/folder/v1.metadata.json": json.dumps(TABLE).encode()}


def registry() -> dict[str, Any]:
    """Of a schema registry."""
    text = json.dumps(_SCHEMA)
    return {
        "GET /schemas/ids/1": {"schema": text, "schemaType": "AVRO", "references": []},
        "GET /subjects/shop-value/versions": [1, 2, 3],
        "GET /subjects/shop-value/versions/": {"subject": "shop-value", "version": 3, "id": 1, "schema": text},
    }


def lake(folder: Path, schema: str = "s", name: str = "base", **properties: str) -> Path:
    """A local warehouse with a table of two snapshots.

    Args:
        folder: that is made.
        schema: of the table.
        name: of the table.
        properties: of the table; each snapshot has them, too.
    """
    import pyarrow as pa

    prepare(Catalog("sqlite", "lake", folder))
    catalog = writable_catalog(folder)
    catalog.create_namespace(schema)
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    made = catalog.create_table(f"{schema}.{name}", rows.schema, properties=properties)
    for batch in ("0", "1"):
        made.append(rows, snapshot_properties={**properties, "engine.batch-id": batch})
    catalog.close()
    return folder


def built(root: Path) -> Path:
    """A project with a streaming table, its state and its checkpoint, as a build leaves them."""
    files = {
        "project.yml": "name: lab\ntargets: {dev: {catalog: {type: sqlite, name: lake, path: .engine/lake}, schema: s}}\n",
        "sources/shop.yml": "sources: [{name: shop, tables: [{name: events, format: json, path: landing, "
        "schema: 'id int, name string, at timestamp'}]}]\n",
        "models/m.sql": "/*---\nstreams: {shop.events: {watermark: at delay 10 minutes, dedup: [id]}}\n---*/\n"
        "select id, name from {{ source('shop', 'events') }}\n",
        "landing/a.json": '{"id": 1}\n',
    }
    markers = {"engine.generation": "1", "engine.generation-id": "g1", "engine.run-id": "r"}
    lake(root / ".engine/lake", "s", "m", **markers)
    newest = json.loads(max((root / ".engine/lake").rglob("*.metadata.json")).read_text())
    state = {
        "table": "lake.s.m", "generation": 1, "generation_id": "g1", "phase": "published", "uuid": newest["table-uuid"],
        "fingerprint": "f", "query_id": "q", "batch": 1, "snapshot": newest["current-snapshot-id"], "inputs": {}, "pinned": True,
        "upstreams": {}, "starts": {}, "sources": {"source.lab.shop.events": {"path": "landing"}}, "begin": {}, "settled": {},
        "event_times": {"source.lab.shop.events": {"newest": "2026-01-01T00:00:00Z", "at": "2026-01-01T00:00:01Z"}}, "made": {}, "extracts": {}, "model": "m",
        "columns": ["id", "name"], "environment": {"project": "lab", "target": "dev", "schema": "s"},
    }  # fmt: skip
    begin = ".engine/state/lake/s/m/1"
    watermark = {"batchWatermarkMs": 0, "batchTimestampMs": 5, "conf": {"spark.sql.shuffle.partitions": "2"}}
    files |= {
        f"{begin}/model.json": json.dumps(state),
        f"{begin}/checkpoint/metadata": '{"id":"q"}',
        **{f"{begin}/checkpoint/offsets/{n}": f'v1\n{json.dumps(watermark)}\n{{"logOffset":0}}' for n in (0, 1)},
        **{f"{begin}/checkpoint/commits/{n}": 'v1\n{"nextBatchWatermarkMs":5}' for n in (0, 1)},
        f"{begin}/checkpoint/sources/0/0": f'v1\n{{"path":"file:{root}/landing/a.json","timestamp":5,"batchId":0}}',
    }
    write_files(root, files)
    return root


def project(root: Path) -> Path:
    """A small project, compiled, with the results of a run."""
    (root / "models").mkdir(parents=True)
    (root / "sources").mkdir()
    (root / "project.yml").write_text(
        "name: small\ntargets:\n  dev:\n    schema: small\n    catalog: {type: sqlite, name: lake, path: .engine/lake}\n"
    )
    (root / "sources/shop.yml").write_text(
        'sources:\n  - name: shop\n    tables:\n      - {name: events, format: json, path: landing, schema: "id int, at timestamp"}\n'
    )
    (root / "models/a.sql").write_text(
        "/*---\nmaterialized: table\n---*/\nselect id from {{ source('shop', 'events') }}\n"
    )
    (root / "models/b.sql").write_text(
        "/*---\nmaterialized: table\ndescription: x\ncolumns: {id: {description: y}}\n---*/\nselect id from {{ ref('a') }}\n"
    )
    assert invoke(["compile", "-q", "--project-dir", str(root)]) == 0
    results = [
        {
            "unique_id": f"model.small.{name}",
            "status": status,
            "execution_time": 1.0,
            "adapter_response": {"unchanged": False},
        }
        for name, status in (("a", "success"), ("b", "error"))
    ]
    known = {
        "metadata": {"invocation_started_at": "2026-11-24T00:00:00Z"}, "results": results,
        "args": {"which": "build", "target": "dev", "threads": 2, "vars": {}},
    }  # fmt: skip
    (root / "target/run_results.json").write_text(json.dumps(known))
    return root
