"""`engine erase`: rows of a person leave a model's table, what the engine keeps beside it, and the disk.

For each table: the rows and the lists of files that had them, streams that have read the table move past its earlier
snapshots, those expire, files that no snapshot knows go. After a kill the same command finishes: each undone step shows
in the table itself. The lock of the model and of its readers is held. `model.json` hears of the new snapshot last:
until then the commits repeat the markers of the last micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Manifest, Model, Source, Target
from engine.errors import Diagnostic, Location, RunError, StateError
from engine.lake.changes.erase_files import erase_rows, expire_all, remove_files
from engine.lake.commit_guard import ExpectedTable
from engine.lake.commits import STAGED
from engine.lake.table_facts import TableFacts
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.generations import discard_others
from engine.plan.deployed.state_folder import next_state, table_state
from engine.runtime.build import spark_session
from engine.runtime.context.ownership import raise_fences, repeated_markers
from engine.runtime.context.run_context import CORE, Run, command_run
from engine.runtime.erasure.erased_tables import ErasedTable, EraseRequest, erased_tables
from engine.runtime.erasure.matching_rows import MATCHES, Matches, find_matches
from engine.runtime.erasure.stream_positions import move_past, positions, unread_faults
from engine.runtime.inputs import initial_snapshot
from engine.runtime.lifecycle import full_refresh
from engine.runtime.operations.drop_table import check_finished
from engine.runtime.spark_support.spark_errors import environment_fault_in, spark_exceptions, summary
from engine.secrets.scrubber import scrub
from engine.sources import source_traits
from engine.state import locked
from engine.state.operations import Rebuild, Refresh
from engine.state.state_path import StatePath, remove_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BLOCKED = "erase-blocked"


def check_blockers(run: Run, model: Model, tables: Sequence[ErasedTable]) -> None:
    """Check that nothing of a model is begun and not finished, and that nobody else keeps snapshots of its tables.

    Raises StateError: `erase-blocked` with each reason, `drop-unfinished`; nothing was changed.
    """
    check_finished([run.state(model)])
    faults = [
        *_unfinished(run, model, tables),
        *_rebuilt(run),
        *(fault for table in tables for fault in _pinning_references(table)),
    ]
    if faults:
        raise StateError.from_diagnostics([fault.at(Location(model.file), model.name) for fault in faults])


def _unfinished(run: Run, model: Model, tables: Sequence[ErasedTable]) -> Iterator[Diagnostic]:
    folder, build = run.state(model), f"engine build -s {model.name}"
    if any(STAGED in table.facts.branches for table in tables if table.relation == model.relation):
        message = f"rows of '{model.name}' are staged for its tests"
        hint = f"Publish them first: engine test -s {model.name}, or engine publish {model.name} --accept"
        yield Diagnostic(BLOCKED, message, hint)
    state = folder.load()
    if folder.unpublished() is not None or folder.journal.open_operation(Refresh) is not None:
        yield Diagnostic(BLOCKED, f"a full refresh of '{model.name}' is not finished", f"Finish it first: {build}")
    elif state is not None and model.streaming:
        checkpoint = read_checkpoint(folder, state.generation, files=False)
        if checkpoint.started != checkpoint.committed:
            message = f"a micro-batch of '{model.name}' was started and is not finished"
            yield Diagnostic(BLOCKED, message, f"Finish it first: {build}")


def _rebuilt(run: Run) -> Iterator[Diagnostic]:
    for model in run.manifest.models:
        if model.streaming and next_state(run.target, model).journal.open_operation(Rebuild) is not None:
            message = f"the rebuild of '{model.name}' is not published, and may have the rows"
            yield Diagnostic(BLOCKED, message, "Finish it, or remove it with engine build --rebuild --discard.")


def _pinning_references(table: ErasedTable) -> Iterator[Diagnostic]:
    facts, relation = table.facts, table.relation
    for name, snapshot in sorted(facts.refs.items()):
        if name != STAGED:
            kind = "branch" if name in facts.branches else "tag"
            message = f"the {kind} '{name}' of {relation} keeps snapshot {snapshot}, which may have the rows"
            yield Diagnostic(BLOCKED, message, f"Remove it first: ALTER TABLE {relation} DROP {kind.upper()} `{name}`")
    if facts.properties.get("gc.enabled", "true").lower() == "false":
        message = f"{relation} has the table property gc.enabled: false, so that its files are never removed"
        yield Diagnostic(BLOCKED, message, "Remove the property first.")


def check_unread(run: Run, tables: Sequence[ErasedTable]) -> None:
    """Check that the streams of the project have read all rows of some tables.

    Raises StateError: `erase-unread` with each stream; nothing was changed.
    """
    streams = positions(run.manifest, run.target)
    faults = [d for table in tables for d in unread_faults(streams, table.owner, table.relation, table.facts)]
    if faults:
        models = {model.name: model for model in run.manifest.models}
        raise StateError.from_diagnostics(
            [fault.at(Location(models[fault.node].file)) if fault.node else fault for fault in faults]
        )


# The prefix of the engine's own tags and branches.
_OURS = "engine_"


@dataclass(frozen=True, slots=True)
class MatchedTable:
    table: ErasedTable
    matches: Matches


@dataclass(frozen=True, slots=True)
class Erasure:
    """What one command erases.

    `run`: with the session, and the locks. `unsearched`: what beside the table cannot be searched by the condition, in
    words.
    """

    run: Run
    request: EraseRequest
    matched_tables: tuple[MatchedTable, ...]
    batches: tuple[StatePath, ...]
    unsearched: tuple[str, ...] = ()

    @property
    def some(self) -> bool:
        return bool(self.batches) or any(matched.matches.some for matched in self.matched_tables)


@contextmanager
def open_run(
    manifest: Manifest,
    target: Target,
    root: Path,
    model: Model,
    target_dir: Path,
    *,
    dry_run: bool,
    sets: Sequence[str] = CORE,
) -> Iterator[Run]:
    """Open the session of a command, with the locks of the model and of its readers unless nothing will be changed.

    `sets` are those of jars.

    Raises:
        StateError: `table-locked`, `state-unwritable`.
        SetupError: Spark or the catalog cannot be had.
    """
    if dry_run:
        with spark_session(target, target_dir, sets=sets) as spark:
            yield command_run(manifest, target, root, spark)
        return
    readers = [m for m in manifest.models if m.streaming and m.id != model.id and _may_read(manifest, m, model)]
    with (
        locked([table_state(target, locked_model) for locked_model in (model, *readers)]) as locks,
        spark_session(target, target_dir, locks, sets) as spark,
    ):
        run = command_run(manifest, target, root, spark)
        raise_fences(run, [model, *readers])
        yield run


def _may_read(manifest: Manifest, reader: Model, model: Model) -> bool:
    """Whether a stream reads a model's table, also where the table is declared as a source."""
    nodes = [manifest.nodes[item.node] for item in reader.inputs if item.stream]
    return any(
        node.id == model.id or (isinstance(node, Source) and source_traits(node.spec.format).is_table) for node in nodes
    )


