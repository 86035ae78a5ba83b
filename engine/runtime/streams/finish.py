"""After a streaming query has ended: its rebuild is published, and what nobody needs any more is removed."""

from __future__ import annotations

from dataclasses import replace

from engine.events import Outcome, Status
from engine.lake import table_writer as lake
from engine.plan.actions.staged_rows import waits
from engine.runtime.inputs import initial_snapshot, source_cleanup
from engine.runtime.lifecycle import full_refresh, reset_checkpoint
from engine.runtime.spark_support import hooks
from engine.runtime.streams.prepare import PreparedQuery
from engine.state import Phase


def finish(prepared: PreparedQuery, outcome: Outcome) -> Outcome:
    """End the turn of a model whose query has read all there was; return its outcome with all notes.

    Raises:
        EngineError: a rebuild could not be published, or `post_hook` failed; the rows are written.
    """
    query, landed = prepared.query, prepared.inputs.landed
    run, model, session, folder = query.run, query.model, query.session, query.folder
    reset_checkpoint.pass_files(landed, prepared.writer, query.since)
    if prepared.generation.beside:
        outcome = replace(outcome, status=Status.SUCCESS, message="", snapshot_id=_publish_rebuild(prepared))
    initial_snapshot.clear(run, model, session)
    hooks.after(session, model)
    # Of a rebuild that waits for its tests nothing may be left in the end; then its files are needed once more.
    done = source_cleanup.finish(landed) if folder.pending() is None else ""
    return replace(outcome, note=_notes(outcome.note, *prepared.notes, done))


def _publish_rebuild(prepared: PreparedQuery) -> int | None:
    run, model, session = prepared.query.run, prepared.query.model, prepared.query.session
    writer = prepared.writer
    if waits(model):
        writer.record(phase=Phase.STAGED)
        return None
    done = full_refresh.publish(run, model, writer.folder, session, writer.state)
    lake.drop_table(session, full_refresh.staging(model, done.generation).sql)
    return done.snapshot


def _notes(first: str, *more: str) -> str:
    """Several notes as one; an edit of a query with state has noted columns that are gone."""
    return "; ".join([*filter(None, [first]), *(text for text in more if text and text not in first)])
