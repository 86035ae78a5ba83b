"""`python -m tests.security.fuzz_addresses --count 100000 --seed 1`: the host that is trusted is the host connected to.

Each case is a random address in one setting of a target: a catalog, its token endpoint, a registry, OpenLineage, a
webhook, an object store, a database, brokers. The setting is given to the code that asks for trust and to
the client that connects, whose look-ups of hosts are recorded; none is answered. A host that was looked up must be the
one that trust is asked for, and an address that is accepted where it is declared must lead to one. What is accepted is
also parsed by the libraries that get it as a text: urllib3 and the AWS SDK, libpq, and in Java java.net.URI, PostgreSQL's
and Kafka's clients.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from engine.addresses import AddressError, web_address
from engine.bounds.http_exchange import BodyEncodingError
from engine.compile import Catalog
from engine.compile.declarations.declared_addresses import check_block, check_catalog
from engine.docs.openlineage.background_delivery import http_transport
from engine.errors import Diagnostic, EngineError
from engine.lake.clients.postgres_catalog import postgres_parameters
from engine.lake.clients.rest_session import RestSession
from engine.live.alerts import AlertRules, Alerts, alert_rules
from engine.object_store import s3_client
from engine.object_store.s3_settings import S3Settings
from engine.project.parse_yaml import load_yaml
from engine.project.yaml_section import Section
from engine.secrets.secret_places import places
from engine.sources import registry
from engine.sources.connection import reach, read_connection
from engine.sources.registry import Registry, read_settings
from tests.security.java_addresses import JavaReader
from tests.security.random_addresses import KINDS, random_address

Places = set[tuple[str, int]]
_GOOD: Final = "https://good.example/catalog"
_NOWHERE: Final = Path(os.devnull) / "nowhere"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a target that has an address.

    Attributes:
        kind: of the address.
        block: the mapping that has it, as `places` gets it.
        declared: reports what is wrong with it where it is declared.
        connect: uses it.
    """

    kind: str
    block: Callable[[str], Mapping[str, Any]]
    declared: Callable[[Section], None]
    connect: Callable[[str], object]


def _catalog(kind: str, keys: Mapping[str, str]) -> Catalog:
    return Catalog(kind, "lake", _NOWHERE, keys)


def _registry(text: str) -> object:
    settings = read_settings("main", {"url": text, "auth": {"token": "a-secret"}})
    return Registry(settings_now(settings)).check()


def settings_now(settings: Any) -> Any:
    """Settings of a registry that is asked once."""
    from dataclasses import replace

    return replace(settings, patience=60.0, timeout=60.0)


def _lineage(text: str) -> object:
    from openlineage.client.event_v2 import Job, JobEvent

    event = JobEvent(eventTime="2026-01-01T00:00:00Z", producer="https://p.example", job=Job("a", "b"))
    return http_transport(web_address(text, login=True), 1.0, "a-secret").emit(event)  # type: ignore[no-untyped-call]


def _webhook(text: str) -> object:
    rules = alert_rules({"url": text, "token": "a-secret"})
    return Alerts(rules, _NOWHERE)._post(rules.url, b"{}") if isinstance(rules, AlertRules) and rules.url else None


def _store(text: str) -> object:
    login = S3Settings(text, "eu-central-1", "key", "a-secret", None, path_style_access=True)
    return s3_client.aws_client(login).head_bucket(Bucket="bucket")


def _brokers(text: str) -> object:
    return reach(read_connection("main", {"bootstrap_servers": text}), 0.1)


