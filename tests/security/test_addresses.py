"""Addresses of a target: what programs read differently is rejected, and trust is asked for the server connected to."""

from __future__ import annotations

import random
import ssl
import urllib.error
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.addresses import AddressError, postgres_address, punycode, token_address, web_address
from engine.bounds import http_exchange
from engine.bounds.http_exchange import OtherServerError, exchange
from engine.compile import Catalog
from engine.errors import ProjectError, SetupError
from engine.lake.catalog.server_settings import rejected_key
from engine.lake.clients import catalog_client
from engine.lake.clients.rest_session import RestSession
from engine.object_store.s3_client import aws_client
from engine.object_store.s3_settings import S3Settings
from engine.secrets import machine_logins
from engine.secrets.secret_places import Gift, places
from engine.secrets.trusted_projects import confirm
from tests.fixtures import read_lists, read_rows
from tests.lab import Lab
from tests.project.small_projects import compiled
from tests.security import fuzz_addresses
from tests.security.answering import answering
from tests.security.fuzz_addresses import recorded
from tests.security.random_addresses import random_address

SECRET = "planted-production-password"
SECRET_OF = "\"{{ env_var('ENGINE_SECRET_PROD_DB') }}\""
PROJECT = "name: lab\ntargets:\n  dev:\n    schema: s\n    {}\n"
ADDRESSES = Path(__file__).with_name("addresses.txt")
DISGUISED = read_lists(ADDRESSES)["disguised"]
# A block with an address, and the key that has it.
PLACES = {
    "catalog": (f'catalog: {{{{type: rest, token: {SECRET_OF}, uri: "{{}}"}}}}', "uri"),
    "token endpoint": (
        f'catalog: {{{{type: rest, credential: {SECRET_OF}, uri: "http://good.example", oauth2-server-uri: "{{}}"}}}}',
        "oauth2-server-uri",
    ),
    "registry": (f'schema_registries: {{{{main: {{{{auth: {{{{token: {SECRET_OF}}}}}, url: "{{}}"}}}}}}}}', "url"),
    "openlineage": (f'openlineage: {{{{type: http, api_key: {SECRET_OF}, url: "{{}}"}}}}', "url"),
    "alerts": (f'alerts: {{{{token: {SECRET_OF}, lag: 10 minutes, url: "{{}}"}}}}', "url"),
    "s3": (f's3: {{{{access_key_id: a, secret_access_key: {SECRET_OF}, endpoint: "{{}}"}}}}', "endpoint"),
}


@pytest.fixture(autouse=True)
def untrusting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENGINE_TRUST", "good.example,http://good.example")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ENGINE_SECRET_PROD_DB", SECRET)
    monkeypatch.setattr(catalog_client, "_clients", {})


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    lab = Lab(tmp_path / "project", None, capsys)
    lab.model("base", "/*---\nmaterialized: table\n---*/\nselect 1 as id")
    return lab


# A login may be in these addresses, and the host is the one that trust is asked for.
LOGINS = ("registry", "openlineage")
DECLARED = [
    (place, written) for place in PLACES for written in DISGUISED
    if not (place in LOGINS and written.startswith("http://") and written.endswith(("@evil.example/", "%2f@good.example/")))
]  # fmt: skip


@pytest.mark.parametrize(("place", "written"), DECLARED)
def test_a_disguised_address_is_rejected_where_it_is_declared(place: str, written: str, tmp_path: Path) -> None:
    block, key = PLACES[place]
    text = PROJECT.format(block.format(written))
    errors = compiled(tmp_path, {"project.yml": text}, env={"ENGINE_SECRET_PROD_DB": SECRET}).manifest.errors
    found = [error for error in errors if error.code == "bad-value"]
    assert found, errors
    location = found[0].location
    assert location is not None
    line = text.splitlines()[4]
    assert (location.file, location.line) == ("project.yml", 5)
    assert line[location.column - 1 :].startswith(f'"{written}')
    assert found[0].hint
    assert key in found[0].message


