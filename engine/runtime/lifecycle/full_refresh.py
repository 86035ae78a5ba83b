"""Full refresh: a streaming table rebuilt beside the old one, and published by one commit.

Generation n+1 writes into `<table>__g<n+1>` with a checkpoint of its own. One CREATE OR REPLACE TABLE ... AS SELECT
puts its rows, schema, partitioning and properties into the table; the commit carries the generation and its last
micro-batch as markers, which decide after a kill whose the table is.

What it replaces is kept: the version of the table by a tag, the checkpoint by a note, both written before the table is
replaced; the note counts only for a generation that has not written since (`TableState.discard_before`).

Several tables are noted beside their states, against the order of references, before the first is touched: whatever
ends a run, the next build rebuilds the rest (see `engine.plan.deployed.generations`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from engine import kill_points
from engine.compile import Manifest, Model, Relation, Target
from engine.compile.nodes.topological_order import ancestors
from engine.errors import Diagnostic, Level
from engine.events import Diagnosed, Emit
from engine.lake import table_writer as lake
from engine.lake import view_writer
from engine.lake.changes.put_back import keep_version
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.lake.table_fence import fence_of
from engine.lake.table_replacement import without_lost_partitions
from engine.plan import Plan, PlanOptions
from engine.plan.actions.action import ActionKind
from engine.plan.deployed import generations, state_folder
from engine.plan.deployed.deployed_facts import Deployed
from engine.plan.deployed.generations import (
    as_published,
    begun_refresh,
    discard_expired,
    discard_others,
    kept_now,
    kept_seconds,
    published_refresh,
    save_previous,
)
from engine.plan.deployed.state_folder import table_state
from engine.runtime.context import ownership
from engine.runtime.context.run_context import Run
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Refresh
from engine.times import time_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def keep_replaced_generation(run: Run, model: Model, session: SparkSession, table: TableFacts | None) -> None:
    """Keep the generation of a table that is about to be replaced, in place of those that were kept before.

    `run`: that holds the lock of the table.

    Raises StateError: `lease-lost`; nothing was changed.
    """
    folder = run.state(model)
    state, seconds = folder.load(), kept_seconds(model)
    published = state is not None and state.phase is Phase.PUBLISHED and state.query_id is not None
    is_own = table is not None and state is not None and table.uuid == state.uuid
    if state is None or not published or not is_own or not seconds:
        discard_others(folder, 0)
        return
    version = keep_version(session, model.relation.sql, seconds, fence_of(run.lease_marker(model)))
    discard_others(folder, state.generation)
    if version is not None:
        save_previous(folder, kept_now(state, version, seconds))


def staging(model: Model, generation: int) -> Relation:
    relation = model.relation
    return Relation(relation.catalog, relation.schema, f"{relation.name}__g{generation}")


def settle_interrupted_refresh(model: Model, folder: TableState, lake_now: Lake) -> None:
    """End a refresh that was killed: with its marker in the table the generation is the table's, else it goes.

    What a kill left of earlier generations goes in any case. Needs no JVM; see `clear_staging` for the staging table.
    """
    discard_expired(folder)
    pending_state = folder.unpublished()
    if pending_state is None:
        state = folder.load()
        folder.discard_before(state.generation if state is not None else 0)
        if begun_refresh(folder, state) is None:
            folder.journal.end(Refresh)
        return
    table = lake_now.table(model.relation.schema, model.relation.name)
    published_state = published_refresh(model, pending_state, table)
    if published_state is not None:
        _record_published(model, folder, published_state)
    else:
        folder.discard(pending_state.generation)


def clear_staging(run: Run, model: Model, session: SparkSession) -> None:
    """Drop the staging tables that refreshes left behind when they were killed; others of such names stay."""
    relation, folder = model.relation, run.state(model)
    staging_name = re.compile(re.escape(relation.name) + r"__g(\d+)")
    for name in run.lake.names(relation.schema):
        match = staging_name.fullmatch(name)
        facts = run.lake.table(relation.schema, name) if match else None
        if match is None or facts is None:
            continue
        number = int(match[1])
        if ownership.is_table_beside(model, folder, name, facts.properties, state_folder.STAGING, number):
            lake.drop_table(session, staging(model, number).sql)


def begin_generation(model: Model, folder: TableState, frame: DataFrame, table: TableFacts | None) -> ModelState:
    # Brings sqlglot, which a run with nothing to do does not need.
    from engine.runtime.sinks import table_setup

    generation = generations.next_number(folder, table)
    if folder.lease is not None:
        folder.lease.check()
    if (refresh_note := folder.journal.open_operation(Refresh)) is not None:
        folder.journal.begin(structs.replace(refresh_note, attempt=generation))
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

    `source` None: the staging table. It says which micro-batch it holds, and is read as of then.
    """
    from engine.runtime.sinks import table_setup

    source = source or staging(model, state.generation)
    source_facts = run.lake.table(source.schema, source.name)
    marked = generations.committed_batch(source_facts.history, state) if source_facts is not None else None
    state = replace(state, batch=max((b for b in (marked, state.batch) if b is not None), default=None))
    snapshot = source_facts.snapshot if source_facts is not None else None
    as_of = f" VERSION AS OF {snapshot}" if snapshot is not None else ""
    rows = session.sql(f"SELECT * FROM {source.sql}{as_of}")  # noqa: S608 - names of ours
    markers = run.markers(model, state, generations.NO_BATCH if state.batch is None else state.batch)
    replaced_table = run.lake.table(model.relation.schema, model.relation.name)
    keep_replaced_generation(run, model, session, replaced_table)
    if replaced_table is None:
        # A view that was the model's (it was checked when the rebuild began) goes last.
        view_writer.drop_view(session, model.relation.sql)
        kill_points.reach("exchanging", model.name)
    commit = lake.replace(rows, model.relation.sql, table_setup.layout(model, state.generation), markers)
    if model.write.unique_key:
        without_lost_partitions(session, lake.load(session, model.relation.sql))
    uuid = lake.table_uuid(session, model.relation.sql)
    return _record_published(model, folder, as_published(model, state, uuid, commit.snapshot))


