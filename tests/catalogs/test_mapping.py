"""One catalog block: what Spark gets of it, against the documentation of each service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.errors import ProjectError
from engine.lake.catalog.catalog_settings import catalog_jars, spark_conf
from engine.lake.clients.postgres_catalog import postgres_parameters
from tests.project.small_projects import compiled

RENEWED = {"token-exchange-enabled": "false"}
REST = {"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "60000"}
JDBC = {
    "jdbc.schema-version": "V1", "jdbc.loginTimeout": "10", "jdbc.socketTimeout": "60", "jdbc.tcpKeepAlive": "true",
}  # fmt: skip


@dataclass(frozen=True)
class Service:
    """A catalog as a target has it, and the settings of Spark beside its own keys."""

    written: str
    spark: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)


SERVICES = {
    "postgres": Service(
        "{type: jdbc, uri: 'jdbc:postgresql://db.example:5433/lake', jdbc.user: shop, "
        "jdbc.password: \"{{ env_var('ENGINE_SECRET_PG') }}\", warehouse: /srv/warehouse}",
        {
            "type": "jdbc", "uri": "jdbc:postgresql://db.example:5433/lake", "jdbc.user": "shop",
            "jdbc.password": "pass:word/1", "warehouse": "file:///srv/warehouse", **JDBC,
        },
        {"ENGINE_SECRET_PG": "pass:word/1"},
    ),
    "rest": Service(
        "{type: rest, uri: 'http://127.0.0.1:8181', token: \"{{ env_var('ENGINE_SECRET_TOKEN') }}\"}",
        {"type": "rest", "uri": "http://127.0.0.1:8181", "token": "a-token", **REST},
        {"ENGINE_SECRET_TOKEN": "a-token"},
    ),
    "nessie": Service(
        "{type: rest, uri: 'http://nessie:19120/iceberg/main', warehouse: tables}",
        {"type": "rest", "uri": "http://nessie:19120/iceberg/main", "warehouse": "tables", **REST},
    ),
    "polaris": Service(
        "{type: rest, uri: 'https://polaris.example/api/catalog', warehouse: shop, scope: 'PRINCIPAL_ROLE:ALL', "
        "credential: \"{{ env_var('ENGINE_SECRET_ID') }}:{{ env_var('ENGINE_SECRET_KEY') }}\", "
        "header.X-Iceberg-Access-Delegation: vended-credentials}",
        {
            "type": "rest", "uri": "https://polaris.example/api/catalog", "warehouse": "shop", "scope": "PRINCIPAL_ROLE:ALL",
            "credential": "client:s3cret", "header.X-Iceberg-Access-Delegation": "vended-credentials", **REST, **RENEWED,
        },
        {"ENGINE_SECRET_ID": "client", "ENGINE_SECRET_KEY": "s3cret"},
    ),
    "lakekeeper": Service(
        "{type: rest, uri: 'https://lakekeeper.example/catalog', warehouse: shop, scope: lakekeeper, "
        "oauth2-server-uri: 'https://login.example/realms/iceberg/protocol/openid-connect/token', "
        "credential: \"spark:{{ env_var('ENGINE_SECRET_KEY') }}\"}",
        {
            "type": "rest", "uri": "https://lakekeeper.example/catalog", "warehouse": "shop", "scope": "lakekeeper",
            "oauth2-server-uri": "https://login.example/realms/iceberg/protocol/openid-connect/token",
            "credential": "spark:s3cret", **REST, **RENEWED,
        },
        {"ENGINE_SECRET_KEY": "s3cret"},
    ),
    "unity": Service(
        "{type: rest, uri: 'https://ws.example/api/2.1/unity-catalog/iceberg-rest', warehouse: main, "
        "oauth2-server-uri: 'https://ws.example/oidc/v1/token', scope: all-apis, "
        "credential: \"sp:{{ env_var('ENGINE_SECRET_KEY') }}\"}",
        {
            "type": "rest", "uri": "https://ws.example/api/2.1/unity-catalog/iceberg-rest", "warehouse": "main",
            "oauth2-server-uri": "https://ws.example/oidc/v1/token", "scope": "all-apis", "credential": "sp:s3cret", **REST, **RENEWED,
        },
        {"ENGINE_SECRET_KEY": "s3cret"},
    ),
    "s3 tables over REST, a store of one's own": Service(
        "{type: rest, uri: 'https://glue.us-east-1.example/iceberg', warehouse: '1234:s3tablescatalog/b', "
        "rest.sigv4-enabled: true, rest.signing-name: glue, rest.signing-region: us-east-1, "
        "io-impl: org.apache.iceberg.aws.s3.S3FileIO, s3.endpoint: 'http://127.0.0.1:9000', s3.path-style-access: true}",
        {
            "type": "rest", "uri": "https://glue.us-east-1.example/iceberg", "warehouse": "1234:s3tablescatalog/b",
            "rest.sigv4-enabled": "true", "rest.signing-name": "glue", "rest.signing-region": "us-east-1",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": "http://127.0.0.1:9000",
            "s3.path-style-access": "true", **REST,
        },
    ),
}  # fmt: skip


def target_with(tmp_path: Path, catalog: str, env: Mapping[str, str] | None = None) -> object:
    files = {"project.yml": f"name: shop\ntargets:\n  dev:\n    schema: shop\n    catalog: {catalog}\n"}
    return compiled(tmp_path, files, env=dict(env or {}))


@pytest.mark.parametrize("name", SERVICES)
def test_spark_gets_what_the_service_documents(name: str, tmp_path: Path) -> None:
    service = SERVICES[name]
    result = target_with(tmp_path, service.written, service.env)
    assert [str(found) for found in result.manifest.errors] == []
    catalog = result.target.catalog
    prefix = "spark.sql.catalog.lake"
    conf = spark_conf(catalog)
    assert conf.pop("spark.sql.catalog.default_rewrite_catalog")
    assert conf.pop(prefix) == "org.apache.iceberg.spark.SparkCatalog"
    inner = {key.removeprefix(f"{prefix}."): value for key, value in conf.items()}
    assert inner == {"cache-enabled": "false", **service.spark}
    assert catalog_jars(catalog) == (("postgres",) if catalog.type == "jdbc" else ())
    for secret in service.env.values():
        assert secret not in repr(catalog)


@pytest.mark.parametrize(("uri", "keys", "expected"), [
    ("jdbc:postgresql://h/d", {}, {"host": "h", "port": "5432", "dbname": "d"}),
    ("jdbc:postgresql://h:1/d?ssl=true", {}, {"host": "h", "port": "1", "dbname": "d", "sslmode": "verify-full"}),
    ("jdbc:postgresql://h:1/d?sslmode=require&sslrootcert=/ca.pem", {},
     {"host": "h", "port": "1", "dbname": "d", "sslmode": "require", "sslrootcert": "/ca.pem"}),
    ("jdbc:postgresql://[::1]:1/d?currentSchema=iceberg", {"jdbc.user": "u"},
     {"host": "::1", "port": "1", "dbname": "d", "user": "u", "options": "-c search_path=iceberg"}),
])  # fmt: skip
def test_postgres_is_reached_alike_by_both_drivers(uri: str, keys: dict[str, str], expected: dict[str, str]) -> None:
    assert postgres_parameters({"uri": uri, **keys}) == expected


@pytest.mark.parametrize(("written", "code", "part"), [
    ("{type: nessie, uri: x}", "not-supported", "REST endpoint"),
    ("{type: postgres}", "not-supported", "jdbc:postgresql://"),
    ("{type: polaris}", "not-supported", "docs/catalogs.md"),
    ("{type: rst}", "bad-value", "Did you mean 'rest'"),
    ("{type: rest}", "missing-key", "Add uri"),
    ("{type: jdbc, uri: 'jdbc:postgresql://h/d'}", "missing-key", "Add warehouse"),
    ("{type: rest, uri: 'ftp://h'}", "bad-value", "https://<host>"),
    ("{type: jdbc, uri: 'jdbc:mysql://h/d', warehouse: /w}", "bad-value", "PostgreSQL"),
    ("{type: jdbc, uri: 'postgresql://h/d', warehouse: /w}", "bad-value", "jdbc:postgresql://"),
    ("{type: rest, uri: 'https://me:word@h/'}", "bad-value", "credential"),
    ("{type: rest, uri: 'https://h', credentials: x}", "unknown-key", "'credential'"),
    ("{type: sqlite, uri: 'https://h'}", "unknown-key", "It is for"),
    ("{type: rest, uri: 'https://h', py-io-impl: x}", "unknown-key", ""),
    ("{type: rest, uri: 'https://h', warehouse: \"{{ env_var('ENGINE_SECRET_X') }}\"}", "secret-misplaced", ""),
])  # fmt: skip
def test_a_wrong_block_is_a_finding_at_its_place(written: str, code: str, part: str, tmp_path: Path) -> None:
    result = target_with(tmp_path, written)
    found = [error for error in result.manifest.errors if error.code == code]
    assert found, [str(error) for error in result.manifest.errors]
    assert found[0].location is not None
    assert (found[0].location.file, found[0].location.line) == ("project.yml", 5)
    assert part in found[0].hint


def test_a_secret_that_is_not_set_is_an_error_when_it_is_used(tmp_path: Path) -> None:
    result = target_with(tmp_path, SERVICES["rest"].written)
    assert not result.manifest.errors
    with pytest.raises(ProjectError, match="ENGINE_SECRET_TOKEN"):
        result.target.catalog.settings()


@pytest.mark.parametrize(
    ("schema", "fine"), [("a.b", True), ("a", True), ("a..b", False), ("a.B-c", False), (".a", False)]
)
def test_a_schema_may_have_levels(schema: str, fine: bool, tmp_path: Path) -> None:
    result = compiled(tmp_path, {"project.yml": f"name: shop\ntargets: {{dev: {{schema: '{schema}'}}}}\n"})
    assert ([error.code for error in result.manifest.errors] == []) is fine
    if fine:
        assert result.target.schema == schema


def test_a_value_that_java_would_take_from_the_environment_is_rejected(tmp_path: Path) -> None:
    written = "{type: rest, uri: 'http://127.0.0.1:1', header.X: 'env:ENGINE_SECRET_PROD_DB'}"
    found = target_with(tmp_path, written).manifest.errors
    assert [error.diagnostic.code if hasattr(error, "diagnostic") else error.code for error in found] == ["bad-value"]