COMMANDS = (("plan",), ("debug",), ("docs", "generate"), ("show", "base", "--table"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("written", [DISGUISED[0], DISGUISED[3], DISGUISED[6]])
@pytest.mark.parametrize("place", ["catalog", "token endpoint"])
def test_no_command_looks_up_the_host_of_a_disguised_address(
    lab: Lab, place: str, written: str, command: tuple[str, ...]
) -> None:
    lab.write("project.yml", PROJECT.format(PLACES[place][0].format(written)))
    with recorded() as hosts:
        lab.run(*command)
    assert {host for host, _ in hosts} <= {"good.example"}


def test_a_network_path_sends_the_login_to_nobody(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """`urljoin` makes the second host the one that gets the client's secret."""
    with answering() as good, answering() as evil:
        host = good.url.removeprefix("http://")
        monkeypatch.setenv("ENGINE_TRUST", host)
        written = f"//{evil.url.removeprefix('http://')}/token?x=http://{host}"
        block = f'catalog: {{type: rest, credential: {SECRET_OF}, uri: "{good.url}", oauth2-server-uri: "{written}"}}'
        lab.write("project.yml", PROJECT.format(block))
        for command in COMMANDS:
            lab.run(*command)
        assert evil.asked == []


def test_a_client_connects_to_no_address_that_is_not_checked(tmp_path: Path) -> None:
    """Whoever gives a client the address of a target that was never compiled."""
    for written in (
        "//evil.example/token?x=http://good.example",
        "http://good.example\n.evil.example",
        "http://g\u043ed.example",
    ):
        for keys in (
            {"uri": written, "token": "x"},
            {"uri": "http://good.example", "oauth2-server-uri": written, "credential": "a:b"},
        ):
            with recorded() as hosts, pytest.raises(SetupError):
                RestSession(Catalog("rest", "lake", tmp_path, keys))
            assert hosts == set()


@pytest.mark.parametrize(("text", "fault"), [
    ("http://good.example\n.evil", "contains a line break"),
    ("http://good.example .evil", "contains a blank"),
    ("http://good.example\xa0.evil", "contains no-break space (U+00A0)"),
    ("http://good.example\x00.evil", "contains a control character (U+0000)"),
    ("http://g\u043e\u043ed.example/x", "contains cyrillic small letter o (U+043E), and its host is xn--gd-fmca.example"),
    ("http://me:pw@g\u043e\u043ed.example:80/x", "its host is xn--gd-fmca.example"),
    ("http://good.example/\u00fc", "contains latin small letter u with diaeresis (U+00FC)"),
    ("//good.example", "does not begin with http:// or https://"),
    ("http://127.1", "has a host in numbers"),
    ("http://[::ffff:10.0.0.1]", "which is to be written as 10.0.0.1"),
    ("https://h/x#y", "contains #"),
])  # fmt: skip
def test_what_is_wrong_is_said_without_the_text(text: str, fault: str) -> None:
    with pytest.raises(AddressError) as found:
        web_address(text, login=True)
    assert fault in str(found.value)
    assert "pw" not in str(found.value)


@pytest.mark.parametrize(("host", "expected"), [
    ("good.example", "good.example"), ("g\u043e\u043ed.example", "xn--gd-fmca.example"), ("b\u00fccher.example", "xn--bcher-kva.example"),
])  # fmt: skip
def test_look_alikes_are_shown_in_punycode(host: str, expected: str) -> None:
    assert punycode(host) == expected


# Address, the place that trust is asked for, and the URL that is sent.
SAME = (
    ("https://Good.Example", "good.example", "https://good.example"),
    ("HTTPS://good.example:443/x", "good.example", "https://good.example/x"),
    ("https://good.example:8443", "good.example:8443", "https://good.example:8443"),
    ("https://good.example:80", "good.example:80", "https://good.example:80"),
    ("https://good.example.", "good.example.", "https://good.example."),
    ("http://good.example", "http://good.example", "http://good.example"),
    ("http://good.example:80", "http://good.example", "http://good.example"),
    ("http://good.example:443", "http://good.example:443", "http://good.example:443"),
    ("http://127.0.0.1:8181", "127.0.0.1:8181", "http://127.0.0.1:8181"),
    ("http://127.0.0.1", "127.0.0.1:80", "http://127.0.0.1"),
    ("https://127.0.0.1", "https://127.0.0.1", "https://127.0.0.1"),
    ("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]", "http://[2001:db8::1]/"),
    ("https://[2001:DB8:0::1]", "[2001:db8::1]", "https://[2001:db8::1]"),
    ("https://user:p%40ss@good.example", "good.example", "https://good.example"),
    ("https://xn--gd-fmca.example", "xn--gd-fmca.example", "https://xn--gd-fmca.example"),
)


@pytest.mark.parametrize(("text", "place", "sent"), SAME)
def test_one_server_has_one_name(text: str, place: str, sent: str) -> None:
    assert places({"url": text}, "block") == (place,)
    assert str(web_address(text, login=True)) == sent


def test_no_two_servers_have_the_same_name() -> None:
    hosts = ("good.example", "good.example.", "127.0.0.1", "localhost", "[::1]", "[2001:db8::1]", "10.0.0.1")
    ports = ("", ":80", ":443", ":8443")
    addresses = [f"{scheme}://{host}{port}" for scheme in ("http", "https") for host in hosts for port in ports]
    servers = {text: web_address(text).server for text in addresses}
    named = {places({"url": text}, "block"): server for text, server in servers.items()}
    assert len(named) == len(set(servers.values()))


WEAKER: Mapping[str, tuple[str, str]] = {
    name: (before.replace("SECRET", SECRET_OF), after.replace("SECRET", SECRET_OF))
    for name, before, after in read_rows(ADDRESSES, "weaker", 3)
}


def target_with(folder: Path, block: str, **more: str) -> Any:
    files = {"project.yml": PROJECT.format(block)}
    return compiled(folder, files, env={"ENGINE_SECRET_PROD_DB": SECRET, **more}).target


@pytest.mark.parametrize("case", WEAKER)
def test_a_weaker_way_to_the_same_server_asks_again(case: str, tmp_path: Path) -> None:
    before, after = WEAKER[case]
    known = target_with(tmp_path / "p", before).gifts()
    assert known
    confirm(tmp_path / "p", known)
    assert set(target_with(tmp_path / "p", before).gifts()) == set(known)
    new = set(target_with(tmp_path / "p", after).gifts()) - set(known)
    assert new, known
    assert SECRET not in repr(new)


@pytest.mark.parametrize("uri", [
    "jdbc:postgresql://good.example/lake?host=evil.example", "jdbc:postgresql://good.example/lake?PGHOST=evil.example",
    "jdbc:postgresql://good.example/lake?port=1", "jdbc:postgresql://good.example/lake?service=evil",
    "jdbc:postgresql://good.example/lake?%68ost=evil.example", "jdbc:postgresql://good.example/lake?sslmode=disable&HostAddr=10.0.0.1",
    "jdbc:postgresql://good.example,evil.example/lake", "jdbc:postgresql://good.example@evil.example/lake",
    "jdbc:postgresql://good.example\\@evil.example/lake", "jdbc:postgresql://good.example%2eevil.example/lake",
    "jdbc:postgresql://good.example\n.evil.example/lake", "jdbc:postgresql://good.example#evil.example/lake",
    "jdbc:postgresql://good.example/la%ke", "jdbc:postgresql://good.example/lake?sslmode=%zz", "jdbc:postgresql:///lake", "jdbc:postgresql://good.example?host=evil.example/lake", "postgresql://good.example/lake",
])  # fmt: skip
def test_the_address_of_a_database_names_one_server(uri: str, tmp_path: Path) -> None:
    with pytest.raises(AddressError):
        postgres_address(uri)
    written = uri.replace("\\", "\\\\").replace("\n", "\\n")
    block = f'catalog: {{type: jdbc, uri: "{written}", jdbc.password: {SECRET_OF}, warehouse: /w}}'
    errors = compiled(tmp_path, {"project.yml": PROJECT.format(block)}, env={}).manifest.errors
    assert [error.code for error in errors] == ["bad-value"]
    assert errors[0].location is not None
    assert errors[0].location.line == 5


def test_brokers_are_checked_where_they_are_declared(tmp_path: Path) -> None:
    block = 'connections: {main: {bootstrap_servers: ["k1.example:9092", "k2.example\\u00a0:9092"]}}'
    errors = compiled(tmp_path, {"project.yml": PROJECT.format(block)}, env={}).manifest.errors
    assert [error.code for error in errors] == ["bad-value"]
    assert errors[0].location is not None
    assert errors[0].location.column == PROJECT.format(block).splitlines()[4].index('"k2') + 1


@pytest.mark.parametrize("name", ["connections", "schema_registries", "openlineage", "alerts"])
def test_an_address_of_the_environment_is_checked_when_it_is_used(name: str, tmp_path: Path) -> None:
    address = "\"{{ env_var('PLACE') }}\""
    block = {
        "connections": f"connections: {{main: {{bootstrap_servers: {address}}}}}",
        "schema_registries": f"schema_registries: {{main: {{url: {address}}}}}",
        "openlineage": f"openlineage: {{type: http, url: {address}}}",
        "alerts": f"alerts: {{url: {address}, lag: 1 minute}}",
    }[name]
    target = target_with(tmp_path, block, PLACE="//evil.example/x?http://good.example:80")
    late = {"openlineage": target.openlineage, "alerts": target.alerts} | {
        "connections": target.connections.get("main"), "schema_registries": target.registries.get("main")
    }  # fmt: skip
    with pytest.raises(ProjectError) as found:
        late[name]()
    assert found.value.diagnostic.code == "bad-value"
    assert found.value.diagnostic.location is not None
    assert found.value.diagnostic.location.line == 5


@pytest.mark.parametrize(("secret", "fits"), [
    ("plain", True), ("p@ss", False), ("pa/ss", False), ("pa?ss", False), ("pa#ss", False), ("x@evil.example/", False),
    ("x@evil.example\n", False), ("1/@evil.example", False), ("p\u00e4ss", False), ("", True),
])  # fmt: skip
@pytest.mark.parametrize("encoded", [False, True])
def test_a_secret_in_an_address_does_not_choose_the_host(
    secret: str, fits: bool, encoded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret_of = "{{ env_var('ENGINE_SECRET_X') | urlencode }}" if encoded else "{{ env_var('ENGINE_SECRET_X') }}"
    block = f'schema_registries: {{main: {{url: "https://me:{secret_of}@good.example/"}}}}'
    target = target_with(tmp_path, block, ENGINE_SECRET_X=secret)
    if fits or encoded:
        target.registries["main"]()
        return
    with pytest.raises(ProjectError) as found:
        target.registries["main"]()
    assert found.value.diagnostic.code == "secret-misplaced"
    assert "urlencode" in found.value.diagnostic.hint
    assert secret not in found.value.diagnostic.message


def test_a_login_of_s3_goes_to_no_endpoint_of_the_catalog_without_a_question(tmp_path: Path) -> None:
    """The catalog's own `s3.endpoint` wins in Spark, with the login of the target's `s3:`."""
    s3 = f"s3: {{endpoint: 'https://good.example', access_key_id: a, secret_access_key: {SECRET_OF}}}"
    catalog = "catalog: {type: rest, uri: 'https://good.example', s3.endpoint: 'https://evil.example'}"
    target = target_with(tmp_path, f"{s3}\n    {catalog}")
    assert Gift("ENGINE_SECRET_PROD_DB", "evil.example") in target.gifts()
    with pytest.raises(ProjectError, match=r"evil\.example"):
        target.catalog.settings()


@pytest.mark.parametrize(("uri", "asks"), [
    ("https://glue.us-east-1.amazonaws.com/iceberg", False), ("https://s3tables.eu-central-1.amazonaws.com/iceberg", False),
    ("https://glue.cn-north-1.amazonaws.com.cn/iceberg", False), ("https://s3.us-gov-west-1.amazonaws.com", False),
    ("http://glue.us-east-1.amazonaws.com/iceberg", True), ("https://glue.us-east-1.amazonaws.com:8443/iceberg", True),
    ("https://x1.execute-api.us-east-1.amazonaws.com/iceberg", True), ("https://evil.us-east-1.elb.amazonaws.com", True),
    ("https://ec2-1-2-3-4.compute-1.amazonaws.com", True), ("https://evil.s3.us-east-1.amazonaws.com", True),
    ("https://glue.us-east-1.amazonaws.com.evil.example", True), ("https://evil.example/.amazonaws.com", True),
])  # fmt: skip
def test_hosts_that_anybody_can_rent_from_amazon_get_no_login(uri: str, asks: bool) -> None:
    found = machine_logins.machine_gifts("rest", {"uri": uri, "rest.sigv4-enabled": "true"})
    assert bool(found) is asks


def test_the_place_of_tokens_is_below_the_catalog_or_an_address_of_its_own() -> None:
    assert str(token_address("https://good.example/catalog/", None)) == "https://good.example/catalog/v1/oauth/tokens"
    assert str(token_address("https://good.example", "https://login.example/t?x=1")) == "https://login.example/t?x=1"
    for named in ("//evil.example/t", "v1/tokens", "/t", "https:evil.example"):
        with pytest.raises(AddressError):
            token_address("https://good.example", named)


def test_a_path_leads_to_no_other_server() -> None:
    base = web_address("https://good.example/catalog")
    for path in ("//evil.example/x", "/../..//evil.example", "x@evil.example", "https://evil.example"):
        assert base.below(path).server == base.server
        assert str(base.below(path)).startswith("https://good.example/catalog/")
    for path in ("x y", "x\r\nHost: evil.example", "x?y", "x#y", "\u00fc"):
        with pytest.raises(AddressError):
            base.below(path)


def test_a_connection_to_another_server_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever urllib makes of the text of an address."""
    address = web_address("http://good.example/x")
    monkeypatch.setattr(type(address), "__str__", lambda _: "http://evil.example/x")
    with recorded() as hosts, pytest.raises(urllib.error.URLError) as found:
        exchange("GET", address, {"Authorization": SECRET}, timeout=1, deadline=1e12, most_bytes=10)
    assert isinstance(found.value.reason, OtherServerError)
    assert hosts == set()


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    http_exchange._opener.cache_clear()
    with answering({"GET http://good.example/x": {"a": 1}}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        answer = exchange("GET", web_address("http://good.example/x"), {}, timeout=5, deadline=1e12, most_bytes=100)
        assert answer.body == b'{"a": 1}'
        monkeypatch.setenv("https_proxy", proxy.url)
        http_exchange._opener.cache_clear()
        with pytest.raises((OSError, ssl.SSLError)):
            exchange("GET", web_address("https://good.example/x"), {}, timeout=5, deadline=1e12, most_bytes=100)
    http_exchange._opener.cache_clear()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 400])
def test_a_store_that_names_another_place_gets_no_second_request(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.object_store.s3_client.ATTEMPTS", 1)

    def write(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("Location", f"{elsewhere.url}/bucket")
        handler.send_header("x-amz-bucket-region", "evil-1")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    from botocore.exceptions import BotoCoreError, ClientError

    with answering() as elsewhere, answering({"HEAD /": write, "GET /": write}) as store:
        client = aws_client(S3Settings(store.url, "eu-central-1", "key", SECRET, None, path_style_access=True))
        with recorded_beyond(store.url) as hosts, pytest.raises((ClientError, BotoCoreError)):
            client.list_objects_v2(Bucket="bucket")
        assert elsewhere.asked == []
        assert hosts == set()


def recorded_beyond(url: str) -> Any:
    """Look-ups of other hosts than that of an address."""
    import contextlib
    import socket

    server = web_address(url).server

    @contextlib.contextmanager
    def record() -> Any:
        found = set()
        known = socket.getaddrinfo

        def look_up(host: Any, port: Any, *args: Any, **also: Any) -> Any:
            if (host, port) != (server.host, server.port):
                found.add((host, port))
                raise socket.gaierror("recorded")
            return known(host, port, *args, **also)

        socket.getaddrinfo = look_up  # type: ignore[assignment]
        try:
            yield found
        finally:
            socket.getaddrinfo = known

    return record()


@pytest.mark.parametrize(("found", "target", "key"), [
    ({"s3.endpoint": "https://good.example"}, {"uri": "https://good.example", "s3.access-key-id": "a"}, "s3.endpoint"),
    ({"s3.endpoint": "https://good.example"}, {"uri": "https://good.example"}, "s3.endpoint"),
    ({"uri": "https://store.example"}, {"uri": "https://good.example", "s3.endpoint": "https://store.example"}, "uri"),
    ({"oauth2-server-uri": "https://store.example"}, {"uri": "https://good.example", "s3.endpoint": "https://store.example"}, "oauth2-server-uri"),
    ({"oauth2-server-uri": "https://good.example/t"}, {"uri": "https://good.example", "oauth2-server-uri": "https://login.example"}, "oauth2-server-uri"),
    ({"uri": "http://good.example"}, {"uri": "https://good.example"}, "uri"),
    ({"uri": "https://good.example:8443"}, {"uri": "https://good.example"}, "uri"),
    ({"uri": "https://good.example\n.evil.example"}, {"uri": "https://good.example"}, "uri"),
    ({"uri": "https://good.example\\@evil.example"}, {"uri": "https://good.example"}, "uri"),
    ({"uri": " https://evil.example"}, {"uri": "https://good.example"}, "uri"),
    ({"s3.endpoint": "https://evil.example", "s3.access-key-id": "x", "s3.secret-access-key": "y"},
     {"uri": "https://good.example", "s3.session-token": SECRET}, "s3.endpoint"),
    ({"uri": "HTTPS://GOOD.example:443/x", "oauth2-server-uri": "https://good.example/t"}, {"uri": "https://good.example"}, ""),
    ({"s3.endpoint": "https://store.example/"}, {"uri": "https://good.example", "s3.endpoint": "https://store.example"}, ""),
    ({"s3.endpoint": "https://any.example", "s3.access-key-id": "x", "s3.secret-access-key": "y"}, {"uri": "https://good.example"}, ""),
])  # fmt: skip
def test_a_server_moves_no_login_to_another_server(found: dict[str, str], target: dict[str, str], key: str) -> None:
    assert rejected_key(found, target) == key


def test_random_addresses_lead_where_trust_is_asked_for() -> None:
    """`make hostile` and `make nightly` try 100,000, with Java's readers."""
    accepted, _, wrong = fuzz_addresses.run(500, 7, None)
    assert wrong == []
    assert accepted > 80


def test_an_address_that_leads_elsewhere_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the pattern that places were found with before."""
    import re

    def by_pattern(block: Mapping[str, str], _: str) -> tuple[str, ...]:
        return tuple(
            host.rpartition("@")[2].lower() for text in block.values() for host in re.findall(r"://([^/?#\s]*)", text)
        )

    monkeypatch.setattr(fuzz_addresses, "places", by_pattern)
    wrong = [fuzz_addresses.disagreement("catalog", f"https://good.example{port}")[0] for port in ("", ":443", ":0443")]
    assert [bool(found) for found in wrong] == [False, True, False]
    texts = [random_address(random.Random(number), "web") for number in range(50)]
    assert len(set(texts)) > 40
