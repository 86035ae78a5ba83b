"""How far a sink has delivered, as it is stored beside the delivered rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from engine.errors import StateError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """The changes of a table up to here are delivered.

    Attributes:
        table: UUID of the Iceberg table.
        snapshot: the last one that is delivered completely; None: none is.
        reading: the one of which a part is delivered; None: there is none.
        base: what `reading` is compared with; None: with a table without rows.
        file: the data file of `reading` that was read last.
        row: how many rows of that file were read, deleted ones included.
        key: the columns that identify a row in the target.
        columns: those that are delivered.
    """

    table: str
    snapshot: int | None = None
    reading: int | None = None
    base: int | None = None
    file: str = ""
    row: int = 0
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps({"version": _VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, sink: str, content: str | Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote. Raises StateError: `sink-position`: it is something else."""
        try:
            fields = json.loads(content) if isinstance(content, str) else dict(content)
            if fields.pop("version") == _VERSION:
                return cls(**{**fields, "key": tuple(fields["key"]), "columns": tuple(fields["columns"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        message = f"the stored position of the sink '{sink}' cannot be read"
        hint = f"Write a new one: engine sink reset {sink} --to now, or --to earliest."
        raise StateError("sink-position", message, hint)