def _record_published(model: Model, folder: TableState, published_state: ModelState) -> ModelState:
    folder.save(published_state)
    folder.journal.end(Refresh)
    folder.discard_before(published_state.generation)
    kill_points.reach("noted", model.name)
    return published_state


def note_refreshes(
    target: Target, models: Sequence[Model], plan: Plan, deployed: Deployed, options: PlanOptions
) -> frozenset[str]:
    """Note which tables a run rebuilds, and forget what the user discards; return ids whose refresh begins now.

    The locks of the models are held.
    """
    new: set[str] = set()
    at = time_text(int(time.time()) * 1000)
    for model in reversed(models):
        deployed_model, kind = deployed.models[model.id], plan.actions[model.id].kind
        if kind is not ActionKind.REFRESH:
            if deployed_model.refresh is not None and (options.discard_refresh or kind is ActionKind.RESET):
                table_state(target, model).journal.end(Refresh)
        elif deployed_model.state is not None or deployed_model.table is not None or deployed_model.view is not None:
            published = deployed_model.state is not None and deployed_model.state.phase is Phase.PUBLISHED
            earlier_generation = (
                deployed_model.state.generation if deployed_model.state is not None and published else 0
            )
            refresh_note = deployed_model.refresh or Refresh(at, before=earlier_generation)
            accept = tuple(dict.fromkeys((*refresh_note.accept, *options.accept)))
            table_state(target, model).journal.begin(structs.replace(refresh_note, accept=accept))
            if deployed_model.refresh is None:
                new.add(model.id)
    return frozenset(new)


def forget_skipped_refreshes(
    target: Target, manifest: Manifest, plan: Plan, noted: Collection[str], skipped: Collection[str]
) -> None:
    parents = {node: manifest.parents(node) for node in manifest.order}
    stopped = {*noted} & {*skipped}
    for node in stopped:
        above = {node, *ancestors(parents, node)}
        rebuilt = {i for i in above if i in plan.actions and plan.actions[i].kind is ActionKind.REFRESH}
        model = manifest.nodes[node]
        if rebuilt <= stopped and isinstance(model, Model):
            table_state(target, model).journal.end(Refresh)


def report_resumed_refreshes(
    emit: Emit, models: Iterable[Model], plan: Plan, deployed: Deployed, options: PlanOptions
) -> None:
    begun_at = {
        model.name: refresh.at
        for model in models
        if plan.actions[model.id].kind is ActionKind.REFRESH and (refresh := deployed.models[model.id].refresh)
    }
    if begun_at and not options.full_refresh:
        names = ", ".join(f"'{name}'" for name in begun_at)
        message = f"the full refresh of {min(begun_at.values())} (UTC) was not finished; it continues with {names}"
        hint = "To discard it and continue with the tables as they are: engine build --discard-refresh"
        emit(Diagnosed(Diagnostic("refresh-unfinished", message, hint, Level.NOTE)))
