"""`engine rollback`: the generation that a full refresh has replaced is the table's again, with its checkpoint.

One commit puts the table back (no row is copied), then the state. After a kill the same command finishes; a build ends
with `rollback-unfinished` until then. The other generation is kept instead: a second rollback undoes the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine import kill_points
from engine.compile import Manifest, Model, Source, Target
from engine.errors import Diagnostic, Location, StateError
from engine.lake.changes.put_back import put_back, version_of
from engine.lake.commits import PREVIOUS, STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.lake.table_fence import fence_of
from engine.plan.actions.refresh_checks import DOWNSTREAM_STOPS
from engine.plan.actions.state_checks import check_table
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.generations import (
    PreviousGeneration,
    kept_now,
    kept_seconds,
    noted_previous,
    previous_generation,
    save_previous,
)
from engine.plan.deployed.renamed_tables import state_now
from engine.plan.deployed.state_folder import table_state
from engine.runtime.build import spark_session
from engine.runtime.context.ownership import raise_fences
from engine.runtime.context.run_context import Run, command_run
from engine.runtime.sinks import deleted_keys
from engine.state import TableState, locked, operations
from engine.state import checkpoint as spark_checkpoint
from engine.state.operations import Step, carry_out

UNAVAILABLE = "rollback-unavailable"


@dataclass(frozen=True, slots=True)
class Rollback:
    model: Model
    folder: TableState
    replaced_generation: PreviousGeneration
    table: TableFacts
    is_resumed: bool = False

    @property
    def rows(self) -> int | None:
        return self.table.rows


def rollbacks(
    manifest: Manifest, target: Target, models: Sequence[Model], accept: Collection[str]
) -> tuple[tuple[Rollback, ...], tuple[Diagnostic, ...]]:
    """Return which of some models go back, and what forbids it.

    Those without an earlier generation are left out if another one has one.

    Raises:
        StateError: `state-unreadable`.
        SetupError: the catalog cannot be read.
    """
    lake = Lake(target.catalog)
    possible: list[Rollback] = []
    unavailable: list[Diagnostic] = []
    computed: list[Diagnostic] = []
    faults: list[Diagnostic] = []
    for model in models:
        if not model.streaming or not model.in_catalog:
            computed.append(_unavailable(model, _NOT_STREAMING.format(model.name), _BATCH))
            continue
        rollback = _rollback(target, lake, model)
        if isinstance(rollback, Diagnostic):
            unavailable.append(rollback)
        else:
            possible.append(rollback)
            faults += _faults(manifest, lake, rollback)
    if not possible:
        # What is downstream of a stream is computed again anyway.
        return (), tuple(unavailable or computed)
    faults += (
        fault for rollback in possible if (fault := _unread_gone(manifest, lake, rollback, possible)) is not None
    )
    if DOWNSTREAM_STOPS not in accept:
        faults += _stopped(manifest, target, possible)
    return tuple(possible), tuple(faults)


_NOT_STREAMING = "'{0}' is not a streaming table, and no generation of it is kept"
_BATCH = "Undo the edit and build it: a batch table or view is computed from its query."


def _unavailable(model: Model, message: str, hint: str) -> Diagnostic:
    return Diagnostic(UNAVAILABLE, message, hint, node=model.name, location=Location(model.file))


def _rollback(target: Target, lake: Lake, model: Model) -> Rollback | Diagnostic:
    folder, relation = table_state(target, model), model.relation
    note = folder.journal.open_operation(operations.Rollback)
    replaced_generation = noted_previous(folder, note.to) if note is not None else previous_generation(folder)
    table = lake.table(relation.schema, relation.name, PREVIOUS)
    if (
        note is not None
        and table is not None
        and replaced_generation is not None
        and table.snapshot != replaced_generation.table.snapshot
    ):
        # It is the table again; the tag has what it replaced.
        table = lake.table(relation.schema, relation.name)
    hint = "A full refresh keeps the replaced version for the time of 'keep_previous'. To rebuild it: engine build -f "
    hint += f"-s {model.name}"
    if replaced_generation is None or table is None:
        return _unavailable(model, f"no earlier generation of '{model.name}' is kept", hint)
    is_kept = note is not None or table.snapshot == replaced_generation.table.snapshot
    if not is_kept or replaced_generation.table.snapshot not in table.snapshots:
        return _unavailable(model, f"the earlier version of {relation} has expired", hint)
    return Rollback(model, folder, replaced_generation, table, note is not None)


def _faults(manifest: Manifest, lake: Lake, rollback: Rollback) -> Iterator[Diagnostic]:
    if rollback.is_resumed:
        return
    model, state, table = rollback.model, rollback.replaced_generation.state, rollback.table
    build = f"engine build -s {model.name}"
    if (
        STAGED in table.branches
        or rollback.folder.unpublished() is not None
        or rollback.folder.journal.open_operation(operations.Refresh) is not None
    ):
        message = f"a build of '{model.name}' is not finished, or its rows are staged"
        yield _unavailable(model, message, f"Finish it first: {build}, or engine publish {model.name} --accept")
        return
    hint = f"Undo the edit and rebuild the table: engine build -f -s {model.name}"
    try:
        check_table(model, state, read_checkpoint(rollback.folder, state.generation, files=False), table)
    except StateError as error:
        yield _unavailable(model, f"the earlier generation cannot continue: {error.diagnostic.message}", hint)
    for item in model.inputs:
        node = manifest.nodes[item.node]
        if item.stream and isinstance(node, Source) and "after_reading" in node.spec.settings:
            message = f"files of '{item.name}' that were read since the full refresh are archived or deleted"
            hint = (
                f"The earlier generation of '{model.name}' would never read them. Undo the edit and rebuild the table."
            )
            yield _unavailable(model, message, hint)
    if model.write.delete_when is not None and _deletes_gone(lake, rollback):
        message = f"the deleted keys of the earlier generation of '{model.name}' are gone: their types changed"
        yield _unavailable(model, message, f"Undo the edit and rebuild the table: engine build -f -s {model.name}")


def _unread_gone(
    manifest: Manifest, lake: Lake, rollback: Rollback, rollbacks_together: Sequence[Rollback]
) -> Diagnostic | None:
    """Say so if a table that a model streams from has no longer what the earlier generation had not read of it."""
    read_nodes = [manifest.nodes[item.node] for item in rollback.model.inputs if item.stream]
    if rollback.is_resumed or not all(isinstance(node, Model) for node in read_nodes):
        return None
    back = {rolled_back.model.id: rolled_back.table for rolled_back in rollbacks_together}
    state, folder = rollback.replaced_generation.state, rollback.folder
    relations = [node.relation for node in read_nodes if isinstance(node, Model) and node.id not in back]
    names = [(relation.schema, relation.name) for relation in relations]
    # The tables with their first rows.
    seeds = (str(start.get("seed") or "") for start in state.starts.values())
    names += [(folder.schema, seed.rpartition(".")[2]) for seed in seeds if seed]
    tables = [*(table for name in names if (table := lake.table(*name)) is not None), *back.values()]
    known_snapshots = {
        number for table in tables for snapshot in table.history for number in (snapshot.id, snapshot.parent)
    }
    positions = (offset.get("snapshot_id") for offset in spark_checkpoint.standing(folder.checkpoint(state.generation)))
    if all(position in known_snapshots for position in positions if isinstance(position, int)):
        return None
    names_read = ", ".join(f"'{node.name}'" for node in read_nodes)
    message = (
        f"rows of {names_read} that '{rollback.model.name}' had not read before its full refresh have expired or were "
        "replaced"
    )
    return _unavailable(
        rollback.model, message, f"Undo the edit and rebuild the table: engine build -f -s {rollback.model.name}"
    )


def _deletes_gone(lake: Lake, rollback: Rollback) -> bool:
    """Whether the table of deleted keys was replaced since: that commit is of no micro-batch."""
    relation = rollback.model.relation
    table = lake.table(relation.schema, relation.name + deleted_keys.SUFFIX)
    commits = table.history if table is not None else ()
    # A refresh begins before it replaces.
    refreshed_at = max((s.at for s in rollback.table.history[:1]), default=0)
    return any(s.marker("model") is not None and s.marker("batch-id") is None and s.at >= refreshed_at for s in commits)


def _stopped(manifest: Manifest, target: Target, rollbacks_together: Sequence[Rollback]) -> Iterator[Diagnostic]:
    back = {rollback.model.id: rollback for rollback in rollbacks_together}
    for rollback in rollbacks_together:
        if rollback.is_resumed:
            continue
        then = {snapshot.id for snapshot in rollback.table.history} | {s.parent for s in rollback.table.history}
        lost_snapshots = rollback.table.snapshots - then
        names = [
            reader.name
            for reader in manifest.models
            if any(item.stream and item.node == rollback.model.id for item in reader.inputs)
            and lost_snapshots & set(_positions(target, reader, back.get(reader.id)))
        ]
        if names:
            yield _stopping(rollback.model, names)


def _positions(target: Target, reader: Model, back: Rollback | None) -> Iterator[int]:
    folder = state_now(target, reader)
    state = back.replaced_generation.state if back is not None else folder.load()
    for offset in spark_checkpoint.standing(folder.checkpoint(state.generation)) if state is not None else ():
        if isinstance(snapshot := offset.get("snapshot_id"), int):
            yield snapshot


def _stopping(model: Model, names: Sequence[str]) -> Diagnostic:
    single, readers = len(names) == 1, ", ".join(f"'{name}'" for name in names)
    pronoun = "it" if single else "them"
    message = (
        f"{readers} {'has' if single else 'have'} read rows of '{model.name}' that it will not have, and cannot resume"
    )
    hint = (
        f"Roll {pronoun} back too: engine rollback {model.name}+. Where no earlier generation of "
        f"{'it is' if single else 'them is'} kept: --accept {DOWNSTREAM_STOPS}, and rebuild {pronoun}"
    )
    return Diagnostic(DOWNSTREAM_STOPS, message, hint, node=model.name, location=Location(model.file))


@contextmanager
def open_run(
    manifest: Manifest, target: Target, root: Path, models: Sequence[Model], target_dir: Path
) -> Iterator[Run]:
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


def roll_back(run: Run, rollback: Rollback) -> None:
    """Bring the earlier generation of a table back, as found under the lock, or finish that.

    Raises:
        StateError: `lease-lost`, `state-unreadable`.
    """
    model, folder, replaced_generation = rollback.model, run.state(rollback.model), rollback.replaced_generation
    note = folder.journal.open_operation(operations.Rollback)
    if note is None:
        state = folder.load()
        if state is None:
            raise ValueError(model.name)
        note = operations.Rollback(replaced_generation.state.generation, state.generation)
    # In this order: as long as both have a model.json, the newer counts, and the note says that it does not.
    steps = [
        Step("put back", partial(_exchange, run, rollback, note.other)),
        Step("brought back", partial(folder.save, replaced_generation.state)),
        Step("retired", partial(folder.retire, note.other)),
    ]
    carry_out([(folder.journal, note)], steps, model.name)
    kill_points.reach("unnoted", model.name)
    folder.forget_previous(note.to)


def _exchange(run: Run, rollback: Rollback, current_generation: int) -> None:
    """Put the table back, and keep what it is now; done before, it stays as it is."""
    model, folder, replaced_generation = rollback.model, run.state(rollback.model), rollback.replaced_generation
    relation, session = model.relation, run.spark.newSession()
    table = run.lake.table(relation.schema, relation.name)
    if table is not None and table.holds(replaced_generation.table.snapshot):
        return
    state = next(
        (state for state in [folder.load()] if state is not None and state.generation == current_generation), None
    )
    if state is None or noted_previous(folder, replaced_generation.state.generation) is None:
        message = f"the state of {relation} is not the one that the rollback began with"
        raise StateError(
            "state-copied", message, f"Rebuild the table: engine build -f -s {model.name}", node=model.name
        )
    seconds = kept_seconds(model)
    save_previous(folder, kept_now(state, version_of(session, relation.sql), seconds))
    put_back(session, relation.sql, replaced_generation.table, seconds, fence_of(run.lease_marker(model)))
