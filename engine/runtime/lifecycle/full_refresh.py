"""Full refresh: a streaming table rebuilt beside the old one, and published by one commit.

Generation n+1 writes into `<table>__g<n+1>` with a checkpoint of its own. One CREATE OR REPLACE TABLE ... AS
SELECT then puts its rows, schema, partitioning and properties into the table itself; the commit carries the
generation and its last micro-batch as markers. A kill on either side of that commit is decided by the marker:
with it the generation is the table's, without it the old one still is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from engine import kill_points
from engine.compile import Model, Relation
from engine.lake import table_writer as lake
from engine.lake import view_writer
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.lake.table_replacement import without_lost_partitions
from engine.plan.deployed import generations, ownership_marks
from engine.plan.deployed.killed_refresh import as_published, begun_refresh, published_refresh
from engine.plan.deployed.previous_generation import discard_expired
from engine.runtime.context import ownership
from engine.runtime.context.run_context import Run
from engine.runtime.lifecycle.keep_previous import keep_previous
from engine.runtime.sinks import table_setup
from engine.state import ModelState, TableState
from engine.state.operations import Refresh

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def staging(model: Model, generation: int) -> Relation:
    relation = model.relation
    return Relation(relation.catalog, relation.schema, f"{relation.name}__g{generation}")


def settle(model: Model, folder: TableState, lake_now: Lake) -> None:
    """End a refresh that was killed: with its marker in the table the generation is the table's, else it goes.

    What a kill left of generations before goes in any case: a reader that has read nothing would keep its snapshots.
    Needs no JVM; the staging table goes with the next start of the model (`clear_staging`).
    """
    discard_expired(folder)
    pending = folder.pending()
    if pending is None:
        known = folder.load()
        folder.discard_before(known.generation if known is not None else 0)
        if begun_refresh(folder, known) is None:
            folder.journal.end(Refresh)
        return
    table = lake_now.table(model.relation.schema, model.relation.name)
    done = published_refresh(model, pending, table)
    if done is not None:
        _record(model, folder, done)
    else:
        folder.discard(pending.generation)


def clear_staging(run: Run, model: Model, session: SparkSession) -> None:
    """Drop the staging tables that refreshes left behind when they were killed; others of such names stay."""
    relation, folder = model.relation, run.state(model)
    ours = re.compile(re.escape(relation.name) + r"__g(\d+)")
    for name in run.lake.names(relation.schema):
        match = ours.fullmatch(name)
        facts = run.lake.table(relation.schema, name) if match else None
        if match is None or facts is None:
            continue
        number = int(match[1])
        if ownership.made_beside(model, folder, name, facts.properties, ownership_marks.STAGING, number):
            lake.drop_table(session, staging(model, number).sql)


def begin(model: Model, folder: TableState, frame: DataFrame, table: TableFacts | None) -> ModelState:
    generation = generations.next_number(folder, table)
    if folder.lease is not None:
        folder.lease.check()
    if (begun := folder.journal.begun(Refresh)) is not None:
        folder.journal.begin(structs.replace(begun, attempt=generation))
    # A kill may have left half a checkpoint of that number.
    folder.discard(generation)
    state = table_setup.make(model, staging(model, generation), generation, folder, frame)
    folder.save(state)
    return state


def publish(
    run: Run,
    model: Model,
    folder: TableState,
    session: SparkSession,
    state: ModelState,
    source: Relation | None = None,
) -> ModelState:
    """Put the rows of a finished generation into the table, at once; where it was made is not needed any more.

    `source` is the table with its rows; None: the staging table of the generation. It says which micro-batch it holds,
    and it is read as of then: where the query was stopped, the note of its last commit may be missing.
    """
    source = source or staging(model, state.generation)
    made = run.lake.table(source.schema, source.name)
    marked = generations.committed_batch(made.history, state) if made is not None else None
    state = replace(state, batch=max((b for b in (marked, state.batch) if b is not None), default=None))
    snapshot = made.snapshot if made is not None else None
    as_of = f" VERSION AS OF {snapshot}" if snapshot is not None else ""
    rows = session.sql(f"SELECT * FROM {source.sql}{as_of}")  # noqa: S608 - names of ours
    markers = run.markers(model, state, generations.NO_BATCH if state.batch is None else state.batch)
    replaced = run.lake.table(model.relation.schema, model.relation.name)
    keep_previous(run, model, session, replaced)
    if replaced is None:
        # A view that was the model's (it was checked when the rebuild began) goes last.
        view_writer.drop_view(session, model.relation.sql)
        kill_points.reach("exchanging", model.name)
    commit = lake.replace(rows, model.relation.sql, table_setup.layout(model, state.generation), markers)
    if model.write.unique_key:
        without_lost_partitions(session, lake.load(session, model.relation.sql))
    uuid = lake.table_uuid(session, model.relation.sql)
    return _record(model, folder, as_published(model, state, uuid, commit.snapshot))


def _record(model: Model, folder: TableState, done: ModelState) -> ModelState:
    """Note that a generation is published; the older ones go, except one that is kept."""
    folder.save(done)
    folder.journal.end(Refresh)
    folder.discard_before(done.generation)
    kill_points.reach("noted", model.name)
    return done
