"""What a table is at some time: the part of its metadata that a replacement changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableVersion:
    snapshot: int
    schema: int
    spec: int
    order: int
    properties: Mapping[str, str]
