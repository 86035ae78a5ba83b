"""Catalogs of servers that a stranger answers for: what they say chooses no class, no endpoint and no login."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Catalog
from engine.errors import SetupError
from engine.lake.clients import catalog_client, rest_session
from engine.lake.clients.catalog_client import CatalogClient, check_before_java, client
from engine.lake.lake_reader import Lake
from tests.security.answering import Answering, answering, endless, redirect

pytestmark = pytest.mark.slow

LOGIN = "shop:s3cret-of-the-catalog"
TOKEN = {"access_token": "issued-token", "token_type": "bearer", "expires_in": 60}
VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
METADATA: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/s/base",
    "last-sequence-number": 0,
    "last-updated-ms": 1602638573590,
    "last-column-id": 1,
    "current-schema-id": 0,
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "int"}]}
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "properties": {},
    "current-snapshot-id": -1,
    "refs": {},
    "snapshots": [],
    "snapshot-log": [],
    "metadata-log": [],
}
PLANTED = """
from pathlib import Path
Path({mark!r}).touch()
class Run:
    def __init__(self, *_, **__): Path({mark!r}).touch()
"""


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process keeps its clients; a test has those of its own."""
    monkeypatch.setattr(catalog_client, "_clients", {})


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering(whole()) as found:
        yield found


