"""Addresses of data in a Flare job: `dataos://depot:collection/dataset?acl=r`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.project.yaml_section import is_name, is_table_name

_ADDRESS = re.compile(r"dataos://([\w-]+)(?::([\w.-]*))?(?:/([^?#]*))?(?:[?#].*)?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where data is.

    Attributes:
        depot: a system, such as a broker or a catalog.
        collection: a namespace in it.
        dataset: a topic or table.
    """

    depot: str
    collection: str
    dataset: str


def read_address(text: str) -> Address | None:
    """Read an address; None if it has another form."""
    found = _ADDRESS.fullmatch(text.strip())
    return Address(found[1], found[2] or "", found[3] or "") if found else None


def table_name(text: str) -> str:
    """A name that a model or table can have."""
    name = re.sub(r"[^a-z0-9_]+", "_", text.casefold()).strip("_")[:100] or "unnamed"
    return name if is_table_name(name) else f"m_{name}"


def plain_name(text: str) -> str:
    """A name that a source, connection or namespace can have."""
    name = re.sub(r"[^a-z0-9_]+", "_", text.casefold()).strip("_")[:100] or "unnamed"
    return name if is_name(name) else f"s_{name}"
