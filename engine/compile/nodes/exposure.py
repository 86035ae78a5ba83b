"""What reads a project's tables from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import Location


@dataclass(frozen=True, slots=True)
class Exposure:
    """A dashboard, a notebook, a service or the like that reads tables of the project.

    Attributes:
        kind: dashboard, notebook, analysis, ml or application.
        owner: whom to ask: `name`, `email`, and what else was written.
        label: a title for people; empty: its name.
        maturity: high, medium or low; empty: not said.
    """

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