@contextmanager
def _explained(request: EraseRequest, failed_action: str) -> Iterator[None]:
    try:
        yield
    except spark_exceptions() as error:
        environment_fault = environment_fault_in(str(error))
        if environment_fault is not None:
            raise RunError.from_diagnostics([environment_fault]) from error
        message = f"rows of '{request.model.name}' where {request.where} {failed_action}: {scrub(summary(str(error)))}"
        hint = "Correct the condition or the problem in the message, and run the command again."
        raise RunError("query-failed", message, hint, node=request.model.name) from error


def find_rows(run: Run, request: EraseRequest) -> Erasure:
    """Find what there is to erase.

    Raises:
        StateError: `erase-blocked`, `erase-unread`; nothing was changed.
        UsageError: `condition-syntax`.
        RunError: `query-failed`: the condition cannot be computed.
    """
    with _explained(request, "cannot be found"):
        return _find_rows(run, request)


def _find_rows(run: Run, request: EraseRequest) -> Erasure:
    model, session = request.model, run.spark.newSession()
    tables, unsearched = erased_tables(run, session, request)
    check_blockers(run, model, tables)
    matched_tables = []
    for table in tables:
        matches = find_matches(session, table.relation, table.facts, table.judge, table.names)
        matched_tables.append(MatchedTable(table, matches))
    check_unread(run, [matched.table for matched in matched_tables if matched.matches.some])
    return Erasure(run, request, tuple(matched_tables), _stored_batches(run, model), unsearched)


