"""Hosts, ports and addresses: the one grammar for every client of a server.

A host is a name of ASCII letters, an IPv4 address in four decimal numbers, or an IPv6 address. Whatever two programs
could read differently is an error: blanks, letters beyond ASCII, `127.1` and `0177.0.0.1` (glibc and Java connect to
different machines), percent signs (urllib decodes them), zones of IPv6 addresses. Also parsed here: lists of servers
(Kafka), web addresses, and JDBC addresses of PostgreSQL (`jdbc:postgresql://host:port/database?option=value`).
Only a parsed address is connected to, and its server is the one that trust is asked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import parse_qsl

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
# Some programs take a name whose last part is a number for an IPv4 address, others do not.
_ENDS_IN_A_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
_HOST_AND_PORT: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(?::(?P<port>.*))?", re.DOTALL)
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_MOST_OF_A_NAME: Final = 254
_MOST_PORT: Final = 65_535
# Java's URI and HTTP clients differ about these outside of a host, too.
_NEVER: Final = frozenset('\\"<>^`{|}')
_BLANKS: Final = {"\n": "a line break", "\r": "a line break", "\t": "a tab", " ": "a blank"}


class AddressError(ValueError):
    """A text is not an address, or one that programs read differently; the message holds nothing of the text."""


@dataclass(frozen=True, slots=True, order=True)
class Server:
    """A server: `scheme` and `host` in lower case, IPv6 in its shortest form without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def host_text(self) -> str:
        """Return the host as addresses write it: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.rstrip(".") == "localhost"


def server(scheme: str, text: str, default_port: int | None = None) -> Server:
    """Parse `host`, `host:port` or `[IPv6]:port`; raise AddressError if it is neither."""
    check_characters(text)
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None or not match["host"]:
        raise AddressError("has no host and port of the form <host>:<port>")
    return Server(scheme, _host(match["host"].lower()), _port(match["port"], default_port))


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            raise AddressError("has brackets around something else than an IPv6 address") from None
        if address.scope_id is not None:
            raise AddressError("has an IPv6 address with a zone")
        if address.ipv4_mapped is not None:
            raise AddressError(
                f"has an IPv4 address inside an IPv6 address, which is to be written as {address.ipv4_mapped}"
            )
        return str(address)
    if _ENDS_IN_A_NUMBER.fullmatch(text):
        try:
            return str(IPv4Address(text))
        except ValueError:
            raise AddressError("has a host in numbers that is not an IPv4 address of four decimal numbers") from None
    if len(text) > _MOST_OF_A_NAME or not _NAME.fullmatch(text):
        raise AddressError("has a host with characters or parts that names of hosts do not have")
    return text


def _port(text: str | None, default: int | None) -> int:
    if text is None:
        if default is None:
            raise AddressError("has no port")
        return default
    if not _PORT.fullmatch(text) or int(text) > _MOST_PORT:
        raise AddressError(f"has a port that is not a number from 1 to {_MOST_PORT:,}")
    return int(text)


def check_characters(text: str) -> None:
    """Raise AddressError if a text has a blank, a control character, or one that programs read differently."""
    for character in text:
        if character in _BLANKS:
            raise AddressError(f"contains {_BLANKS[character]}")
        if not character.isascii():
            raise AddressError(_beyond_ascii(text, character))
        if not character.isprintable():
            raise AddressError(f"contains a control character (U+{ord(character):04X})")
        if character in _NEVER:
            raise AddressError(f"contains the character {character}, which is to be written as %{ord(character):02X}")


def _beyond_ascii(text: str, character: str) -> str:
    description = f"contains {unicodedata.name(character, 'a character').lower()} (U+{ord(character):04X})"
    authority = re.split(r"[/?#\\]", text.partition("://")[2] or text, maxsplit=1)[0].rpartition("@")[2]
    punycode_host = punycode(authority.partition(":")[0])
    return (
        f"{description}, and its host is {punycode_host}"
        if punycode_host != authority.partition(":")[0]
        else description
    )


def punycode(host: str) -> str:
    """Write each part of a host that has letters beyond ASCII in punycode, so that look-alikes are visible."""
    return ".".join(
        part if part.isascii() else f"xn--{part.lower().encode('punycode', 'replace').decode('ascii', 'replace')}"
        for part in host.split(".")
    )


def split_addresses(value: Any) -> Sequence[str]:
    """Split a list of addresses, given as a list or with commas; only ASCII blanks around an address are removed."""
    texts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return [str(text).strip(" ") for text in texts]


def kafka_server(text: str) -> Server:
    return server("kafka", text)


PORTS: Final = {"https": 443, "http": 80}
_ADDRESS: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A web address: `path` as written (empty, or with a leading slash), `login` as `user:password`."""

    server: Server
    path: str = ""
    query: str = ""
    login: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        port = "" if self.server.port == PORTS[self.server.scheme] else f":{self.server.port}"
        query = f"?{self.query}" if self.query else ""
        return f"{self.server.scheme}://{self.server.host_text}{port}{self.path}{query}"

    @property
    def is_open(self) -> bool:
        """Return whether others can read what is sent: plain http to another machine."""
        return self.server.scheme == "http" and not self.server.is_loopback

    def below(self, path: str, query: str = "") -> WebAddress:
        """Return a place below this one on the same server; raise AddressError for wrong characters."""
        check_characters(path + query)
        if "#" in path + query or "?" in path:
            raise AddressError("has a path with ? or # in it")
        return replace(self, path=f"{self.path.rstrip('/')}/{path.lstrip('/')}", query=query, login=None)


