"""What reads a project's tables from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import Location


@dataclass(frozen=True, slots=True)
class Exposure:
    """A dashboard, notebook, service or the like that reads tables; `label` empty: its name."""

    id: str
    name: str
    kind: str
    owner: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    description: str = ""
    url: str = ""
    maturity: str = ""
    depends_on: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    location: Location | None = None
