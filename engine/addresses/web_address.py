"""Web addresses: `https://host:port/path?query`, and the place of a catalog's tokens.

Only a `WebAddress` is connected to (`engine.bounds.http_exchange`), and its server is the one that trust is asked for:
a text is parsed by this module alone, and never joined as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from engine.addresses.servers import AddressError, Server, check_characters, server

PORTS: Final = {"https": 443, "http": 80}
_ADDRESS: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """`path` is as written: empty, or begins with a slash; `login` is user and password, None: there are none."""

    server: Server
    path: str = ""
    query: str = ""
    login: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The address without a login."""
        port = "" if self.server.port == PORTS[self.server.scheme] else f":{self.server.port}"
        query = f"?{self.query}" if self.query else ""
        return f"{self.server.scheme}://{self.server.host_text}{port}{self.path}{query}"

    @property
    def is_open(self) -> bool:
        """Whether what is sent can be read on its way: plain http beyond this machine."""
        return self.server.scheme == "http" and not self.server.is_loopback

    def below(self, path: str, query: str = "") -> WebAddress:
        """Return a place below this one, on the same server.

        Raises:
            AddressError: the path or query has characters that addresses do not have.
        """
        check_characters(path + query)
        if "#" in path + query or "?" in path:
            raise AddressError("has a path with ? or # in it")
        return replace(self, path=f"{self.path.rstrip('/')}/{path.lstrip('/')}", query=query, login=None)


def web_address(text: str, *, login: bool = False) -> WebAddress:
    """Parse an http or https address.

    Raises:
        AddressError: it is none, or programs could read it differently.
    """
    check_characters(text)
    match = _ADDRESS.fullmatch(text)
    scheme = (match[1] or "").lower() if match else ""
    if match is None or scheme not in PORTS:
        raise AddressError("does not begin with http:// or https://")
    _, authority, path, query, fragment = match.groups()
    if fragment is not None:
        raise AddressError("contains #, and what follows it is not sent")
    user, at, place = authority.rpartition("@")
    if at and not login:
        raise AddressError("contains a login, and it is shown in messages")
    # A password with a slash in it would make its user the host, and a part of it the port.
    if "@" in user or (login and "@" in path + (query or "")):
        raise AddressError("contains an @ whose place is not clear; one in a user or password is to be written as %40")
    return WebAddress(server(scheme, place, PORTS[scheme]), path, query or "", user if at else None)


def token_address(uri: str, named: str | None) -> WebAddress:
    """Return where a REST catalog's tokens are fetched.

    Raises:
        AddressError: either is not an address.
    """
    return web_address(named) if named else web_address(uri).below("v1/oauth/tokens")


def is_open(text: str) -> bool:
    """Whether credentials that are sent to an address can be read on their way; False for what is not an address."""
    try:
        return web_address(text, login=True).is_open
    except AddressError:
        return False