def web_address(text: str, *, login: bool = False) -> WebAddress:
    """Parse an http or https address; raise AddressError if it is none, or if programs could read it differently."""
    check_characters(text)
    match = _ADDRESS.fullmatch(text)
    scheme = (match[1] or "").lower() if match else ""
    if match is None or scheme not in PORTS:
        raise AddressError("does not begin with http:// or https://")
    _, authority, path, query, fragment = match.groups()
    if fragment is not None:
        raise AddressError("contains #, and the text after it is not sent")
    user, at, place = authority.rpartition("@")
    if at and not login:
        raise AddressError("contains a login, and it is shown in messages")
    # A password with a slash in it would make its user the host, and a part of it the port.
    if "@" in user or (login and "@" in path + (query or "")):
        raise AddressError("contains an ambiguous @; write an @ in a user name or password as %40")
    return WebAddress(server(scheme, place, PORTS[scheme]), path, query or "", user if at else None)


def token_address(uri: str, token_uri: str | None) -> WebAddress:
    """Return where a REST catalog's tokens are fetched; raise AddressError if an address is wrong."""
    return web_address(token_uri) if token_uri else web_address(uri).below("v1/oauth/tokens")


def is_open(text: str) -> bool:
    """Return whether others can read credentials sent to an address; False if it is not an address."""
    try:
        return web_address(text, login=True).is_open
    except AddressError:
        return False


BEGIN: Final = "jdbc:postgresql://"
_POSTGRES_PORT: Final = 5432
_POSTGRES_ADDRESS: Final = re.compile(r"([^/?#]*)/([^/?#]+)(?:\?([^#]*))?")
# The JDBC driver decodes the rest of an address, and takes none that cannot be.
_NOT_ESCAPED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# By the JDBC driver's names and PostgreSQL's: with them the driver connects to another server than the address names
# (measured, pgjdbc 42.7.8).
_OTHER_SERVER: Final = frozenset(
    ("host", "hostaddr", "port", "dbname", "pghost", "pghostaddr", "pgport", "pgdbname", "service")
)
_LOGIN: Final = frozenset({"password", "pgpassword", "sslpassword"})


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    server: Server
    database: str
    options: Mapping[str, str] = field(default_factory=dict)


def postgres_address(uri: str) -> PostgresAddress:
    """Parse the JDBC address of a database; raise AddressError for what programs could read differently."""
    check_characters(uri)
    if not uri.startswith(BEGIN):
        raise AddressError(f"does not begin with {BEGIN}")
    match = _POSTGRES_ADDRESS.fullmatch(uri.removeprefix(BEGIN))
    if _NOT_ESCAPED.search(uri):
        raise AddressError("contains a % that is not followed by two hexadecimal digits; one is to be written as %25")
    if match is None:
        raise AddressError(f"is not of the form {BEGIN}<host>:<port>/<database>")
    place, database, query = match.groups()
    if "@" in place:
        raise AddressError("contains a login, and it is shown in messages")
    if "," in place:
        raise AddressError("names several hosts")
    options = dict(parse_qsl(query or "", keep_blank_values=True))
    for key in options:
        if key.lower() in _OTHER_SERVER:
            raise AddressError(f"contains the option '{key}', by which a driver connects to another server")
        if key.lower() in _LOGIN:
            raise AddressError("contains a login, and it is shown in messages")
    return PostgresAddress(server("postgresql", place, _POSTGRES_PORT), database, options)
