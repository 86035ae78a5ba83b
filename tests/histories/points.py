"""What happens at a named point of a build in this process: the model fails there, or somebody else acts on its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine import kill_points
from engine.errors import RunError

NAMES = ("computing", "committing", "committed", "recorded")
IN_BACKFILL = ("backfilling", "committing", "backfilled", "reader moved")
# Of a table that is built beside the other one (with the end of its name), and of the publication.
IN_REBUILD = (
    *((point, "__next") for point in ("computing", "committing", "committed", "recorded")),
    *((point, "") for point in ("rebuild noted", "generation copied", "taken over", "previous kept", "replacing",
                                "replaced", "noted", "rebuild published")),
)  # fmt: skip
IN_RENAME = ("begun", "renamed", "rewritten", "moved")
IN_ROLLBACK = ("begun", "put back", "brought back", "retired", "unnoted")
# A code that the engine knows; no history meets it otherwise.
CODE = "interrupted"


@dataclass(slots=True)
class Armed:
    """What is to happen when a table comes by a point for the n-th time."""

    point: str
    table: str
    skip: int
    act: Callable[[], Any]
    happened: bool = False


def fail() -> None:
    """End the model here."""
    raise RunError(CODE, "the process was to die here")


class Points:
    """The points of this process; they are planted once."""

    _planted: Points | None = None

    def __init__(self) -> None:
        self.armed: Armed | None = None
        self.end = kill_points.listen(self.arrive)

    @classmethod
    def planted(cls) -> Points:
        if cls._planted is None:
            cls._planted = cls()
        return cls._planted

    @classmethod
    def removed(cls) -> None:
        """Leave the process as if there had been none."""
        if cls._planted is not None:
            cls._planted.end()
            cls._planted = None

    def arrive(self, point: str, table: str, *_: object) -> None:
        armed = self.armed
        if armed is None or armed.happened or (point, table) != (armed.point, armed.table):
            return
        if armed.skip > 0:
            armed.skip -= 1
            return
        armed.happened = True
        armed.act()
