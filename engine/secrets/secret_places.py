"""Where a block of a target would send its secrets: its servers, and any other setting that could redirect them.

A block is a mapping from project.yml with a mark in place of each secret. Address keys give the server that
`engine.addresses` parses, which clients connect to. Keys known to be harmless do not count. Everything else (options of
Spark's readers, `spark.conf`) may redirect a secret, so a digest of it is part of the place: a change asks again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.addresses import BEGIN as POSTGRES
from engine.addresses import (
    PORTS,
    AddressError,
    Server,
    check_characters,
    kafka_server,
    postgres_address,
    server,
    split_addresses,
    web_address,
)

# What stands for a secret in a block that is looked at.
MARK: Final = "*"
_ADDRESSES: Final = ("uri", "url", "endpoint", "oauth2-server-uri", "s3.endpoint")
_BROKERS: Final = "bootstrap_servers"
# Free settings of a connection or a session: nothing is known of them.
_FREE: Final = "options"
# How a server is connected to, and whom its certificate has to be signed by.
_TRANSPORT: Final = ("protocol", "mechanism", "ca")
# They say what is meant at the other end, not where that is.
_HARMLESS: Final = frozenset({
    "type", "name", "warehouse", "scope", "audience", "resource", "prefix", "path", "region", "path_style_access",
    "username", "user", "timeout", "namespace", "jdbc.user", "client.region", "s3.region",
    "lag", "restarts", "bad_records", "s3.path-style-access", "rest.sigv4-enabled",
    "rest.signing-name", "rest.signing-region",
    # Logins themselves.
    "credential", "token", "password", "auth", "api_key", "access_key_id", "secret_access_key", "session_token", "key",
    "certificate", "key_password", "jdbc.password", "s3.access-key-id", "s3.secret-access-key", "s3.session-token",
})  # fmt: skip
_ENCRYPTED: Final = ("SSL", "SASL_SSL")
_PLAIN_WORD: Final = re.compile(r"[a-z0-9_-]{1,24}")
_OF_ANY_CLIENT: Final = re.compile(
    r"((?:jdbc:)?[a-z][a-z0-9+.-]*(?::[a-z0-9]+)?)://(?:[^/?#@]*@)?([^/?#@]+)(?:[/?#].*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, order=True)
class Gift:
    secret: str
    place: str


Path = tuple[str, ...]


def places(block: Mapping[str, Any], fallback_name: str) -> tuple[str, ...]:
    """Return the places that a block sends its secrets to; `what` names a place without a host: `spark.conf`."""
    transport: dict[str, str] = {}
    servers: list[tuple[Server, Mapping[str, str]]] = []
    other_values: list[tuple[Path, str]] = []
    client_hosts: dict[str, None] = {}
    for path, value in _leaves(block, ()):
        if path[-1:] and path[-1] in _TRANSPORT and _FREE not in path:
            transport[path[-1]] = value
        elif (servers_here := _servers(path, value)) is not None:
            servers += servers_here
        elif not _is_harmless(path):
            other_values.append((path, value))
            client_hosts |= dict.fromkeys(_client_hosts(value))
    if not servers:
        other_values += [((key,), value) for key, value in transport.items()]
    names = {place_name(at, {**transport, **options}): None for at, options in servers} | client_hosts
    if other_values and not all(_decides_nothing(path, value) for path, value in other_values):
        names[f"{fallback_name}#{_digest(repr(sorted(other_values)))}"] = None
    return tuple(names) or (fallback_name,)


def place_name(server_address: Server, transport: Mapping[str, str]) -> str:
    """Return a server's name for people to confirm: `catalog.example`, `k1.example:9093#protocol=sasl_plaintext`.

    Different ways to reach a server have different names. A bare host means TLS, or no TLS on this machine.
    """
    options = {key: value for key, value in transport.items() if value}
    with_port = f"{server_address.host_text}:{server_address.port}"
    if server_address.scheme in PORTS:
        default_scheme = "http" if server_address.is_loopback else "https"
        prefix = "" if server_address.scheme == default_scheme else f"{server_address.scheme}://"
        show_port = server_address.port != PORTS[server_address.scheme] or not (prefix or default_scheme == "https")
        name = f"{prefix}{with_port if show_port else server_address.host_text}"
    elif server_address.scheme == "kafka":
        name, protocol = with_port, options.pop("protocol", "").upper()
        if protocol in _ENCRYPTED:
            options.pop("mechanism", None)
        # A connection without a protocol sends no login.
        if protocol and (protocol in _ENCRYPTED) == server_address.is_loopback:
            options["protocol"] = protocol
    else:
        name = with_port
    return (
        f"{name}#{'&'.join(f'{key}={_option_text(value)}' for key, value in sorted(options.items()))}"
        if options
        else name
    )


def changed_host(masked: Mapping[str, Any], resolved: Mapping[str, Any]) -> str:
    """Return the address key whose secrets lead to another server than its masked text; empty: none."""
    texts = dict(_leaves(resolved, ()))
    for path, value in _leaves(masked, ()):
        if (
            MARK in value
            and (first_servers := _servers(path, value)) is not None
            and first_servers != _servers(path, texts[path])
        ):
            return path[-1]
    return ""


def _is_harmless(path: Path) -> bool:
    key = path[-1] if path else ""
    return _FREE not in path and (key in _HARMLESS or key.startswith("header.") or path[0] == "auth")


def _decides_nothing(path: Path, value: str) -> bool:
    """Return whether a value is only a secret or a number; a port is not."""
    return value in {"", MARK} or (value.isdecimal() and "port" not in path[-1].lower())


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the values in a block with their paths; a list of scalars is one value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        if all(isinstance(inner, (str, int, float)) for inner in value):
            yield path, ",".join(map(str, value))
        else:
            for number, inner in enumerate(value):
                yield from _leaves(inner, (*path, str(number)))
    elif value is not None:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _servers(path: Path, value: str) -> list[tuple[Server, Mapping[str, str]]] | None:
    """Return the servers of an address with their options; None: it is not an address that can be parsed."""
    if len(path) != 1 or path[0] not in (*_ADDRESSES, _BROKERS):
        return None
    try:
        return _parsed(path[0], value)
    except AddressError:
        return None


def _parsed(key: str, value: str) -> list[tuple[Server, Mapping[str, str]]]:
    if key == _BROKERS:
        return [(kafka_server(text), {}) for text in split_addresses(value)]
    if value.startswith(POSTGRES):
        servers_here = postgres_address(value)
        return [(servers_here.server, servers_here.options)]
    return [(web_address(value, login=True).server, {})]


def _client_hosts(value: str) -> Iterator[str]:
    """Yield the hosts in an address of an unknown client, for people; the digest decides."""
    match = _OF_ANY_CLIENT.fullmatch(value)
    scheme = match[1].lower() if match else ""
    for text in match[2].split(",") if match else ():
        try:
            check_characters(value)
            at = server(scheme, text, PORTS.get(scheme, 0))
        except AddressError:
            return
        yield (
            place_name(at, {})
            if at.scheme in PORTS
            else f"{at.scheme}://{at.host_text}{f':{at.port}' if at.port else ''}"
        )


def _option_text(value: str) -> str:
    """Return a value as part of a name that is compared without letter case, in a list with commas."""
    return value.lower() if _PLAIN_WORD.fullmatch(value.lower()) else _digest(value.strip())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
