"""Logins of the user or the machine that clients take by themselves, and the places that a target sends them to.

The AWS SDK finds a login in the environment, a profile or the role of the machine, and libpq takes PGPASSWORD. The
services of AWS get the first without a question, at their own hosts only: many others below amazonaws.com belong to
whoever rents them (API gateways, load balancers, machines).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from engine.addresses import AddressError, web_address
from engine.secrets.secret_places import Gift, places

AWS: Final = "the AWS login of this machine"
_POSTGRES: Final = "PGPASSWORD"
_AMAZON: Final = re.compile(
    r"(?:s3|s3-fips|s3tables|glue|glue-fips)(?:\.dualstack)?\.[a-z]{2}(?:-[a-z]+){1,3}-[0-9]{1,2}\.amazonaws\.com(?:\.cn)?|s3\.amazonaws\.com"
)


def machine_gifts(kind: str, keys: Mapping[str, str]) -> tuple[Gift, ...]:
    """Return the logins that a catalog of type `kind` sends without naming them, by its keys."""
    if kind == "jdbc" and "jdbc.password" not in keys and os.environ.get(_POSTGRES):
        return _gifts(_POSTGRES, {"uri": keys.get("uri", "")})
    addresses = []
    if kind == "rest" and keys.get("rest.sigv4-enabled", "").lower() == "true" and "rest.access-key-id" not in keys:
        addresses.append(keys.get("uri", ""))
    if "s3.access-key-id" not in keys:
        addresses.append(keys.get("s3.endpoint", ""))
    return tuple(gift for address in addresses for gift in _aws_gifts(address))


def store_gifts(keys: Mapping[str, str]) -> tuple[Gift, ...]:
    return () if "access_key_id" in keys else _aws_gifts(keys.get("endpoint", ""))


def _aws_gifts(address: str) -> tuple[Gift, ...]:
    return () if _is_amazons(address) else _gifts(AWS, {"url": address})


def _is_amazons(address: str) -> bool:
    try:
        server = web_address(address).server
    except AddressError:
        return False
    return server.scheme == "https" and server.port == 443 and _AMAZON.fullmatch(server.host) is not None  # noqa: PLR2004 - https


def _gifts(name: str, block: Mapping[str, str]) -> tuple[Gift, ...]:
    """Return the gifts of a block; an address that cannot be parsed is a place that nobody has confirmed."""
    return tuple(Gift(name, place) for place in places(block, "address")) if any(block.values()) else ()
