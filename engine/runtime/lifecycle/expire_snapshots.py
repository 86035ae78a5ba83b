"""Expiry of old snapshots at the end of a build, so that a table's metadata stays bounded without `engine maintain`.

Each commit writes the list of all snapshots again: 600 micro-batches left 600 of them, in a file of 676 KB.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.compile import Model
from engine.errors import Diagnostic, EngineError, Level
from engine.events import Diagnosed
from engine.lake import maintenance_procedures
from engine.lake.commits import STAGED
from engine.lake.table_facts import TableFacts
from engine.runtime.lifecycle.needed_snapshots import (
    AGE,
    RETAIN,
    needed_snapshots,
    not_after,
    number_of,
    relations_of,
)
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.secrets import scrub

if TYPE_CHECKING:
    from engine.compile import Relation
    from engine.runtime.context.run_context import Run

_log = logging.getLogger("engine.runtime")

# Unless the table says how old a snapshot may be, more than this many do not stay, once they are an hour old.
MOST_SNAPSHOTS = 1_000
_HOUR_MS = 60 * 60 * 1000
# Expiry is a commit: it waits until it is worth one.
_WORTH = 20


def expire_snapshots(run: Run, models: Iterable[Model]) -> None:
    """Expire the old snapshots of models' tables, where there are enough of them.

    What `engine maintain` keeps, stays: what the model wrote last, what readers in the project have not read, staged
    rows. A table that cannot be maintained now is left to a later build, and the log has the reason.
    """
    failures: tuple[type[Exception], ...] = (*spark_exceptions(), EngineError, OSError, ValueError)
    for model in models:
        for relation in relations_of(model):
            try:
                _expire(run, model, relation)
            except failures as error:
                # The run is over, and what it wrote stays: nothing here may undo that.
                _log.warning("old snapshots of %s were not expired", relation, exc_info=True)
                run.emit(Diagnosed(_skipped(model, relation, error)))


def _skipped(model: Model, relation: Relation, error: Exception) -> Diagnostic:
    message = f"old snapshots of {relation} were not expired: {scrub(summary(str(error)))}"
    hint = f"The rows are written. Look for the cause with: engine maintain -s {model.name}"
    return Diagnostic("maintenance-skipped", message, hint, Level.WARNING, node=model.name)


def _expire(run: Run, model: Model, relation: Relation) -> None:
    table = run.lake.table(relation.schema, relation.name)
    if table is None or STAGED in table.branches or table.properties.get("engine.model") != model.name:
        return
    if table.properties.get("gc.enabled", "true").lower() == "false":
        return
    retain = number_of(table, RETAIN)
    allowed = _allowed_by_age(table, int(time.time() * 1000))
    if _older(table, allowed, retain) < _WORTH:
        return
    needed = needed_snapshots(run.manifest, run.target, model, relation, table)
    before = int(min(allowed, not_after(table, needed.values())))
    if (count := _older(table, before, retain)) >= _WORTH:
        maintenance_procedures.expire_here(run.spark.newSession(), relation, before, retain)
        _log.info("expired %d snapshots of %s", count, relation)


def _allowed_by_age(table: TableFacts, now: int) -> int:
    old = now - number_of(table, AGE)
    if AGE[0] in table.properties or len(table.history) <= MOST_SNAPSHOTS:
        return old
    return max(old, min(table.history[MOST_SNAPSHOTS - 1].at, now - _HOUR_MS))


def _older(table: TableFacts, before: int, retain: int) -> int:
    return sum(snapshot.at < before for snapshot in table.history[retain:])
