"""What a full refresh replaces is kept: the version of the table by a tag, the checkpoint by a note beside it.

Both are written before the table is replaced. What the note says counts only for a generation that has not written
since (`TableState.discard_before`): a refresh that was killed before the replacement leaves it behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.compile import Model
from engine.lake.changes.put_back import keep_version
from engine.lake.fencing.table_fence import fence_of
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.previous_generation import (
    discard_others,
    kept_now,
    kept_seconds,
    save_previous,
)
from engine.runtime.context.run_context import Run
from engine.state import Phase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def keep_previous(run: Run, model: Model, session: SparkSession, table: TableFacts | None) -> None:
    """Keep the generation of a table that is about to be replaced, in place of those that were kept before.

    `run`: that holds the lock of the table.

    Raises:
        StateError: `lease-lost`; nothing was changed.
    """
    folder = run.state(model)
    state, seconds = folder.load(), kept_seconds(model)
    published = state is not None and state.phase is Phase.PUBLISHED and state.query_id is not None
    ours = table is not None and state is not None and table.uuid == state.uuid
    if state is None or not published or not ours or not seconds:
        discard_others(folder, 0)
        return
    version = keep_version(session, model.relation.sql, seconds, fence_of(run.lease_marker(model)))
    discard_others(folder, state.generation)
    if version is not None:
        save_previous(folder, kept_now(state, version, seconds))
