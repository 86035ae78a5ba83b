"""Raising a fence in the tables of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engine.lake.commits import CONFLICTS, STAGED, STAGED_LAYOUT, until_committed
from engine.lake.fencing.table_fence import FENCE
from engine.lake.table_writer import load
from engine.state.lease import Lease

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def raise_fence(session: SparkSession, relations: Iterable[str], lease: Lease) -> None:
    for relation in relations:
        until_committed(lambda name=relation: _raise(session, name, lease.number), CONFLICTS)  # type: ignore[misc]


def _raise(session: SparkSession, relation: str, number: int) -> None:
    table: Any = load(session, relation)
    raised_to = table.properties().get(FENCE)
    if raised_to is not None and int(raised_to) >= number:
        return
    change = table.newTransaction()
    change.updateProperties().set(FENCE, str(number)).commit()
    # A REST catalog compares no properties, but the snapshot that a commit is made onto.
    added = change.newAppend().set(FENCE, str(number))
    if table.refs().containsKey(STAGED) and STAGED_LAYOUT not in dict(table.properties()):
        # Main has to stay where the branch begins. (A replacement that is staged takes the place of main in any case.)
        added = added.toBranch(STAGED)
    added.commit()
    change.commitTransaction()
