"""What a table is at some time: the part of its metadata that a replacement changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableVersion:
    """What a table is at some time.

    Attributes:
        snapshot: that readers see.
        schema: the number of its columns in the table's metadata.
        spec: of its partitioning.
        order: of its sort order.
        properties: of the table.
    """

    snapshot: int
    schema: int
    spec: int
    order: int
    properties: Mapping[str, str]
