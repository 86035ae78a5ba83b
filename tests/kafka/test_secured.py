"""Brokers with TLS, logins and an access control list: who gets in, and what those are told who do not.

One broker for the file: it serves a good certificate, one that has expired and one of another host, and asks for a
password (SASL_SSL) or for a certificate of the client (MUTUAL).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fault_injection.points import reached
from tests.kafka.conftest import Kafka, event
from tests.lab import Lab, run_alone
from tests.services import certificates
from tests.services.certificates import Authority, Identity
from tests.services.kafka import PASSWORD, Broker, running

pytestmark = [
    pytest.mark.spark, pytest.mark.skipif(not certificates.available(), reason="needs openssl to make certificates")
]  # fmt: skip
_WRONG = "hunter-of-wrong-passwords"
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker, who signed its certificate, and certificates of clients.

    Attributes:
        broker: with the users `reader` (may read topics named read-..), `half` (may only describe them) and `nobody`.
        authority: of its certificates.
        reader: a certificate of the user `reader`.
        stranger: one of an authority that the broker does not know.
        other: that authority.
        encrypted: the key of `reader`, with the password "sesame-open", as Java 17 does not read it.
    """

    broker: Broker
    authority: Authority
    reader: Identity
    stranger: Identity
    other: Authority
    encrypted: str = field(repr=False)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One for the file."""
    folder = tmp_path_factory.mktemp("secured")
    authority, other = (certificates.authority(folder / name, name) for name in ("authority", "other"))
    reader, stranger = authority.issue("reader"), other.issue("reader")
    with running(folder / "broker", authority) as broker:
        for user in ("reader", "half", "nobody"):
            broker.add_user(user, PASSWORD)
        broker.add_user("older", PASSWORD, "SCRAM-SHA-256")
        for user in ("reader", "older"):
            broker.allow(user, "READ", "read-", prefix=True)
        broker.allow("half", "DESCRIBE", "read-", prefix=True)
        yield Secured(broker, authority, reader, stranger, other, authority.encrypted("reader", "sesame-open"))


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch, secured: Secured) -> None:
    """Every secret that a project of this file names."""
    monkeypatch.setenv("ENGINE_SECRET_KAFKA", PASSWORD)
    monkeypatch.setenv("ENGINE_SECRET_WRONG", _WRONG)
    monkeypatch.setenv("ENGINE_SECRET_KEY", secured.reader.key)
    monkeypatch.setenv("ENGINE_SECRET_STRANGER", secured.stranger.key)
    monkeypatch.setenv("ENGINE_SECRET_ENCRYPTED", secured.encrypted)
    monkeypatch.setenv("ENGINE_SECRET_SESAME", "sesame-open")


def connect(kafka: Kafka, address: str, security: dict[str, str]) -> None:
    """Give the project's connection an address and security; values that are names of secrets are read from them."""
    text = (kafka.lab.root / "project.yml").read_text().split("    connections:")[0]
    shown = {
        key: f"{{{{ env_var('{value}') }}}}" if value.startswith("ENGINE_SECRET_") else value
        for key, value in security.items()
    }
    said = json.dumps({"bootstrap_servers": address, "security": shown})
    kafka.lab.write("project.yml", f"{text}    connections: {{main: {said}}}\n")


def login(secured: Secured, **changes: str) -> dict[str, str]:
    """The security of a connection that gets in."""
    good = {
        "protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "reader", "password": "ENGINE_SECRET_KAFKA",
        "ca": secured.authority.ca,
    }  # fmt: skip
    return {key: value for key, value in (good | changes).items() if value}


def mutual(secured: Secured, **changes: str) -> dict[str, str]:
    """The security of a connection whose client shows a certificate."""
    good = {
        "protocol": "SSL", "ca": secured.authority.ca, "certificate": secured.reader.certificate,
        "key": "ENGINE_SECRET_KEY",
    }  # fmt: skip
    return {key: value for key, value in (good | changes).items() if value}


ADMITTED: dict[str, tuple[str, Callable[[Secured], dict[str, str]]]] = {
    "SCRAM-SHA-512": ("SASL_SSL", login),
    "SCRAM-SHA-256": ("SASL_SSL", lambda s: login(s, mechanism="SCRAM-SHA-256", username="older")),
    "PLAIN": ("SASL_SSL", lambda s: login(s, mechanism="PLAIN")),
    "a certificate": ("MUTUAL", mutual),
}


@pytest.mark.nightly_cases("SCRAM-SHA-256", "PLAIN")
@pytest.mark.parametrize("how", ADMITTED)
@pytest.mark.usefixtures("secret")
def test_spark_and_librdkafka_get_in(kafka: Kafka, secured: Secured, how: str) -> None:
    listener, security = ADMITTED[how]
    topic = secured.broker.create(f"read-{listener}-{how.replace(' ', '-')}".lower())
    secured.broker.send(topic, [event(1)])
    kafka.source(topic)
    kafka.stream("select id")
    connect(kafka, secured.broker.tls_address(listener), security(secured))
    with reached("resuming", lambda *_: None) as begun:
        assert kafka.lab.build().model("plain")["status"] == "success"
        assert kafka.ids() == [1]
        assert begun
        begun.clear()
        assert kafka.lab.build().model("plain")["status"] == "unchanged"
        assert begun == [], "librdkafka got in as well"


