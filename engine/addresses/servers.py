"""Hosts and ports: the grammar that every client of a server reads in the same way.

A host is a name of ASCII letters, an IPv4 address in four decimal numbers, or an IPv6 address. Everything that two
programs could read differently is an error: blanks, letters beyond ASCII, `127.1` and `0177.0.0.1` (glibc and Java
connect to different machines), percent signs (urllib decodes them), zones of IPv6 addresses.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

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
    """`scheme` and `host` are in lower case, IPv6 is shortest, without brackets; `port` is always there."""

    scheme: str
    host: str
    port: int

    @property
    def host_text(self) -> str:
        """The host as addresses have it: an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent does not leave this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host.rstrip(".") == "localhost"


def server(scheme: str, text: str, default_port: int | None = None) -> Server:
    """Parse `host`, `host:port` or `[IPv6]:port`.

    Raises:
        AddressError: the text is not a host with a port.
    """
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
    """Check that a text has only characters that addresses have.

    Raises:
        AddressError: there is a blank, a control character, a letter beyond ASCII, or another that programs read
            differently.
    """
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
    what = f"contains {unicodedata.name(character, 'a character').lower()} (U+{ord(character):04X})"
    authority = re.split(r"[/?#\\]", text.partition("://")[2] or text, maxsplit=1)[0].rpartition("@")[2]
    shown = punycode(authority.partition(":")[0])
    return f"{what}, and its host is {shown}" if shown != authority.partition(":")[0] else what


def punycode(host: str) -> str:
    """Return a host with each part that has letters beyond ASCII in punycode, so that look-alikes are seen."""
    return ".".join(
        part if part.isascii() else f"xn--{part.lower().encode('punycode', 'replace').decode('ascii', 'replace')}"
        for part in host.split(".")
    )
