"""`--reset-checkpoint`: a new checkpoint over the rows that are there; the user says where its sources begin.

It is a new generation, with the number after all that the table has seen. Where the sources begin is kept in model.json
for as long as the generation lives; `now` is the time at which it was said. State (open windows, keys seen) is
discarded; remembered deletes stay.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from typing import Any

from engine import local_paths
from engine.compile import Model, Source
from engine.errors import Diagnostic, Level, Location
from engine.events import Diagnosed
from engine.plan.actions import state_checks
from engine.plan.actions.file_checks import number
from engine.plan.deployed import generations
from engine.plan.new_checkpoint import begun_at
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.no_data_batch import owed
from engine.runtime.inputs.source_file_check import Landed
from engine.runtime.lifecycle import publish
from engine.runtime.sinks.deleted_keys import began_by
from engine.runtime.writer.micro_batch_writer import BatchWriter
from engine.state import ModelState, Phase, TableState
from engine.state import checkpoint as spark_checkpoint
from engine.state.file_log import file_sources, logged, reaches
from engine.times import time_text

_SHOWN = 200


def state_after_reset(run: Run, model: Model, folder: TableState) -> ModelState:
    """The state of the generation that a reset begins, which is not saved yet.

    Raises StateError: `name-taken`: the table was not made by the model.
    """
    table = publish.as_written(run, model)
    earlier_state = folder.load()
    if run.reset is None or table is None:
        raise ValueError(model.name)
    state_checks.check_ours(model, table, earlier_state)
    generation = generations.next_number(folder, table)
    # Where the state is lost, the deletes of the generations that are in the table say for which query they count.
    remembers = (earlier_state.remembers or earlier_state.query_id) if earlier_state else began_by(run, model, table)
    events_from = run.plan.actions[model.id].events_from
    start = {"at": run.reset.at, **({"events_from": events_from} if events_from is not None else {})}
    new_state = ModelState(str(model.relation), generation, Phase.PUBLISHED, table.uuid, begin=start)
    # The rows that are there count: a table that is set back before the first commit is not the one that was reset.
    return replace(new_state, snapshot=table.snapshot, remembers=remembers, generation_id=generations.new_id())


def begin_reset(run: Run, model: Model, folder: TableState, state: ModelState) -> None:
    run.emit(Diagnosed(_reset_diagnostic(run, model, folder, folder.load())))
    folder.discard(state.generation)
    folder.save(state)
    folder.discard_before(state.generation)


def _reset_diagnostic(run: Run, model: Model, folder: TableState, earlier_state: ModelState | None) -> Diagnostic:
    if run.reset is None:
        raise ValueError(model.name)
    at, offsets = (
        run.reset.at,
        spark_checkpoint.standing(folder.checkpoint(earlier_state.generation)) if earlier_state else [],
    )
    position = str(offsets)[:_SHOWN] if offsets else "the last committed position"
    since_text = time_text(at) if at is not None else ""
    windows = run.plan.actions[model.id].events_from
    message = f"'{model.name}' starts again from the first records of its sources; existing keys are rewritten"
    if windows is not None:
        message = (
            f"'{model.name}' reads its sources again for the windows from {time_text(windows)} (UTC) on, which "
            "follow the query as it is now; the windows before stay as they are"
        )
    if run.reset.gap:
        message = (
            f"'{model.name}' continues with data from {since_text} (UTC) on; data after {position} and before that is "
            "never read"
        )
    elif since_text:
        message = (
            f"'{model.name}' continues with data from {since_text} (UTC) on; before the reset it was at {position}"
        )
    hint = "Open windows are discarded; a closed one may be rewritten for late rows."
    hint = hint if model.stateful and windows is None else ""
    return Diagnostic("checkpoint-reset", message, hint, Level.WARNING, node=model.name, location=Location(model.file))


def run_from_reset(run: Run, model: Model, state: ModelState | None) -> Run:
    if state is None or not state.begin:
        return run
    moved_sources: dict[str, Any] = {}
    for item in model.inputs:
        node = run.manifest.nodes[item.node]
        if item.stream and isinstance(node, Source):
            moved_sources[node.id] = replace(node, spec=begun_at(node.spec, state.begin["at"]))
    nodes = ChainMap(moved_sources, run.manifest.nodes)  # type: ignore[arg-type] # only the first is written to
    return replace(run, manifest=replace(run.manifest, nodes=nodes))


def files_from(run: Run, model: Model, state: ModelState | None) -> int | None:
    """Return the time in milliseconds from which on files are read, by their own; None: all are.

    Once the files that were there are skipped it says nothing of others: what Spark lists later came later.
    """
    if state is None or not state.begin:
        return None
    past = state.begin.get("past")
    if past is not None:
        checkpoint = run.state(model).checkpoint(state.generation)
        committed = spark_checkpoint.last_committed(checkpoint)
        committed = -1 if committed is None else committed
        if committed > past or (committed == past and not owed(run, model, checkpoint)):
            return None
    at: int | None = state.begin["at"]
    return at


def events_from(state: ModelState | None) -> int | None:
    """The event time before which the events of a stream are left out, in milliseconds since 1970; None: none are."""
    return state.begin.get("events_from") if state is not None else None


def pass_files(landed: Landed, writer: BatchWriter, at: int | None) -> None:
    """All files that there were are read, or skipped as older than a time: say how many, and note that."""
    if at is None or not landed.specs:
        return
    past = writer.state.begin.get("past")
    older: dict[str, list[str]] = {}
    for source in file_sources(landed.checkpoint):
        past_entry = reaches(landed.checkpoint, source, past) if past is not None else -1
        for file in logged(landed.checkpoint, source, after_entry=past_entry):
            uri = local_paths.decoded(file.uri)
            if landed.time_of(uri, file) < at:
                older.setdefault(landed.spec_of(uri).name, []).append(uri)
    for name, uris in older.items():
        message = f"{number(len(uris), 'file')} of '{name}' skipped as older than {time_text(at)} (UTC): "
        hint = "--reset-checkpoint skips them, including files read before. New files are read, whatever their age."
        landed.warn("files-skipped", message + landed.some(uris), hint)
    last = spark_checkpoint.last_committed(landed.checkpoint)
    writer.record(begin={**writer.state.begin, "past": -1 if last is None else last})
