"""Addresses of services: their parts, and whether what is sent to them can be read on its way."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit


def address_parts(url: str) -> SplitResult | None:
    """The parts of a web address; None if it is none.

    A password with a slash in it, not encoded, would make its user the host and a part of it the port.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    odd = "@" in parts.path + parts.query + parts.fragment or port == 0
    return parts if parts.scheme in {"http", "https"} and parts.hostname and not odd else None


def is_open(url: str) -> bool:
    """Whether credentials that are sent to an address can be read on their way: plain http beyond this machine.

    Of a host that is a template nothing is known.
    """
    parts = address_parts(url.strip())
    if parts is None or parts.scheme != "http" or parts.hostname is None or "{" in parts.hostname:
        return False
    try:
        return not ip_address(parts.hostname).is_loopback
    except ValueError:
        return parts.hostname.rstrip(".") != "localhost"
