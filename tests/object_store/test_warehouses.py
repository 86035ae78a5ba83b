"""Which warehouses may be in an object store, what both clients are told of them, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from engine.errors import SetupError
from engine.lake.catalog import catalog_settings
from engine.lake.catalog.locations import OutsideError
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.lake.clients.catalog_errors import is_outage
from engine.object_store.s3_settings import S3Settings
from engine.runtime.spark_support.spark_errors import environment_fault_in
from tests.project.small_projects import compiled

STORE = {"endpoint": "https://store.example", "access_key_id": "a", "secret_access_key": "planted-secret"}
JDBC = {"type": "jdbc", "uri": "jdbc:postgresql://db/lake", "warehouse": "s3://bucket/lake"}


def result(root: Path, catalog: dict[str, str], *, store: bool = True) -> Any:
    target = {"schema": "a", "catalog": catalog, **({"s3": STORE} if store else {})}
    files = {"project.yml": f"name: shop\ntargets:\n  dev: {json.dumps(target)}\n", "models/m.sql": "select 1 as id\n"}
    return compiled(root, files)


@pytest.mark.parametrize(
    ("catalog", "file_io"),
    [
        ({"type": "sqlite", "warehouse": "s3a://bucket/lake/"}, "org.apache.iceberg.aws.s3.S3FileIO"),
        (JDBC, "org.apache.iceberg.aws.s3.S3FileIO"),
        # The server says how files are read; by default that is by their addresses.
        ({"type": "rest", "uri": "https://c.example", "warehouse": "shop"}, None),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_both_clients_get_the_login_of_the_store(tmp_path, catalog, file_io):
    made = result(tmp_path, catalog).target.catalog
    conf = catalog_settings.spark_conf(made)
    assert conf.get("spark.sql.catalog.lake.io-impl") == file_io
    assert conf["spark.sql.catalog.lake.s3.secret-access-key"] == "planted-secret"
    assert conf["spark.sql.catalog.lake.s3.endpoint"] == "https://store.example"
    assert catalog_settings.catalog_jars(made)[-1] == "s3"
    assert isinstance(catalog_settings.warehouse(made), ObjectWarehouse)
    if made.type != "sqlite":
        assert made.settings()["s3.secret-access-key"] == "planted-secret"
    else:
        assert conf["spark.sql.catalog.lake.warehouse"] == "s3://bucket/lake"


def test_keys_of_the_catalog_win_over_those_of_the_store(tmp_path):
    made = result(tmp_path, {**JDBC, "s3.endpoint": "https://other.example"}).target.catalog
    assert catalog_settings.spark_conf(made)["spark.sql.catalog.lake.s3.endpoint"] == "https://other.example"


def test_a_target_without_the_block_needs_no_further_jar(tmp_path):
    target = result(tmp_path, {"type": "sqlite"}, store=False).target
    assert catalog_settings.catalog_jars(target.catalog) == ()
    assert not any("s3" in key for key in catalog_settings.spark_conf(target.catalog))


@pytest.mark.parametrize(
    ("catalog", "found"),
    [
        ({"type": "sqlite", "warehouse": "s3://bucket/lake"}, "missing-key: 'warehouse' is in an object store, and the target has no 's3'"),
        (JDBC, "missing-key: 'warehouse' is in an object store, and the target has no 's3'"),
        ({"type": "sqlite", "warehouse": "lake"}, "bad-value: the 'warehouse' of a catalog of type sqlite is not 'lake'"),
        ({"type": "sqlite", "warehouse": "s3://"}, "bad-value: 's3://' has no bucket name"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_reported(tmp_path, catalog, found):
    errors = [f"{error.code}: {error.message}" for error in result(tmp_path, catalog, store=False).manifest.errors]
    assert errors == [found]


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket/lakes/x", "s3://bucket/lake/../x", "s3://other/lake/x", "file:///lake/x", "/bucket/lake/x", "s3:///lake/x",
        "s3://bucket/lake//x", "s3://bucket/lake/./x", "s3://bucket/lake/x\0", "s3://login@bucket/lake/x", "gs://bucket/lake/x",
    ],
)  # fmt: skip
def test_nothing_outside_the_warehouse_is_read(location):
    warehouse = ObjectWarehouse("s3://bucket/lake", S3Settings)
    with pytest.raises(OutsideError):
        warehouse.resolve(location)


def test_a_location_below_is_a_path_from_the_bucket():
    warehouse = ObjectWarehouse("s3://bucket/lake", S3Settings)
    assert warehouse.resolve("s3a://bucket/lake/a b/%20/") == PurePosixPath("/bucket/lake/a b/%20")
    assert ObjectWarehouse("s3://", S3Settings).resolve("s3://any/x") == PurePosixPath("/any/x")


AWAY = (
    "org.apache.iceberg.exceptions.RuntimeIOException: software.amazon.awssdk.core.exception.SdkClientException: "
    "Unable to execute HTTP request: Connect to http://127.0.0.1:9000 failed: Connection refused (SDK Attempt Count: 6)"
)
DENIED = (
    "java.nio.file.AccessDeniedException: s3a://b/x: getFileStatus on s3a://b/x: software.amazon.awssdk.services.s3.model."
    "S3Exception: The request signature does not match (Service: S3, Status Code: 403, Request ID: 4)"
)
EXPIRED = (
    "software.amazon.awssdk.services.s3.model.S3Exception: The provided token has expired. "
    "(Service: S3, Status Code: 400, Request ID: 4) (SDK Attempt Count: 1)"
)
BUSY = "S3Exception: Please reduce your request rate. (Service: S3, Status Code: 503, Request ID: 1)"
BUCKET = "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/x': The specified bucket does not exist"


@pytest.mark.parametrize(
    ("text", "code", "outage"),
    [
        (AWAY, "s3-unreachable", True),
        (BUSY, "s3-unreachable", True),
        (DENIED, "s3-denied", False),
        (EXPIRED, "s3-denied", False),
        (BUCKET, "s3-missing", False),
    ],
)
def test_errors_of_java_are_of_the_store(text, code, outage):
    found = environment_fault_in(text)
    assert found is not None
    assert found.code == code
    assert is_outage(text) is outage


def test_without_botocore_the_extra_is_named(monkeypatch):
    import sys

    from engine.object_store import s3_client

    monkeypatch.setitem(sys.modules, "botocore.session", None)
    s3_client.s3_client.cache_clear()
    with pytest.raises(SetupError) as missing:
        s3_client.s3_client(S3Settings())
    assert missing.value.diagnostic.code == "s3-client"
    assert "botocore" in missing.value.diagnostic.hint