def _stored_batches(run: Run, model: Model) -> tuple[StatePath, ...]:
    folder = run.state(model)
    folders = (folder.batches(number) for number in folder.generations())
    return tuple(batches for batches in folders if batches.exists())


def carry_out(erasure: Erasure) -> Iterator[MatchedTable]:
    """Erase what `find_rows` found, and yield each table that is done.

    Raises:
        RunError: `commit-conflict`, `query-failed`.
        StateError: the table or the lock is not what it was; `erase-blocked`.
    """
    with _explained(erasure.request, "could not be erased"):
        yield from _carry_out(erasure)


def _carry_out(erasure: Erasure) -> Iterator[MatchedTable]:
    run, model = erasure.run, erasure.request.model
    session = run.spark.newSession()
    for folder in erasure.batches:
        remove_tree(folder)
    for matched in erasure.matched_tables:
        if matched.matches.some:
            _erase(run, matched)
            yield matched
    # Tables that killed builds have left beside the model's.
    full_refresh.clear_staging(run, model, session)
    if any(matched.matches.some and matched.table.relation == model.relation for matched in erasure.matched_tables):
        # The rows of what a full refresh replaced are gone with the snapshots.
        discard_others(run.state(model), 0)
    initial_snapshot.drop_old_seeds(run, model, session)
    _note(run, model)


def _erase(run: Run, matched: MatchedTable) -> None:
    table, matches = matched.table, matched.matches
    relation, session = table.relation, run.spark.newSession()
    facts = _current_facts(run, table)
    if facts.snapshot != table.facts.snapshot:
        message = f"{relation} was changed by another writer since its rows were searched"
        raise RunError("commit-conflict", message, "Run the command again.", node=table.owner.name)
    if facts.history:
        expected = ExpectedTable(table.owner.name, facts.uuid, facts.snapshot)
        markers = repeated_markers(run, table.owner, facts)
        erase_rows(session, relation.sql, matches.files, lambda rows: _remaining_rows(table, rows), markers, expected)
        kill_points.reach("erased", relation.name)
        facts = _current_facts(run, table)
        for position in positions(run.manifest, run.target):
            if move_past(position, table.owner, relation, facts):
                kill_points.reach("reader moved", relation.name, where=position.reader.name)
        if (snapshots_left := expire_all(session, relation.sql, _OURS)) > 1:
            raise _unexpired_error(table, snapshots_left)
        kill_points.reach("expired", relation.name)
    # Iceberg has removed most of them, and logs those that it could not.
    remove_files(session, relation.sql, [*matches.files, *matches.older_files, *matches.orphans])


def _remaining_rows(table: ErasedTable, rows: DataFrame) -> DataFrame:
    return table.judge(rows).where(f"not {MATCHES}").drop(MATCHES)


def _current_facts(run: Run, table: ErasedTable) -> TableFacts:
    facts = run.lake.table(table.relation.schema, table.relation.name)
    if facts is None:
        message = f"{table.relation} was dropped by another program while rows were erased from it"
        raise StateError("table-missing", message, "Restore it, and run the command again.", node=table.owner.name)
    return facts


def _unexpired_error(table: ErasedTable, count: int) -> StateError:
    message = f"{count - 1} earlier snapshots of {table.relation} did not expire, and may still have the rows"
    hint = "A tag or a branch of another program keeps them: remove it and run the command again."
    return StateError("erase-blocked", message, hint, node=table.owner.name)


def _note(run: Run, model: Model) -> None:
    folder, relation = run.state(model), model.relation
    state, facts = folder.load(), run.lake.table(relation.schema, relation.name)
    if state is None or facts is None or not facts.history or not facts.history[0].erases:
        return
    if state.snapshot not in {snapshot.id for snapshot in facts.history}:
        folder.save(replace(state, snapshot=facts.history[0].id))
