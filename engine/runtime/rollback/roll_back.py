"""`engine rollback`: the generation that a full refresh has replaced is the table's again, with its checkpoint.

Steps: what the table is now is noted as kept and one commit puts the table back (no row is copied), the state of the
earlier generation, that of the other one goes. After a kill at any moment the same command finishes; a build of that
table ends with `rollback-unfinished` until then. The other generation takes the place of the one that came back: a
second rollback undoes the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from engine import kill_points
from engine.compile import Manifest, Model, Target
from engine.errors import StateError
from engine.lake.changes.put_back import put_back, version_of
from engine.lake.fencing.table_fence import fence_of
from engine.plan.deployed.previous_generation import kept_now, kept_seconds, noted_previous, save_previous
from engine.plan.deployed.state_folder import table_state
from engine.runtime.build import spark_session
from engine.runtime.context.run_context import Run, command_run
from engine.runtime.lifecycle.fence_previous_owner import raise_fences
from engine.runtime.rollback.rollback_checks import Rollback
from engine.state import locked, operations
from engine.state.operations import Step, carry_out


@contextmanager
def opened(manifest: Manifest, target: Target, root: Path, models: Sequence[Model], target_dir: Path) -> Iterator[Run]:
    """Open the session of a command, with the locks of some models.

    Raises:
        StateError: `table-locked`, `state-unwritable`.
        SetupError: Spark or the catalog cannot be had.
    """
    with (
        locked([table_state(target, model) for model in models]) as locks,
        spark_session(target, target_dir, locks) as spark,
    ):
        run = command_run(manifest, target, root, spark)
        raise_fences(run, models)
        yield run


def roll_back(run: Run, one: Rollback) -> None:
    """Bring the earlier generation of a table back, or finish that.

    Args:
        run: with the session and the lock of the table.
        one: what comes back, as it was found under the lock.

    Raises:
        StateError: `lease-lost`, `state-unreadable`.
    """
    model, folder, previous = one.model, run.state(one.model), one.previous
    note = folder.journal.begun(operations.Rollback)
    if note is None:
        state = folder.load()
        if state is None:
            raise ValueError(model.name)
        note = operations.Rollback(previous.state.generation, state.generation)
    # In this order: as long as both have a model.json, the newer counts, and the note says that it does not.
    steps = [
        Step("put back", partial(_exchange, run, one, note.other)),
        Step("brought back", partial(folder.save, previous.state)),
        Step("retired", partial(folder.retire, note.other)),
    ]
    carry_out([(folder.journal, note)], steps, model.name)
    kill_points.reach("unnoted", model.name)
    folder.forget_previous(note.to)


def _exchange(run: Run, one: Rollback, other: int) -> None:
    """Put the table back, and keep what it is now; done before, it stays as it is."""
    model, folder, previous = one.model, run.state(one.model), one.previous
    relation, session = model.relation, run.spark.newSession()
    table = run.lake.table(relation.schema, relation.name)
    if table is not None and table.holds(previous.table.snapshot):
        return
    state = next((state for state in [folder.load()] if state is not None and state.generation == other), None)
    if state is None or noted_previous(folder, previous.state.generation) is None:
        message = f"the state of {relation} is not the one that the rollback began with"
        raise StateError(
            "state-copied", message, f"Rebuild the table: engine build -f -s {model.name}", node=model.name
        )
    seconds = kept_seconds(model)
    save_previous(folder, kept_now(state, version_of(session, relation.sql), seconds))
    put_back(session, relation.sql, previous.table, seconds, fence_of(run.lease_marker(model)))
