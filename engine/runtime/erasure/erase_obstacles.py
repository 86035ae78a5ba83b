"""Why rows cannot be erased yet: what keeps earlier snapshots, or would be lost with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.compile import Model
from engine.errors import Diagnostic, Location, StateError
from engine.lake.commits import STAGED
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.state_folder import next_state
from engine.runtime.context.run_context import Run
from engine.runtime.erasure.erased_tables import ErasedTable
from engine.runtime.erasure.stream_positions import positions, unread_faults
from engine.runtime.operations.drop_table import check_finished
from engine.state.operations import Rebuild, Refresh

BLOCKED = "erase-blocked"


def blocked(run: Run, model: Model, tables: Sequence[ErasedTable]) -> None:
    """Check that nothing of a model is begun and not finished, and that nobody else keeps snapshots of its tables.

    Raises:
        StateError: `erase-blocked` with each reason, `drop-unfinished`; nothing was changed.
    """
    check_finished([run.state(model)])
    found = [*_unfinished(run, model, tables), *_rebuilt(run), *(fault for table in tables for fault in _kept(table))]
    if found:
        raise StateError.of([fault.at(Location(model.file), model.name) for fault in found])


def _unfinished(run: Run, model: Model, tables: Sequence[ErasedTable]) -> Iterator[Diagnostic]:
    folder, build = run.state(model), f"engine build -s {model.name}"
    if any(STAGED in table.facts.branches for table in tables if table.relation == model.relation):
        message = f"rows of '{model.name}' are staged for its tests"
        hint = f"Publish them first: engine test -s {model.name}, or engine publish {model.name} --accept"
        yield Diagnostic(BLOCKED, message, hint)
    state = folder.load()
    if folder.pending() is not None or folder.journal.begun(Refresh) is not None:
        yield Diagnostic(BLOCKED, f"a full refresh of '{model.name}' is not finished", f"Finish it first: {build}")
    elif state is not None and model.streaming:
        checkpoint = read_checkpoint(folder, state.generation, files=False)
        if checkpoint.started != checkpoint.committed:
            message = f"a micro-batch of '{model.name}' was started and is not finished"
            yield Diagnostic(BLOCKED, message, f"Finish it first: {build}")


def _rebuilt(run: Run) -> Iterator[Diagnostic]:
    for model in run.manifest.models:
        if model.streaming and next_state(run.target, model).journal.begun(Rebuild) is not None:
            message = f"the rebuild of '{model.name}' is not published, and may have the rows"
            yield Diagnostic(BLOCKED, message, "Finish it, or remove it with engine build --rebuild --discard.")


def _kept(table: ErasedTable) -> Iterator[Diagnostic]:
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

    Raises:
        StateError: `erase-unread` with each stream; nothing was changed.
    """
    streams = positions(run.manifest, run.target)
    found = [d for table in tables for d in unread_faults(streams, table.owner, table.relation, table.facts)]
    if found:
        models = {model.name: model for model in run.manifest.models}
        raise StateError.of([one.at(Location(models[one.node].file)) if one.node else one for one in found])