# What is wrong: the listener, the security, the code, a part of the message, and a part of the hint.
REJECTED: dict[str, tuple[str, Callable[[Secured], dict[str, str]], str, str, str]] = {
    "a wrong password": (
        "SASL_SSL", lambda s: login(s, password="ENGINE_SECRET_WRONG"),
        "kafka-rejected", "rejected the login of 'reader'", "'username', 'password' and 'mechanism'",
    ),
    "a user without a password for the mechanism": (
        "SASL_SSL", lambda s: login(s, mechanism="SCRAM-SHA-256"),
        "kafka-rejected", "rejected the login of 'reader'", "a password for each mechanism",
    ),
    "an authority that Java does not know": (
        "SASL_SSL", lambda s: login(s, ca=""),
        "kafka-certificate", "signed by another authority than one that Java knows", "Set 'ca'",
    ),
    "another authority": (
        "SASL_SSL", lambda s: login(s, ca=s.other.ca),
        "kafka-certificate", "signed by another authority than the one in 'ca'", "Set 'ca'",
    ),
    "a certificate of another host": (
        "STRANGE", lambda s: {"protocol": "SSL", "ca": s.authority.ca},
        "kafka-certificate", "is for another host", "'bootstrap_servers'",
    ),
    "a certificate that has expired": (
        "EXPIRED", lambda s: {"protocol": "SSL", "ca": s.authority.ca},
        "kafka-certificate", "has expired (NotAfter: Thu Jan 02 00:00:00 UTC 2020)", "renewed",
    ),
    "no certificate of the client": (
        "MUTUAL", lambda s: mutual(s, certificate="", key=""),
        "kafka-certificate", "ask for a certificate of the client", "'certificate' and 'key'",
    ),
    "a certificate of a strange client": (
        "MUTUAL", lambda s: mutual(s, certificate=s.stranger.certificate, key="ENGINE_SECRET_STRANGER"),
        "kafka-certificate", "do not accept the certificate of the client", "signed by an authority",
    ),
    "a key that is encrypted in a way that Java 17 does not read": (
        "MUTUAL", lambda s: mutual(s, key="ENGINE_SECRET_ENCRYPTED", key_password="ENGINE_SECRET_SESAME"),
        "kafka-certificate", "cannot be read", "openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES",
    ),
    "a user who may nothing": (
        "SASL_SSL", lambda s: login(s, username="nobody"),
        "kafka-denied", "the user 'nobody' of the connection 'main' may not read the topic 'read-shared'",
        "--allow-principal 'User:nobody' --operation Read --topic read-shared",
    ),
    "a user who may describe the topic only": (
        "SASL_SSL", lambda s: login(s, username="half"),
        "kafka-denied", "the user 'half' of the connection 'main' may not read the topic 'read-shared'",
        "--operation Read",
    ),
}  # fmt: skip


@pytest.mark.nightly_cases("no certificate of the client")
@pytest.mark.parametrize("what", REJECTED)
@pytest.mark.usefixtures("secret")
def test_who_does_not_get_in_is_told_why_and_soon(kafka: Kafka, secured: Secured, what: str) -> None:
    if what.endswith("Java 17 does not read") and _java_major(kafka) > 17:
        pytest.skip("this Java reads it")
    listener, security, code, said, hint = REJECTED[what]
    if not secured.broker.partitions("read-shared"):
        secured.broker.create("read-shared")
    kafka.source("read-shared")
    kafka.stream("select id")
    connect(kafka, secured.broker.tls_address(listener), security(secured))
    begin = time.monotonic()
    failed = kafka.lab.run("build")
    assert time.monotonic() - begin < _SECONDS
    assert failed.code == 1
    (found,) = [e for e in failed.events if e["event"] == "Diagnosed" and e["level"] == "error"] or [{}]
    assert (found.get("code"), found.get("file")) == (code, "sources/shop.yml"), failed.text
    assert said in found["message"]
    assert hint in found["hint"]
    texts = {"output": failed.text.encode()}
    texts |= {str(path): path.read_bytes() for path in kafka.lab.root.rglob("*") if path.is_file()}
    hidden = ("battery", _WRONG, "sesame-open", secured.reader.key.splitlines()[3], secured.encrypted.splitlines()[3])
    assert [name for name, text in texts.items() if any(word.encode() in text for word in hidden)] == []


def _java_major(kafka: Kafka) -> int:
    assert kafka.lab.session is not None
    return int(kafka.lab.session.spark.sparkContext._jvm.java.lang.Runtime.version().feature())


@pytest.mark.nightly
@pytest.mark.usefixtures("secret")
def test_a_query_that_fails_while_it_runs_shows_no_secret_anywhere(tmp_path: Path, secured: Secured) -> None:
    """Keys are handed to the client as text: they are in no file, of the project or a temporary one."""
    kafka = Kafka(Lab(tmp_path / "project", None, None, schema="shop"), secured.broker)
    secured.broker.create("read-alone")
    secured.broker.send("read-alone", [event(1), event(2)])
    kafka.source("read-alone")
    kafka.stream("select cast(raise_error('planned') as int) as id")
    both = mutual(secured, protocol="SASL_SSL", mechanism="SCRAM-SHA-512", username="reader")
    connect(kafka, secured.broker.tls_address("SASL_SSL"), both | {"password": "ENGINE_SECRET_KAFKA"})
    (tmp_path / "tmp").mkdir()
    names = {"ENGINE_SECRET_KEY": secured.reader.key, "ENGINE_SECRET_KAFKA": PASSWORD}
    failed = run_alone(kafka.lab.root, "build", env={**names, "TMPDIR": str(tmp_path / "tmp")})
    assert failed.returncode == 1
    texts = {"output": (failed.stdout + failed.stderr).encode()}
    texts |= {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"planned" in text for name, text in texts.items() if not name.endswith(".sql")), "another failure"
    assert any(name.endswith("spark.log") for name in texts)
    hidden = (b"battery", secured.reader.key.splitlines()[3].encode())
    assert [name for name, text in texts.items() if any(word in text for word in hidden)] == []