@pytest.fixture
def elsewhere() -> Iterator[Answering]:
    """Another server, which nobody named."""
    with answering(whole()) as found:
        yield found


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that `planted.Run` makes: a module that can be imported from here."""
    mark = tmp_path / "ran"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "planted.py").write_text(PLANTED.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    return mark


def whole(**config: Any) -> dict[str, Any]:
    """The answers of a server with the table `s.base`."""
    return {
        "GET /v1/config": {"defaults": {}, "overrides": {}, **config},
        "POST /v1/oauth/tokens": TOKEN,
        "GET /v1/namespaces/s/tables": {"identifiers": [{"namespace": ["s"], "name": "base"}]},
        "GET /v1/namespaces/s/tables/base": {"metadata-location": "s3://bucket/s/base/v1.json", "metadata": METADATA},
    }


def rest(server: Answering, **keys: str) -> Catalog:
    return Catalog("rest", "lake", Path("/nowhere"), {"uri": server.url, **keys})


def asked(catalog: Catalog) -> CatalogClient:
    """A client that has been asked for a table."""
    found = client(catalog)
    assert [*found.names("s")] == ["base"]
    assert found.table("s", "base") is not None
    return found


def code_of(ask: Callable[[], object]) -> str:
    """The code of the error that a question ends with; empty: it has an answer."""
    try:
        ask()
    except SetupError as error:
        return error.diagnostic.code
    return ""


CODE = {
    "auth": {"type": "custom", "impl": "planted.Run", "custom": {"args": "x"}},
    "auth.manager": "planted.Run",
    "py-io-impl": "planted.Run",
    "py-catalog-impl": "planted.Run",
    "ssl": {"cabundle": "/etc/passwd", "client": {"cert": "/etc/passwd"}},
    "s3.signer": "planted.Run",
    "rest.sigv4-enabled": "true",
    "client.botocore-session": "planted.Run",
    "snapshot-loading-mode": {"a": 1},
    "view-endpoints-supported": ["planted.Run"],
    "namespace-separator": {"a": 1},
    "prefix": ["a"],
    "type": "planted.Run",
}


@pytest.mark.parametrize("part", ["defaults", "overrides"])
@pytest.mark.parametrize("key", CODE)
def test_the_configuration_of_a_server_runs_no_code(server: Answering, mark: Path, key: str, part: str) -> None:
    server.answers |= whole(**{part: {key: CODE[key]}})
    found = code_of(lambda: asked(rest(server)))
    # A key that a server may set, with something else than text, is an error.
    assert found in ({""} if isinstance(CODE[key], str) else {"", "catalog-unusable"})
    assert not mark.exists()


@pytest.mark.parametrize("part", ["defaults", "overrides"])
@pytest.mark.parametrize("key", ["uri", "oauth2-server-uri", "s3.endpoint", "rest.client.proxy.hostname"])
def test_the_configuration_of_a_server_sends_nothing_elsewhere(
    server: Answering, elsewhere: Answering, key: str, part: str
) -> None:
    server.answers |= whole(**{part: {key: elsewhere.url}})
    asked(rest(server, credential=LOGIN))
    assert elsewhere.asked == []
    assert "s3cret-of-the-catalog" in server.seen()


@pytest.mark.parametrize("key", ["token", "credential", "header.Authorization", "scope", "audience"])
def test_the_configuration_of_a_server_changes_no_login(server: Answering, key: str) -> None:
    server.answers |= whole(overrides={key: "Bearer of-the-server"})
    asked(rest(server, token="of-the-target"))
    assert "of-the-server" not in server.seen()
    assert all(request.headers["Authorization"] == "Bearer of-the-target" for request in server.asked)


# By key: what a server may not choose for Java, which takes the server's word before the target's.
STEERING = {
    "uri": "https://elsewhere.example",
    "oauth2-server-uri": "https://elsewhere.example/tokens",
    "io-impl": "org.example.Run",
    "metrics-reporter-impl": "org.example.Run",
    # Classes without a package, or in lower case.
    "rest-metrics-reporter": "Run",
    "s3.crt-factory": "run",
    "s3.credentials.provider": "org.example.run",
    "rest.auth.type": "org.example.Run",
    "rest.client.tls.configurer-impl": "org.example.Run",
    "client.factory": "org.example.Run",
    "s3.client-factory-impl": "org.example.Run",
    "client.credentials-provider": "org.example.Run",
    "encryption.kms-impl": "org.example.Run",
    "adls.token-credential-provider": "org.example.Run",
    "catalog-impl": "org.example.Run",
    "a-key-of-tomorrow": "org.example.Run",
    "an-address-of-tomorrow": "http://elsewhere.example",
    "header.Authorization": "Bearer x",
    "token": "x",
    "credential": "x",
    "rest.sigv4-enabled": "true",
    "rest.signing-name": "s3",
    "client.assume-role.arn": "arn:aws:iam::1:role/x",
    "rest.client.proxy.hostname": "elsewhere.example",
    "http-client.proxy-endpoint": "http://elsewhere.example",
    "s3.endpoint": "http://elsewhere.example",
    "sts.endpoint": "elsewhere.example/path",
    "gcs.service.host": "https://elsewhere.example",
    "signer.uri": "https://elsewhere.example",
    "s3.staging-dir": "/home/me",
    "warehouse": "hdfs://elsewhere.example/tables",
    "rest-page-length": 5,
    "prefixes": {"a": "b"},
}
# What real servers send (Polaris, Lakekeeper, Nessie, S3 tables), at a server of this machine.
HARMLESS = {
    "prefix": "main",
    "warehouse": "s3://bucket/tables",
    "default-base-location": "s3://bucket/tables/",
    "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "s3.path-style-access": "true",
    "s3.region": "eu-central-1",
    "client.region": "eu-central-1",
    "rest-metrics-reporting-enabled": "false",
    "s3.remote-signing-enabled": "false",
    "s3.signer.endpoint": "v1/main/aws/s3/sign",
    "client.refresh-credentials-endpoint": "v1/main/namespaces/s/tables/base/credentials",
    "polaris.config.drop-with-purge.enabled": "true",
    "nessie.is-nessie-catalog": "true",
    "nessie.default-branch.name": "main",
}
OF_A_TABLE = {
    **HARMLESS,
    "token": "one of the server's",
    "s3.endpoint": "https://minio.example:9000",
    "s3.access-key-id": "a",
    "s3.secret-access-key": "b",
    "s3.session-token": "c",
    "s3.session-token-expires-at-ms": "1700000000000",
}


@pytest.mark.parametrize(
    ("part", "key"), [(p, k) for p in ("defaults", "overrides") for k in STEERING if p + k != "defaultsuri"]
)
def test_java_is_not_started_where_a_server_would_steer_it(server: Answering, part: str, key: str) -> None:
    server.answers |= whole(**{part: {key: STEERING[key]}})
    found = asked(rest(server))
    with pytest.raises(SetupError) as error:
        check_before_java(rest(server))
    assert error.value.diagnostic.code == "catalog-unusable"
    assert f"'{key}'" in str(error.value)
    assert found is client(rest(server))


def test_a_default_that_the_target_sets_too_chooses_nothing(server: Answering) -> None:
    server.answers |= whole(defaults={"oauth2-server-uri": "https://elsewhere.example/tokens"})
    check_before_java(rest(server, **{"oauth2-server-uri": f"{server.url}/v1/oauth/tokens"}))


@pytest.mark.parametrize("key", sorted({*STEERING} - {"token"}))
def test_nor_where_the_config_of_a_table_would(server: Answering, key: str) -> None:
    server.answers["GET /v1/namespaces/s/tables/base"] = {"metadata": METADATA, "config": {key: STEERING[key]}}
    asked(rest(server))
    with pytest.raises(SetupError) as error:
        check_before_java(rest(server))
    assert f"'{key}'" in str(error.value)
    assert "s.base" in str(error.value)


def test_nor_where_a_login_for_files_would_and_later_tables_are_checked_too(server: Answering) -> None:
    check_before_java(rest(server))
    hostile = [{"prefix": "s3://", "config": {"client.factory": "org.example.Run"}}]
    server.answers["GET /v1/namespaces/s/tables/base"] = {"metadata": METADATA, "storage-credentials": hostile}
    with pytest.raises(SetupError) as error:
        asked(rest(server))
    assert "'client.factory'" in str(error.value)


def test_java_is_started_with_what_real_servers_send(server: Answering) -> None:
    of_server = {**HARMLESS, "uri": f"{server.url}/catalog", "oauth2-server-uri": "v1/oauth/tokens"}
    of_server.pop("prefix")
    server.answers |= whole(overrides=of_server)
    server.answers["GET /v1/namespaces/s/tables/base"] = {"metadata": METADATA, "config": OF_A_TABLE}
    asked(rest(server))
    check_before_java(rest(server))


def test_what_a_server_may_choose_counts(server: Answering) -> None:
    server.answers = {
        key.replace("/v1/namespaces/s/", "/v1/main/a/namespaces/s%1Ft/"): value
        for key, value in whole(overrides={"prefix": "main/a"}, endpoints=[VIEWS]).items()
    }
    found = client(rest(server))
    assert [*found.names("s.t")] == ["base"]
    assert found.view("s.t", "base") is None
    assert any("/views/base" in request.path for request in server.asked)


@pytest.mark.parametrize(
    "prefix", ["../admin", "a/../../b", "//host/a", "a?b=c", "a#b", "a b", "a\r\nX: y", "https://h"]
)
def test_a_prefix_leads_to_no_other_place(server: Answering, prefix: str) -> None:
    server.answers |= whole(overrides={"prefix": prefix})
    with pytest.raises(SetupError) as found:
        client(rest(server)).names("s")
    assert found.value.diagnostic.code == "catalog-unusable"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "begin",
    ["GET /v1/config", "POST /v1/oauth/tokens", "GET /v1/namespaces/s/tables", "GET /v1/namespaces/s/tables/base"],
)
def test_a_redirect_is_not_followed(server: Answering, elsewhere: Answering, begin: str, status: int) -> None:
    server.answers[begin] = redirect(f"{elsewhere.url}/v1/config", status)
    with pytest.raises(SetupError) as found:
        asked(rest(server, credential=LOGIN))
    assert found.value.diagnostic.code in {"catalog-unusable", "catalog-denied"}
    assert elsewhere.asked == []


UNBOUNDED = {
    "an endless body": endless(b" " * 65536),
    "a byte at a time": endless(b" ", pause=0.05),
    "gzip that unpacks to much": None,
    "values without number": b"[" + b"[]," * 8_000_000 + b"[]]",
    "deep": b"[" * 200_000 + b"]" * 200_000,
    "a long number": b'{"identifiers": ' + b"9" * 100_000 + b"}",
    "not JSON": b"<html>",
    "a list": [1],
    "a text": "x",
    "an encoding that nobody asked for": endless(b"x", headers={"Content-Encoding": "br"}, limit=100),
}


def _bomb() -> Any:
    """A hundred megabytes of blanks, packed."""
    import gzip

    packed = gzip.compress(b" " * 100_000_000)
    return endless(packed, headers={"Content-Encoding": "gzip", "Content-Length": str(len(packed))}, limit=len(packed))


@pytest.mark.nightly_cases(
    "gzip that unpacks to much-POST /v1/oauth/tokens", "gzip that unpacks to much-GET /v1/namespaces/s/tables"
)
@pytest.mark.parametrize("begin", ["GET /v1/config", "POST /v1/oauth/tokens", "GET /v1/namespaces/s/tables"])
@pytest.mark.parametrize("case", UNBOUNDED)
def test_an_answer_without_bounds_is_a_diagnostic(
    server: Answering, case: str, begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_session, "SECONDS", 2.0)
    server.answers[begin] = UNBOUNDED[case] or _bomb()
    started = time.monotonic()
    with pytest.raises(SetupError) as found:
        client(rest(server, credential=LOGIN)).names("s")
    assert found.value.diagnostic.code.startswith("catalog-")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("answer", [
    {"identifiers": [{"name": 5}]}, {"identifiers": 5}, {"identifiers": [5]}, {"identifiers": [], "next-page-token": [1]},
    {"identifiers": [], "next-page-token": "\ud800"}, {"identifiers": [{"name": "\udfff"}]},
])  # fmt: skip
def test_a_list_of_names_is_one(server: Answering, answer: Any) -> None:
    server.answers["GET /v1/namespaces/s/tables"] = answer
    with pytest.raises(SetupError) as found:
        client(rest(server)).names("s")
    assert found.value.diagnostic.code == "catalog-unusable"


def test_a_list_of_endless_pages_ends(server: Answering) -> None:
    numbers = iter(range(10**9))

    def page(handler: Any) -> None:
        number = next(numbers)
        body = json.dumps({"identifiers": [{"name": f"t{number}"}], "next-page-token": str(number)}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    server.answers["GET /v1/namespaces/s/tables"] = page
    with pytest.raises(SetupError) as found:
        client(rest(server)).names("s")
    assert "pages" in str(found.value)


def test_the_config_of_a_table_is_not_used(server: Answering, elsewhere: Answering, mark: Path) -> None:
    hostile = {"py-io-impl": "planted.Run", "s3.endpoint": elsewhere.url, "token": "t", "uri": elsewhere.url}
    metadata = {**METADATA, "properties": hostile}
    server.answers["GET /v1/namespaces/s/tables/base"] = {
        "metadata": metadata,
        "config": hostile,
        "storage-credentials": [{"prefix": "s3://", "config": hostile}],
    }
    lake = Lake(rest(server))
    assert lake.table("s", "base") is not None
    assert [column.name for column in lake.columns("s", "base") or ()] == ["id"]
    assert not mark.exists()
    assert elsewhere.asked == []
