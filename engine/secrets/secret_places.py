"""Where a block of a target would send its secrets: the servers that it names, and whatever else decides on that.

A block is a mapping as it is written in project.yml, with a mark in place of each secret. Keys that hold an address
give the server that `engine.addresses` parses from it, which is the one that clients connect to. Keys that are known to
be harmless count for nothing. Everything else (options of Spark's readers, `spark.conf`) may decide where something
goes, so that a digest of it is part of the place: a change of it asks again.
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
    listed,
    postgres_address,
    server,
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


def places(block: Mapping[str, Any], what: str) -> tuple[str, ...]:
    """Return the places that a block sends its secrets to; `what` names a place that has no host: `spark.conf`."""
    transport: dict[str, str] = {}
    servers: list[tuple[Server, Mapping[str, str]]] = []
    others: list[tuple[Path, str]] = []
    shown: dict[str, None] = {}
    for path, value in _leaves(block, ()):
        if path[-1:] and path[-1] in _TRANSPORT and _FREE not in path:
            transport[path[-1]] = value
        elif (found := _servers(path, value)) is not None:
            servers += found
        elif not _is_harmless(path):
            others.append((path, value))
            shown |= dict.fromkeys(_of_any_client(value))
    if not servers:
        others += [((key,), value) for key, value in transport.items()]
    names = {place(at, {**transport, **options}): None for at, options in servers} | shown
    if others and not all(_decides_nothing(path, value) for path, value in others):
        names[f"{what}#{_digest(repr(sorted(others)))}"] = None
    return tuple(names) or (what,)


def place(at: Server, transport: Mapping[str, str]) -> str:
    """Return the name of a server as people confirm it: `catalog.example`, `k1.example:9093#protocol=sasl_plaintext`.

    No two ways to reach a server have the same name. A host alone is reached over TLS, or without it on this machine;
    the other way is part of the name.
    """
    options = {key: value for key, value in transport.items() if value}
    with_port = f"{at.host_text}:{at.port}"
    if at.scheme in PORTS:
        usual = "http" if at.is_loopback else "https"
        begin = "" if at.scheme == usual else f"{at.scheme}://"
        named = at.port != PORTS[at.scheme] or not (begin or usual == "https")
        name = f"{begin}{with_port if named else at.host_text}"
    elif at.scheme == "kafka":
        name, protocol = with_port, options.pop("protocol", "").upper()
        if protocol in _ENCRYPTED:
            options.pop("mechanism", None)
        # A connection without a protocol sends no login.
        if protocol and (protocol in _ENCRYPTED) == at.is_loopback:
            options["protocol"] = protocol
    else:
        name = with_port
    return f"{name}#{'&'.join(f'{key}={_word(value)}' for key, value in sorted(options.items()))}" if options else name


def changed_host(shown: Mapping[str, Any], used: Mapping[str, Any]) -> str:
    """Return the key of an address that leads to another server with its secrets than without; empty: none."""
    texts = dict(_leaves(used, ()))
    for path, value in _leaves(shown, ()):
        if MARK in value and (before := _servers(path, value)) is not None and before != _servers(path, texts[path]):
            return path[-1]
    return ""


def _is_harmless(path: Path) -> bool:
    key = path[-1] if path else ""
    return _FREE not in path and (key in _HARMLESS or key.startswith("header.") or path[0] == "auth")


def _decides_nothing(path: Path, value: str) -> bool:
    """Whether a value is a secret and nothing else, or a number; a port is not only that."""
    return value in {"", MARK} or (value.isdecimal() and "port" not in path[-1].lower())


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the values in a block; a list of addresses is one."""
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
    """The servers of an address, with what it says of the way to them; None: it is not an address that is known."""
    if len(path) != 1 or path[0] not in (*_ADDRESSES, _BROKERS):
        return None
    try:
        return _parsed(path[0], value)
    except AddressError:
        return None


def _parsed(key: str, value: str) -> list[tuple[Server, Mapping[str, str]]]:
    if key == _BROKERS:
        return [(kafka_server(text), {}) for text in listed(value)]
    if value.startswith(POSTGRES):
        found = postgres_address(value)
        return [(found.server, found.options)]
    return [(web_address(value, login=True).server, {})]


def _of_any_client(value: str) -> Iterator[str]:
    """The hosts in an address of a client that is not known, for people: what decides is the digest."""
    match = _OF_ANY_CLIENT.fullmatch(value)
    scheme = match[1].lower() if match else ""
    for text in match[2].split(",") if match else ():
        try:
            check_characters(value)
            at = server(scheme, text, PORTS.get(scheme, 0))
        except AddressError:
            return
        yield place(at, {}) if at.scheme in PORTS else f"{at.scheme}://{at.host_text}{f':{at.port}' if at.port else ''}"


def _word(value: str) -> str:
    """A value as part of a name that is compared without letter case, in a list with commas."""
    return value.lower() if _PLAIN_WORD.fullmatch(value.lower()) else _digest(value.strip())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
