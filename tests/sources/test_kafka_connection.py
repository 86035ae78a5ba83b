"""Connections: what the client gets of them, what is refused, and that nobody waits long for an answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.errors import ProjectError, SetupError
from engine.sources.connection import Connection, reach, read_connection

LOGIN = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "u", "password": 'p"\\q'}

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nsesame-open\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nsesame-open\n-----END PRIVATE KEY-----\n"
TLS = {"protocol": "SSL", "certificate": CERTIFICATE, "key": KEY}


def test_addresses_as_text_or_list() -> None:
    for said in ("a:1,b:2", ["a:1", " b:2"]):
        assert read_connection("main", {"bootstrap_servers": said}).client == {"bootstrap.servers": "a:1,b:2"}
    assert read_connection("main", {"bootstrap_servers": "[::1]:9092"}).servers == (("::1", 9092),)
    assert read_connection("main", {"bootstrap_servers": "[::1]:9092"}).addresses == "[::1]:9092"


def test_a_login_over_tls() -> None:
    security = {**LOGIN, "ca": CERTIFICATE, "key": KEY, "certificate": CERTIFICATE, "key_password": "P"}
    options = read_connection("main", {"bootstrap_servers": "a:1", "security": security}).options
    assert options == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="u" password="p\\"\\\\q";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CERTIFICATE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE,
        "ssl.keystore.key": KEY,
        "ssl.key.password": "P",
    }


def test_options_of_the_client() -> None:
    said = {"bootstrap_servers": "a:1", "options": {"consumer.fetch.max.bytes": 5, "consumer.check.crcs": True}}
    assert read_connection("main", said).options == {"fetch.max.bytes": "5", "check.crcs": "true"}


def test_secrets_are_in_no_text_of_a_connection() -> None:
    assert "p" not in repr(Connection("n", (("a", 1),), {"x": "p"})).removeprefix("Connection(")


WRONG = [
    ({}, "it needs 'bootstrap_servers'"),
    ({"bootstrap_servers": "a"}, "'a' is not an address (host:port)"),
    ({"bootstrap_servers": "http://a:1"}, "'http://a:1' is not an address"),
    ({"bootstrap_servers": "a:1", "securty": {}}, "it has no key 'securty'. Did you mean 'security'"),
    ({"bootstrap_servers": "a:1", "security": "SSL"}, "'security' must be a mapping"),
    ({"bootstrap_servers": "a:1", "security": {}}, "'protocol' must be one of"),
    ({"bootstrap_servers": "a:1", "security": {"protocol": "SSL", "pasword": "x"}}, "'security' has no key 'pasword'"),
    ({"bootstrap_servers": "a:1", "security": {**LOGIN, "mechanism": "OAUTHBEARER"}}, "'mechanism' must be one of"),
    ({"bootstrap_servers": "a:1", "security": {**LOGIN, "password": ""}}, "needs 'username' and 'password'"),
    ({"bootstrap_servers": "a:1", "security": {**LOGIN, "protocol": "SSL"}}, "SSL takes no mechanism"),
    ({"bootstrap_servers": "a:1", "security": {**LOGIN, "protocol": "SASL_PLAINTEXT", "ca": "x"}}, "no certificates"),
    ({"bootstrap_servers": "a:1", "security": {**TLS, "ca": "/etc/sesame-open.pem"}}, "'ca' is not a PEM text"),
    ({"bootstrap_servers": "a:1", "security": {**TLS, "key": ""}}, "'certificate' and 'key' belong together"),
    (
        {"bootstrap_servers": "a:1", "security": {**TLS, "key": KEY.replace("PRIVATE", "RSA PRIVATE")}},
        "openssl pkcs8 -topk8 -nocrypt",
    ),
    (
        {"bootstrap_servers": "a:1", "security": {**TLS, "key": KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")}},
        "'key' is encrypted and needs 'key_password'",
    ),
    ({"bootstrap_servers": "a:1", "options": {"consumer.ssl.engine.factory.class": "x"}}, "a security setting"),
    ({"bootstrap_servers": "a:1", "options": {"consumer.metric.reporters": "x"}}, "of the client is unknown"),
    (
        {"bootstrap_servers": "a:1", "options": {"consumer.sasl.oauthbearer.jwks.endpoint.url": "x"}},
        "a security setting",
    ),
    ({"bootstrap_servers": "a:1", "options": []}, "'options' must be a mapping"),
]


@pytest.mark.parametrize(("settings", "text"), WRONG, ids=[text for _, text in WRONG])
def test_settings_that_are_refused(settings: dict[str, object], text: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read_connection("main", settings)
    assert caught.value.diagnostic.code == "connection-settings"
    assert text in caught.value.diagnostic.message
    assert "sesame" not in caught.value.diagnostic.message
    assert caught.value.diagnostic.hint


def test_a_password_is_in_no_message() -> None:
    with pytest.raises(ProjectError) as caught:
        read_connection("main", {"security": {**LOGIN, "password": "hunter2", "mechanism": "X"}})
    assert "hunter2" not in str(caught.value.diagnostics)


@contextmanager
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield server.getsockname()[1]


def test_one_server_that_answers_is_enough() -> None:
    with listening() as port:
        reach(Connection("main", (("127.0.0.1", closed()), ("127.0.0.1", port))))


def test_nobody_answers() -> None:
    port = closed()
    begin = time.monotonic()
    with pytest.raises(SetupError) as caught:
        reach(Connection("main", (("127.0.0.1", port), ("no-such-host.invalid", 9092))), patience=2)
    assert time.monotonic() - begin < 30
    found = caught.value.diagnostic
    assert found.code == "kafka-unreachable"
    assert f"127.0.0.1:{port}" in found.message
    assert "no-such-host.invalid:9092" in found.message


def closed() -> int:
    """A port on which nobody listens."""
    with listening() as port:
        return port
