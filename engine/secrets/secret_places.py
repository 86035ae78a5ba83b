"""Where a block of a target would send its secrets: the hosts that it names, and whatever else decides on that.

A block is a mapping as it is written in project.yml, with placeholders for secrets. What is known to hold an address
gives its hosts; what is known to be harmless counts for nothing; everything else (options of Spark's readers,
`spark.conf`) may decide where something goes, so that a digest of it is part of the place: a change of it asks again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

# It begins where such characters begin: tried at each of them, a long word would take the square of its length.
_ADDRESS: Final = re.compile(r"(?<![A-Za-z0-9+.-])[0-9+.-]*([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\s]*)")
_ADDRESS_KEYS: Final = ("uri", "url", "endpoint", "oauth2-server-uri", "s3.endpoint", "glue.endpoint")
_SERVERS: Final = ("bootstrap_servers", "kafka.bootstrap.servers", "servers")
# They say what is meant at the other end, not where that is.
_HARMLESS: Final = frozenset({
    "type", "name", "warehouse", "scope", "audience", "resource", "prefix", "path", "region", "path_style_access",
    "protocol", "mechanism", "username", "user", "timeout", "namespace", "jdbc.user", "client.region", "s3.region",
    "lag", "restarts", "bad_records", "s3.path-style-access", "glue.id", "rest.sigv4-enabled",
    "rest.signing-name", "rest.signing-region", "ca",
    # Logins themselves.
    "credential", "token", "password", "auth", "api_key", "access_key_id", "secret_access_key", "session_token", "key",
    "certificate", "key_password", "jdbc.password", "s3.access-key-id", "s3.secret-access-key", "s3.session-token",
})  # fmt: skip
_STORES: Final = frozenset({"s3", "s3a", "s3n", "file"})


@dataclass(frozen=True, slots=True, order=True)
class Gift:
    """A secret, by the name of its variable, and the place that it is given to."""

    secret: str
    place: str


def places(block: Mapping[str, Any], what: str) -> tuple[str, ...]:
    """Return the places that a block sends its secrets to.

    Args:
        block: as it is written; placeholders stand for secrets, in one spelling.
        what: the block, for a place that has no host: `spark.conf`.
    """
    hosts: dict[str, None] = {}
    others = []
    for path, value in _leaves(block, ()):
        key = path[-1] if path else ""
        found = list(_hosts(key, value))
        hosts |= dict.fromkeys(found)
        known = key in _HARMLESS or key.startswith("header.")
        if not (key in _ADDRESS_KEYS or key in _SERVERS if found else known):
            others.append((path, value))
    if others and not all(_says_nothing(value) for _, value in others):
        digest = hashlib.sha256(repr(sorted(others)).encode()).hexdigest()[:12]
        hosts[f"{what}#{digest}"] = None
    return tuple(hosts) or (what,)


def _says_nothing(value: str) -> bool:
    """Whether a value is a secret and nothing else, empty, a number or a truth value."""
    return not value or value == "*" or value.isdecimal() or value.lower() in {"true", "false"}


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _leaves(inner, path)
    elif value is not None:
        yield path, str(value)


def _hosts(key: str, value: str) -> Iterator[str]:
    if key in _SERVERS and "://" not in value:
        yield from (server.strip().lower() for server in value.split(",") if server.strip())
        return
    for scheme, place in _ADDRESS.findall(value):
        if scheme.lower() in _STORES:
            continue
        # A backslash ends the host for some clients and not for others: then the whole is the place.
        server = place if "\\" in place else place.rpartition("@")[2]
        for host in server.lower().split(","):
            if host:
                open_ = scheme.lower() == "http" and not _is_loopback(host)
                yield f"http://{host}" if open_ else host


def _is_loopback(host: str) -> bool:
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.rstrip(".") == "localhost"
