"""Lists of servers: Kafka's bootstrap servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.addresses.servers import Server, server


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
