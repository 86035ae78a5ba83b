"""A rebuild of streaming tables beside those that are read and written (`engine build --rebuild`).

Each table of it is called `<table>__next` and has a state folder of its own, where a note says what it belongs to.
Until it is published it is built as any other table is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from engine.compile import Model, Relation, Target
from engine.plan.deployed.state_folder import table_state
from engine.state import TableOperation, TableState

SUFFIX = "__next"


class RebuildStep(StrEnum):
    BUILDING = "building"
    PUBLISHING = "publishing"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class BegunRebuild:
    """A rebuild that was begun, and not finished.

    Attributes:
        at: when, UTC.
        models: the names of all that are rebuilt together, in the order of their references.
        step: from `PUBLISHING` on nothing is written to its tables any more.
    """

    at: str
    model: str
    models: tuple[str, ...]
    step: RebuildStep = RebuildStep.BUILDING

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def next_relation(relation: Relation) -> Relation:
    return replace(relation, name=f"{relation.name}{SUFFIX}")


def next_state(target: Target, model: Model) -> TableState:
    folder = table_state(target, model)
    return replace(folder, table=f"{folder.table}{SUFFIX}")


def begun_rebuild(folder: TableState) -> BegunRebuild | None:
    """Return the rebuild that a table belongs to; None: it is a table like others.

    Raises:
        StateError: `state-unreadable`.
    """
    noted: Mapping[str, Any] | None = folder.operation(TableOperation.REBUILD)
    if noted is None:
        return None
    names, step = noted.get("models"), str(noted.get("step"))
    models = tuple(map(str, names)) if isinstance(names, list) else ()
    known = RebuildStep(step) if step in set(RebuildStep) else RebuildStep.BUILDING
    return BegunRebuild(str(noted.get("at", "")), str(noted.get("model", "")), models, known)
