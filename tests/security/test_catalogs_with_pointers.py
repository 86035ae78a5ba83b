"""Hive, Glue, JDBC and local catalogs over one hostile table: its metadata choose no class, store, address or login."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.compile import Catalog
from engine.errors import SetupError
from engine.lake.catalog.catalog_settings import prepare
from engine.lake.clients import catalog_client, hive_register
from engine.lake.clients.catalog_client import client
from engine.lake.clients.table_removal import stored
from engine.lake.lake_reader import Lake
from tests.lab import writable_catalog
from tests.security.answering import Answering, answering, endless
from tests.security.test_hostile_catalogs import PLANTED, code_of
from tests.services import metastore

KINDS = ("sqlite", "hive", "glue", "rest")
HOSTILE = {
    "py-io-impl": "planted.Run",
    "py-catalog-impl": "planted.Run",
    "io-impl": "org.example.Run",
    "write.py-location-provider.impl": "planted.Run",
    "auth": "planted.Run",
    "s3.signer": "planted.Run",
    "s3.endpoint": "http://127.0.0.1:9",
    "DEFAULT_SCHEME": "s3",
    "DEFAULT_NETLOC": "elsewhere",
}


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process keeps its clients; a test has those of its own."""
    monkeypatch.setattr(catalog_client, "_clients", {})


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    mark = tmp_path / "ran"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "planted.py").write_text(PLANTED.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    return mark


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The metadata file of the table `s.base`, with two rows, whose properties are hostile."""
    lake = tmp_path / "lake"
    prepare(Catalog("sqlite", "lake", lake))
    catalog = writable_catalog(lake)
    catalog.create_namespace("s")
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    made = catalog.create_table("s.base", rows.schema)
    made.append(rows)
    path = Path(made.metadata_location.removeprefix("file://"))
    catalog.close()
    path.write_text(json.dumps({**json.loads(path.read_text()), "properties": HOSTILE}))
    return path


def glue_answers(tables: dict[str, dict[str, str]]) -> dict[str, Any]:
    """What AWS Glue answers; all requests go to one path, and a header has the operation."""

    def write(handler: Any) -> None:
        operation = handler.headers["X-Amz-Target"].rpartition(".")[2]
        asked = json.loads(server_body(handler))
        known = [{"Name": name, "DatabaseName": "s", "Parameters": found} for name, found in tables.items()]
        status, content = 200, {}
        if operation == "GetTables":
            content = {"TableList": known}
        elif operation == "GetDatabases":
            content = {"DatabaseList": [{"Name": "s"}]}
        elif asked["Name"] not in tables:
            status, content = 400, {"__type": "EntityNotFoundException", "Message": "not found"}
        elif operation == "DeleteTable":
            tables.pop(asked["Name"])
        else:
            content = {"Table": next(found for found in known if found["Name"] == asked["Name"])}
        data = json.dumps(content).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/x-amz-json-1.1")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return {"POST /": write}


def server_body(handler: Any) -> bytes:
    """What the request had, which the server has read already."""
    return bytes(handler.server.door.asked[-1].body)


GLUE = {
    "warehouse": "s3://bucket/tables", "client.region": "eu-central-1",
    "s3.access-key-id": "id", "s3.secret-access-key": "a-secret-key",
}  # fmt: skip


class Served:
    """A catalog of a kind that has the table, and what its server was asked."""

    def __init__(self, stack: ExitStack, kind: str, location: str, lake: Path) -> None:
        parameters = {"table_type": "ICEBERG", "metadata_location": location, **HOSTILE}
        self.server: Any = None
        if kind == "hive":
            self.server = stack.enter_context(metastore.running({("s", "base"): parameters}))
            self.catalog = Catalog("hive", "lake", lake, {"uri": self.server.uri})
        elif kind == "glue":
            self.server = stack.enter_context(answering(glue_answers({"base": parameters})))
            self.catalog = Catalog("glue", "lake", lake, {**GLUE, "glue.endpoint": self.server.url})
        elif kind == "rest":
            metadata = json.loads(Path(location.removeprefix("file://")).read_text())
            answers = {
                "GET /v1/config": {"defaults": HOSTILE, "overrides": HOSTILE},
                "GET /v1/namespaces/s/tables": {"identifiers": [{"namespace": ["s"], "name": "base"}]},
                "GET /v1/namespaces/s/tables/base": {
                    "metadata": metadata,
                    "config": HOSTILE,
                    "metadata-location": location,
                },
                "GET /v1/namespaces/s/tables/other": (404, {"error": {"type": "NoSuchTableException"}}),
            }
            self.server = stack.enter_context(answering(answers))
            self.catalog = Catalog("rest", "lake", lake, {"uri": self.server.url})
        else:
            self.catalog = Catalog("sqlite", "lake", lake.parent)


@pytest.mark.parametrize("kind", ["sqlite", "hive", "rest"])
def test_one_hostile_table_in_each_catalog(kind: str, table: Path, tmp_path: Path, mark: Path) -> None:
    with ExitStack() as stack:
        catalog = Served(stack, kind, table.as_uri(), tmp_path / "lake" / "warehouse").catalog
        lake = Lake(catalog)
        assert lake.names("s") == ("base",)
        facts = lake.table("s", "base")
        assert facts is not None
        assert facts.properties == HOSTILE
        assert lake.rows("s", "base", None) == (["id"], [(1,), (2,)])
        assert lake.count("s", "base") == 2
        assert lake.table("s", "other") is None
        (entry,) = client(catalog).entries("s")
        assert stored(catalog, entry).uuid == facts.uuid
    assert not mark.exists()


def test_a_hostile_table_of_glue(tmp_path: Path, mark: Path, table: Path) -> None:
    """Its metadata is an object, which another server answers with."""
    metadata = table.read_bytes()
    with ExitStack() as stack:
        store = stack.enter_context(answering({"GET /bucket/tables/s/base/v1.metadata.json": metadata}))
        served = Served(stack, "glue", "s3://bucket/tables/s/base/v1.metadata.json", tmp_path)
        keys = {**served.catalog.keys, "s3.endpoint": store.url, "s3.path-style-access": "true"}
        catalog = Catalog("glue", "lake", Path("/dev/null/nowhere"), keys)
        lake = Lake(catalog)
        assert lake.names("s") == ("base",)
        facts = lake.table("s", "base")
        assert facts is not None
        assert facts.properties == HOSTILE
        assert [c.name for c in lake.columns("s", "base") or ()] == ["id"]
        assert lake.table("s", "other") is None
        assert "a-secret-key" not in store.seen() + served.server.seen()
    assert not mark.exists()


OUTSIDE = ("file:///etc/passwd", "/etc/passwd", "http://127.0.0.1:9/x", "hdfs://elsewhere/x", "s3://other/x", "", "[")


@pytest.mark.parametrize("kind", ["hive", "glue"])
@pytest.mark.parametrize("location", OUTSIDE)
def test_a_pointer_out_of_the_warehouse_is_not_followed(kind: str, location: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        catalog = Served(stack, kind, location, tmp_path).catalog
        lake = Lake(catalog)
        if not location:
            assert lake.table("s", "base") is None
            return
        with pytest.raises(SetupError) as found:
            lake.table("s", "base")
        assert found.value.diagnostic.code == "lake-outside"


@pytest.mark.parametrize("kind", ["hive", "glue"])
def test_a_drop_removes_the_table_and_no_file_that_its_manifests_name(kind: str, table: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        catalog = Served(stack, kind, table.as_uri(), tmp_path / "lake" / "warehouse").catalog
        (entry,) = client(catalog).entries("s")
        assert client(catalog).remove(entry)
        assert not client(catalog).remove(entry)
        assert Lake(catalog).names("s") == ()
    assert len(list((tmp_path / "lake").rglob("*.parquet"))) == 1


def test_the_files_of_a_table_of_hive_go_with_it_and_those_of_others_stay(table: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        served = Served(stack, "hive", table.as_uri(), tmp_path / "lake" / "warehouse")
        (entry,) = client(served.catalog).entries("s")
        assert stored(served.catalog, entry).folder == table.parent.parent
        beside = {"table_type": "iceberg", "metadata_location": (table.parent / "v9.metadata.json").as_uri()}
        served.server.tables["other", "beside"] = beside
        assert "another table" in stored(served.catalog, entry).kept


ANSWERS = {
    "nothing": lambda stream: stream.write(b""),
    "noise": lambda stream: stream.write(b"\xff" * 1000),
    "an endless text": lambda stream: [stream.write(b"\x80\x01\x00\x02\x7f\xff\xff\xff"), *(stream.write(b"x" * 65536) for _ in range(1 << 14))],
    "a list of many": lambda stream: stream.write(
        metastore.reply("get_table", 1, b"\x0f\x00\x00\x0f\x7f\xff\xff\xff")
    ),
    "lists in lists": lambda stream: stream.write(
        metastore.reply("get_table", 1, b"\x0f\x00\x00" + b"\x0f\x00\x00\x00\x01" * 5000)
    ),
    "fields without end": lambda stream: [stream.write(b"\x80\x01\x00\x02" + metastore.text("get_table") + b"\0\0\0\1"), *(stream.write(b"\x02\x00\x01\x01" * 16384) for _ in range(1 << 12))],
    "another method": lambda stream: stream.write(metastore.reply("drop_table", 1, b"")),
    "no value": lambda stream: stream.write(metastore.reply("get_table", 1, b"")),
    "a byte at a time": lambda stream: [(stream.write(b"\x80"), time.sleep(0.1)) for _ in range(1000)],
    "silence": lambda _: time.sleep(30),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_what_no_metastore_answers_is_a_diagnostic(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive_register, "SECONDS", 2.0)
    with metastore.running() as server:
        server.answer = ANSWERS[case]
        started = time.monotonic()
        with pytest.raises(SetupError) as found:
            Lake(Catalog("hive", "lake", tmp_path, {"uri": server.uri})).table("s", "base")
        assert found.value.diagnostic.code in {"catalog-unusable", "catalog-unreachable"}
        assert time.monotonic() - started < 10


GLUE_ANSWERS = {
    "an endless body": endless(b" " * 65536),
    "a byte at a time": endless(b" ", pause=0.05),
    "not JSON": b"<html>",
    "a list": [1],
    "a text": "x",
    "another shape": {"Table": [5]},
    "tables that are none": {"TableList": {"a": 1}},
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("case", GLUE_ANSWERS)
def test_what_glue_does_not_answer_is_a_diagnostic(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.object_store.aws_client.ANSWER_SECONDS", 0.5)
    with answering({"POST /": GLUE_ANSWERS[case]}) as server:
        catalog = Catalog("glue", "lake", tmp_path, {**GLUE, "glue.endpoint": server.url})
        started = time.monotonic()
        for ask in (lambda: Lake(catalog).names("s"), lambda: Lake(catalog).table("s", "base")):
            found = code_of(ask)
            assert found in {"", "catalog-unusable", "catalog-unreachable"}
        assert time.monotonic() - started < 20


@pytest.fixture
def nobody() -> Iterator[Answering]:
    with answering() as found:
        yield found
    assert found.asked == []
