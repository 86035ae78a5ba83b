"""Where a table's committed rows are delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import Location


@dataclass(frozen=True, slots=True)
class Sink:
    """A delivery of a model's table.

    `key` empty: rows are only added. `columns` empty: all that hold no personal data. `from_now`: the first delivery
    sends only later changes. `topic`: of Kafka; empty: it delivers to `table`. `create`: the table or
    topic is made at the first delivery.
    """

    id: str
    name: str
    model: str
    connection: str
    table: str = ""
    topic: str = ""
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    from_now: bool = False
    create: bool = False
    description: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    location: Location | None = None

    @property
    def depends_on(self) -> tuple[str, ...]:
        return (self.model,)

    @property
    def place(self) -> str:
        """Where the rows are delivered, for people."""
        return f"{self.connection}: {self.table or self.topic}"
