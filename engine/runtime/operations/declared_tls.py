"""Which connections of a target go over the wire unencrypted, as they are declared; nothing is connected to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.addresses.servers import AddressError, Server
from engine.addresses.web_address import web_address
from engine.compile import Target
from engine.errors import EngineError
from engine.sources.kafka.connection import read_connection
from engine.sources.registry.registry_client import read_settings

# A part, ok or warn, the text and the hint.
Told = tuple[str, str, str, str]
_TLS = "Use TLS: "


def declared(target: Target, root: Path) -> Iterator[Told]:
    """What is declared of each connection, schema registry and receiver of run events."""
    place = target.place(root)
    for name in target.connections:
        try:
            yield _connection(name, place.connection(name))
        except EngineError as error:
            yield _unknown(f"connection '{name}'", error)
    for name in target.registries:
        try:
            settings = read_settings(name, place.registry(name))
        except EngineError as error:
            yield _unknown(f"registry '{name}'", error)
        else:
            yield _address(f"registry '{name}'", settings.url, secret=bool(settings.authorization))
    if target.openlineage is not None:
        try:
            events = target.openlineage()
        except EngineError as error:
            yield _unknown("openlineage", error)
        else:
            if "url" in events:
                yield _address("openlineage", str(events["url"]), secret=bool(events.get("api_key")))


def _connection(name: str, settings: object) -> Told:
    what = f"connection '{name}'"
    if not isinstance(settings, dict) or "bootstrap_servers" not in settings:
        return "wire", "ok", f"{what} names no brokers", ""
    connection = read_connection(name, settings)
    protocol = connection.options.get("security.protocol", "PLAINTEXT")
    near = all(Server("kafka", *server).is_loopback for server in connection.servers)
    if protocol.endswith("SSL") or near:
        return "wire", "ok", f"{what}: {protocol}{' on this machine' if near else ''}", ""
    if protocol.startswith("SASL"):
        return "wire", "warn", f"{what}: {protocol}, the login is sent unencrypted", f"{_TLS}protocol: SASL_SSL."
    return "wire", "warn", f"{what}: {protocol}, records are sent unencrypted", f"{_TLS}protocol: SSL or SASL_SSL."


def _address(what: str, url: str, *, secret: bool) -> Told:
    try:
        address = web_address(url, login=True)
    except AddressError as error:
        return "wire", "warn", f"{what} cannot be used: its url {error}", ""
    scheme = address.server.scheme
    if not address.is_open:
        return "wire", "ok", f"{what}: {scheme}{' on this machine' if scheme == 'http' else ''}", ""
    if secret or address.login is not None:
        return "wire", "warn", f"{what}: {scheme}, the password is sent unencrypted", f"{_TLS}https."
    return "wire", "warn", f"{what}: {scheme}, not encrypted", f"{_TLS}https."


def _unknown(what: str, error: EngineError) -> Told:
    return "wire", "warn", f"{what} cannot be read: {error.diagnostic.message}", error.diagnostic.hint
