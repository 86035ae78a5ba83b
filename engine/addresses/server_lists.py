"""Lists of servers: Kafka's bootstrap servers and the addresses of a Hive metastore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.addresses.servers import AddressError, Server, check_characters, server

_THRIFT: Final = "thrift://"
_HIVE_PORT: Final = 9083


def listed(value: Any) -> Sequence[str]:
    """Return the texts of a list of addresses, which is a list or has commas between them, without blanks around them.

    Only ASCII blanks are taken off: other characters belong to an address, and are an error there.
    """
    texts = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return [str(text).strip(" ") for text in texts]


def kafka_server(text: str) -> Server:
    """Parse `host:port`.

    Raises:
        AddressError: it is something else.
    """
    return server("kafka", text)


def thrift_servers(uri: str) -> tuple[Server, ...]:
    """Parse one or more of `thrift://host:port`, with commas between them.

    Raises:
        AddressError: one is something else.
    """
    return tuple(_thrift(text) for text in listed(uri))


def _thrift(text: str) -> Server:
    check_characters(text)
    place = text.removeprefix(_THRIFT)
    if place == text:
        raise AddressError("does not begin with thrift://")
    return server("thrift", place.removesuffix("/"), _HIVE_PORT)
