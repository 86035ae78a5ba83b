"""Logins of the user or the machine that clients take by themselves, and the places that a target sends them to.

The AWS SDK finds a login in the environment, a profile or the role of the machine, and libpq takes PGPASSWORD. AWS's
own hosts get the first anyway.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from engine.secrets.secret_places import Gift, places

AWS: Final = "the AWS login of this machine"
_POSTGRES: Final = "PGPASSWORD"
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn")


def of_machine(kind: str, keys: Mapping[str, str]) -> tuple[Gift, ...]:
    """Return what the catalog of a target gives away without naming it.

    Args:
        kind: of the catalog.
        keys: of its block.
    """
    if kind == "jdbc" and "jdbc.password" not in keys and os.environ.get(_POSTGRES):
        return _gifts(_POSTGRES, {"uri": keys.get("uri", "")})
    given = []
    if kind == "rest" and keys.get("rest.sigv4-enabled", "").lower() == "true" and "rest.access-key-id" not in keys:
        given.append(keys.get("uri", ""))
    if kind == "glue" and not {"glue.access-key-id", "client.access-key-id", "s3.access-key-id"} & keys.keys():
        given.append(keys.get("glue.endpoint", ""))
    if "s3.access-key-id" not in keys:
        given.append(keys.get("s3.endpoint", ""))
    return tuple(gift for address in given for gift in _of_aws(address))


def of_store(keys: Mapping[str, str]) -> tuple[Gift, ...]:
    """Return what the `s3:` of a target gives away without naming it."""
    return () if "access_key_id" in keys else _of_aws(keys.get("endpoint", ""))


def _of_aws(address: str) -> tuple[Gift, ...]:
    return tuple(gift for gift in _gifts(AWS, {"url": address}) if not gift.place.partition(":")[0].endswith(_AMAZON))


def _gifts(name: str, block: Mapping[str, str]) -> tuple[Gift, ...]:
    return tuple(Gift(name, place) for place in places(block, "")) if any(block.values()) else ()
