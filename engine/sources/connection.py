"""A Kafka connection of a target: its settings as options of the client, and whether somebody answers there."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.addresses import AddressError, kafka_server, split_addresses
from engine.errors import ProjectError, SetupError, near
from engine.schema.target_keys import CONNECTION, SECURITY

_PROTOCOLS = SECURITY.choices("protocol")
# mechanism -> the module of Java's login that takes its user and password
_MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# security: -> the client's option; PEM texts, so that no key store has to be made
_SECURITY = {
    "ca": "ssl.truststore.certificates",
    "certificate": "ssl.keystore.certificate.chain",
    "key": "ssl.keystore.key",
    "key_password": "ssl.key.password",
}
# security: -> librdkafka's option
_NATIVE_SECURITY = {
    "protocol": "security.protocol",
    "mechanism": "sasl.mechanism",
    "username": "sasl.username",
    "password": "sasl.password",
    "ca": "ssl.ca.pem",
    "certificate": "ssl.certificate.pem",
    "key": "ssl.key.pem",
    "key_password": "ssl.key.password",
}
_ENCRYPTED = "ENCRYPTED PRIVATE KEY"
# security: -> what its PEM text has; Java reads keys in PKCS #8 only
_PEM = {"ca": ("CERTIFICATE",), "certificate": ("CERTIFICATE",), "key": ("PRIVATE KEY", _ENCRYPTED)}
# Options of the consumer that a project may set. The list is closed: some of the others name classes to load, files to
# read or addresses to call (CVE-2024-31141, CVE-2025-27817), and Spark sets some itself.
CONSUMER = (
    "check.crcs", "client.dns.lookup", "client.id", "client.rack", "connections.max.idle.ms",
    "default.api.timeout.ms", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "heartbeat.interval.ms",
    "isolation.level", "max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records", "metadata.max.age.ms",
    "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms",
    "retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes", "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms",
)  # fmt: skip
_OF_SPARK = {
    "auto.offset.reset": "Write 'starting_offsets:'.",
    "bootstrap.servers": "Write 'bootstrap_servers:' in the connection.",
    "enable.auto.commit": "Offsets are stored in the table's state.",
    "group.id": "Spark uses a separate group for each query, so that models do not share records.",
    "key.deserializer": "Keys are available as binary in _metadata.key.",
    "value.deserializer": "Write 'value: {format: ...}'.",
    "interceptor.classes": "Interceptors would see records twice when a micro-batch is repeated.",
}
PREFIX = "consumer."
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Connection:
    """`options` have no addresses, but secrets; `user` is empty where there is no login."""

    name: str
    servers: tuple[tuple[str, int], ...]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str = ""

    @property
    def addresses(self) -> str:
        return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers)

    @property
    def client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.addresses, **self.options}


def read_connection(name: str, settings: Mapping[str, Any]) -> Connection:
    """Read the settings of `connections: {name: ...}`.

    Raises ProjectError: connection-settings, with everything that is wrong with them.
    """
    faults = [*_key_faults(settings), *_security_faults(settings.get("security"))]
    servers, bad = _servers(settings.get("bootstrap_servers"))
    faults += bad
    options = settings.get("options") or {}
    faults += [f"{message}. {hint}" for _, message, hint in consumer_faults(options)]
    if faults:
        raise ProjectError("connection-settings", f"the connection '{name}' is invalid: {'; '.join(faults)}", _FORM)
    security = settings.get("security") or {}
    user = str(security.get("username") or "")
    return Connection(name, servers, {**_security(security), **consumer_options(options)}, user)


_FORM = "Set 'bootstrap_servers: host:9092' and, if needed, 'security: {protocol: SASL_SSL, ...}'."


def consumer_faults(options: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key in options:
        bare = key.removeprefix(PREFIX)
        if not key.startswith(PREFIX):
            yield key, f"unknown option '{key}'", f"Options of the Kafka client begin with '{PREFIX}'"
        elif bare in _OF_SPARK:
            yield key, f"the option '{bare}' of the client is set by Headrace", _OF_SPARK[bare]
        elif bare.startswith(("ssl.", "sasl.", "security.")):
            yield key, f"the option '{bare}' is a security setting", "Write it under 'security:' of the connection."
        elif bare not in CONSUMER:
            yield key, f"the option '{bare}' of the client is unknown", near(bare, CONSUMER)


def consumer_options(options: Mapping[str, Any]) -> dict[str, str]:
    return {key.removeprefix(PREFIX): _text(value) for key, value in options.items() if key.startswith(PREFIX)}


def reach(connection: Connection, patience: float = _PATIENCE_SECONDS) -> None:
    """Make sure that some bootstrap server takes connections.

    Raises SetupError: kafka-unreachable, after at most `patience` seconds a server.
    """
    failures = []
    for host, port in connection.servers:
        try:
            socket.create_connection((host, port), timeout=patience).close()
        except OSError as error:
            failures.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    message = f"no broker of the connection '{connection.name}' responds ({'; '.join(failures)})"
    hint = "Start the broker, or correct 'bootstrap_servers' of the connection in project.yml."
    raise SetupError("kafka-unreachable", message, hint)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _key_faults(settings: Mapping[str, Any]) -> Iterator[str]:
    for key in settings:
        if key not in CONNECTION.names:
            yield f"it has no key '{key}'. {near(key, CONNECTION.names)}"
    options = settings.get("options")
    if options is not None and not isinstance(options, dict):
        yield "'options' must be a mapping"


def _servers(value: Any) -> tuple[tuple[tuple[str, int], ...], list[str]]:
    texts = split_addresses(value)
    servers, faults = [], []
    for text in texts:
        try:
            server = kafka_server(text)
        except AddressError as error:
            faults.append(f"'{text}' is not an address (host:port): it {error}")
        else:
            servers.append((server.host, server.port))
    if not texts:
        faults.append("it needs 'bootstrap_servers'")
    return tuple(servers), faults


def _security_faults(security: Any) -> Iterator[str]:
    if security is None:
        return
    if not isinstance(security, dict):
        yield "'security' must be a mapping"
        return
    for key in security:
        if key not in SECURITY.names:
            yield f"'security' has no key '{key}'. {near(key, SECURITY.names)}"
    protocol = security.get("protocol")
    if protocol not in _PROTOCOLS:
        yield f"'protocol' must be one of {', '.join(_PROTOCOLS)}"
        return
    yield from _login_faults(str(protocol), security)
    if str(protocol).endswith("SSL"):
        yield from _pem_faults(security)
    elif set(_SECURITY) & set(security):
        yield f"{protocol} takes no certificates"


def _pem_faults(security: Mapping[str, Any]) -> Iterator[str]:
    """What is not a PEM text; the text itself is a secret, and in no message."""
    for key, kinds in _PEM.items():
        text = str(security.get(key) or "")
        if text and not any(f"-----BEGIN {kind}-----" in text for kind in kinds):
            yield f"'{key}' is not a PEM text with {' or '.join(f'-----BEGIN {kind}-----' for kind in kinds)}"
            if key == "key" and "-----BEGIN " in text:
                yield "convert it: openssl pkcs8 -topk8 -nocrypt -in key.pem"
    if bool(security.get("certificate")) != bool(security.get("key")):
        yield "'certificate' and 'key' belong together"
    if f"-----BEGIN {_ENCRYPTED}-----" in str(security.get("key")) and not security.get("key_password"):
        yield "'key' is encrypted and needs 'key_password'"


def _login_faults(protocol: str, security: Mapping[str, Any]) -> Iterator[str]:
    if not protocol.startswith("SASL"):
        if {"mechanism", "username", "password"} & set(security):
            yield f"{protocol} takes no mechanism, username or password"
        return
    if security.get("mechanism") not in _MECHANISMS:
        yield f"'mechanism' must be one of {', '.join(_MECHANISMS)}"
    if not security.get("username") or not security.get("password"):
        yield f"{protocol} needs 'username' and 'password'"


def _security(security: Mapping[str, Any]) -> dict[str, str]:
    if not security:
        return {}
    options = {"security.protocol": str(security["protocol"])}
    if mechanism := security.get("mechanism"):
        options["sasl.mechanism"] = mechanism
        user, password = (_quoted(str(security[key])) for key in ("username", "password"))
        options["sasl.jaas.config"] = f"{_MECHANISMS[mechanism]} required username={user} password={password};"
    if security.get("ca"):
        options["ssl.truststore.type"] = "PEM"
    if security.get("certificate"):
        options["ssl.keystore.type"] = "PEM"
    return options | {option: str(security[key]) for key, option in _SECURITY.items() if security.get(key)}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def native_settings(addresses: str, security: Mapping[str, Any], on_error: Callable[[Any], None]) -> dict[str, Any]:
    """Return the settings of a librdkafka client; `on_error` gets the errors that it meets outside of calls."""
    return {
        "bootstrap.servers": addresses, "client.id": "headrace", "log_level": 0, "error_cb": on_error,
        **{option: str(security[key]) for key, option in _NATIVE_SECURITY.items() if security.get(key)},
    }  # fmt: skip