def _postgres(text: str) -> object:
    """libpq looks names up by itself: what it is given is taken for what it does."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    given = conninfo_to_dict(make_conninfo(**postgres_parameters({"uri": text})))
    return socket.getaddrinfo(str(given["host"]), int(str(given["port"])))


def _rest(kind: str) -> Callable[[Section], None]:
    return lambda part: check_catalog(kind, part, None)


def _block(kind: str) -> Callable[[Section], None]:
    return lambda part: check_block(kind, part, None)


SETTINGS: Final = {
    "catalog": Setting(
        "web", lambda text: {"uri": text}, _rest("rest"),
        lambda text: RestSession(_catalog("rest", {"uri": text, "token": "a-secret"})),
    ),
    "token": Setting(
        "web", lambda text: {"oauth2-server-uri": text}, _rest("rest"),
        lambda text: RestSession(
            _catalog("rest", {"uri": _GOOD, "oauth2-server-uri": text, "credential": "id:a-secret"})
        ),
    ),
    "registry": Setting("web", lambda text: {"url": text}, _block("schema_registries"), _registry),
    "openlineage": Setting("web", lambda text: {"url": text}, _block("openlineage"), _lineage),
    "alerts": Setting("web", lambda text: {"url": text}, _block("alerts"), _webhook),
    "s3": Setting("web", lambda text: {"endpoint": text}, _block("s3"), _store),
    "jdbc": Setting("postgres", lambda text: {"uri": text}, _rest("jdbc"), _postgres),
    "brokers": Setting("kafka", lambda text: {"bootstrap_servers": text}, _block("connections"), _brokers),
}  # fmt: skip
# The AWS SDK takes a hundredth of a second to make a client.
_SELDOM: Final = "s3"


@contextmanager
def recorded() -> Iterator[Places]:
    """Record the hosts that this process looks up, of which none is found."""
    found: Places = set()

    def look_up(host: Any, port: Any, *_: object, **__: object) -> Any:
        found.add((host.decode() if isinstance(host, bytes) else str(host), int(port)))
        raise socket.gaierror("recorded")

    known, socket.getaddrinfo = socket.getaddrinfo, look_up  # type: ignore[assignment]
    try:
        yield found
    finally:
        socket.getaddrinfo = known


def disagreement(name: str, text: str) -> tuple[str, bool]:
    """What is wrong with how an address is used, and whether it is accepted where it is declared.

    Args:
        name: of the setting.
        text: the address.
    """
    setting = SETTINGS[name]
    block = setting.block(text)
    faults: list[Diagnostic] = []
    setting.declared(Section(_DOC, (), dict(block), faults))
    trusted = {place for place in places(block, "block") if not place.startswith("block")}
    with recorded() as reached, suppress(EngineError, AddressError, OSError, BodyEncodingError):
        _connect(setting, text)
    names = {_name(setting.kind, text, host, port) for host, port in reached}
    hosts = {place.partition("#")[0] for place in trusted}
    if names - hosts:
        return f"{name}: connects to {sorted(names - hosts)}, and trust is asked for {sorted(trusted)}", not faults
    if not faults and not reached:
        return f"{name}: is accepted where it is declared, and leads nowhere", True
    return "", not faults


def _connect(setting: Setting, text: str) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    with suppress(BotoCoreError, ClientError):
        setting.connect(text)


_DOC: Final = load_yaml("uri: x\nurl: x\nendpoint: x\nbootstrap_servers: x\noauth2-server-uri: x\n", "project.yml")[0]


def _name(kind: str, text: str, host: str, port: int) -> str:
    """What people are asked to confirm for a host that was looked up, written without the engine's own code."""
    try:
        address = ip_address(host.strip("[]"))
        near, host = address.is_loopback, f"[{address}]" if address.version == 6 else str(address)
    except ValueError:
        near = host.rstrip(".") == "localhost"
    if kind != "web":
        return f"{host}:{port}"
    secure = text.lower().startswith("https:")
    if near and not secure:
        return f"{host}:{port}"
    begin = "" if secure != near else "https://" if secure else "http://"
    return f"{begin}{host}" if port == (443 if secure else 80) else f"{begin}{host}:{port}"


def read_otherwise(text: str, java: JavaReader | None) -> str:
    """How a library that gets an accepted web address as a text reads it in another way; empty: none does."""
    from botocore.awsrequest import AWSRequest
    from urllib3.util import parse_url

    try:
        server = web_address(text).server
    except AddressError:
        server = web_address(text, login=True).server
    mine = (server.scheme, server.host, server.port)
    address = parse_url(text)
    others = {"urllib3": (address.scheme, address.host, address.port)}
    prepared = parse_url(AWSRequest("GET", text).prepare().url)
    others["botocore"] = (prepared.scheme, prepared.host, prepared.port)
    if java is not None and (found := java.web(text)) is not None:
        others["java.net.URI"] = found
    for library, (scheme, host, port) in others.items():
        port_used = port if port not in {None, -1} else {"http": 80, "https": 443}.get(str(scheme).lower())
        if (str(scheme).lower(), _canonical(str(host)), port_used) != mine:
            return f"{library} reads {scheme}, {host}, {port_used}; trust is asked for {mine}"
    return ""


def _canonical(host: str) -> str:
    with suppress(ValueError):
        return str(ip_address(host.strip("[]")))
    return host.lower()


def read_by_java(kind: str, text: str, java: JavaReader) -> str:
    """How Java's client of a database or of brokers reads an accepted address in another way; empty: in none."""
    trusted = {
        place.partition("#")[0] for place in places({"uri" if kind == "postgres" else "bootstrap_servers": text}, "b")
    }
    found = java.postgres(text) if kind == "postgres" else java.kafka(text)
    names = {_name(kind, text, host, port) for host, port in found}
    return (
        "" if names == {name.lower() for name in trusted} else f"Java connects to {names}, trust is asked for {trusted}"
    )


def run(count: int, seed: int, java: JavaReader | None) -> tuple[int, int, list[str]]:
    """How many addresses were accepted, how many of these Java has read, and what is wrong."""
    s3_client.ATTEMPTS = 1
    # Longer than a call may take: what is not found is not asked for again.
    registry._FIRST_PAUSE = 1e9
    names = {kind: [n for n, s in SETTINGS.items() if s.kind == kind and n != _SELDOM] for kind in KINDS}
    accepted = by_java = 0
    wrong = []
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        kind = chance.choice(KINDS)
        name = _SELDOM if kind == "web" and chance.random() < 0.005 else chance.choice(names[kind])
        text = random_address(chance, kind)
        found, fits = disagreement(name, text)
        if fits and not found:
            accepted += 1
            if kind == "web":
                found = read_otherwise(text, java)
            elif java is not None:
                found = read_by_java(kind, text, java)
            by_java += java is not None
        if found:
            wrong.append(f"case {number}: {text!r}: {found}")
    return accepted, by_java, wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security.fuzz_addresses", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--java", action="store_true", help="compare with Java's readers, too")
    given = parser.parse_args()
    started = time.monotonic()
    java = JavaReader() if given.java else None
    try:
        accepted, by_java, wrong = run(given.count, given.seed, java)
    finally:
        if java is not None:
            java.close()
    print(*wrong[:50], sep="\n", end="\n" if wrong else "")
    print(
        f"{given.count - len(wrong):,} of {given.count:,} addresses of seed {given.seed} lead where trust is asked for; "
        f"{accepted:,} are accepted, {by_java:,} of them read by Java alike ({time.monotonic() - started:.0f} s)"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
