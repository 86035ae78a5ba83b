"""Where the streams of tables begin, and the seeds: the rows of a table whose commits are not all known any more.

Where commits were expired, or rows replaced, those that are left do not make up the rows; a new reader then begins with
a seed, a table with the rows as of a snapshot in one append, followed by the later commits, both under one watermark. A
plain batch read would not feed the state store. Whether there is a seed decides how many sources the checkpoint has: it
is pinned in model.json before the first micro-batch, and the seed lives as long as the generation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from engine.compile import Model, Relation
from engine.errors import Diagnostic, Level
from engine.events import Diagnosed
from engine.lake import snapshot_history
from engine.lake import table_writer as lake
from engine.lake.snapshot_history import Start
from engine.lake.table_facts import TableFacts
from engine.lake.table_layout import TableLayout
from engine.plan.deployed import state_folder
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.tables.upstream_tables import (
    TableReading,
    Upstream,
    begin_reading,
    decide_start,
    recorded_start,
    resume_reading,
)
from engine.relations import quoted
from engine.runtime.context import ownership
from engine.runtime.context.run_context import Run
from engine.runtime.inputs.stream_sources import read_upstreams
from engine.state import ModelState, TableState
from engine.state.first_offsets import keep_beginnings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEED_MARKER = "seed"


def seed_of(model: Model, generation: int, upstream: str) -> Relation:
    relation = model.relation
    # A point becomes an underscore, so that `a.b_c` and `a_b.c` must be told apart by what follows.
    mark = f"_{hashlib.sha256(upstream.encode()).hexdigest()[:8]}" if "_" in upstream else ""
    name = f"{relation.name}__seed{generation}_{upstream.replace('.', '_')}{mark}"
    return Relation(relation.catalog, relation.schema, name)


def find_beginnings(
    run: Run, model: Model, session: SparkSession, state: ModelState, folder: TableState
) -> tuple[ModelState, Mapping[str, TableReading]]:
    """Return the saved state, and how each table that is read as a stream begins or continues; seeds are made here.

    Raises:
        StateError: see `engine.plan.tables.upstream_tables`; nothing was read.
    """
    upstreams = read_upstreams(run, model)
    if not upstreams:
        return state, {}
    checkpoint = read_checkpoint(folder, state.generation, files=False)
    if checkpoint.started is not None:
        return state, resume_reading(model, state, checkpoint, upstreams, _seeds(run, model, state, upstreams))
    starts = {
        u.node: decide_start(model, u, str(seed_of(model, state.generation, u.name)), state.begin) for u in upstreams
    }
    if {node: asdict(start) for node, start in starts.items()} != dict(state.starts):
        # Spark fixes where tables begin before the first micro-batch; that was for another start.
        keep_beginnings(folder.checkpoint(state.generation))
        starts_now = {node: asdict(start) for node, start in starts.items()}
        state = replace(state, starts=starts_now, query_id=None)
        folder.save(state)
    for upstream in upstreams:
        start = starts[upstream.node]
        if start.seed is not None:
            _warn_of_rewriting(run, model, upstream)
            _make_seed(run, model, session, state, upstream, start)
    return state, {upstream.node: begin_reading(model, upstream, starts[upstream.node]) for upstream in upstreams}


def drop_old_seeds(run: Run, model: Model, session: SparkSession) -> None:
    relation, folder = model.relation, run.state(model)
    seed_name = re.compile(re.escape(relation.name) + r"__seed(\d+)_\w+")
    seed_generations = {
        name: int(match[1]) for name in run.lake.names(relation.schema) if (match := seed_name.fullmatch(name))
    }
    live_generations = {*folder.generations(), *folder.replaced_generations()} if seed_generations else set()
    for name, number in seed_generations.items():
        facts = run.lake.table(relation.schema, name) if number not in live_generations else None
        if facts is None:
            continue
        if ownership.is_table_beside(model, folder, name, facts.properties, state_folder.SEED, number):
            lake.drop_table(session, Relation(relation.catalog, relation.schema, name).sql)


def _seeds(run: Run, model: Model, state: ModelState, upstreams: Sequence[Upstream]) -> dict[str, TableFacts]:
    seed_facts = {}
    for upstream in upstreams:
        seed = recorded_start(state, upstream).seed
        if seed is not None:
            # By the name that the generation began with.
            schema = model.relation.schema
            facts = run.lake.table(schema, seed.removeprefix(f"{model.relation.catalog}.{schema}."))
            if facts is not None:
                seed_facts[upstream.node] = facts
    return seed_facts


def _make_seed(
    run: Run, model: Model, session: SparkSession, state: ModelState, upstream: Upstream, start: Start
) -> None:
    relation, mark = seed_of(model, state.generation, upstream.name), f"{start.uuid}:{start.snapshot}"
    existing_seed = run.lake.table(relation.schema, relation.name)
    is_own = existing_seed is not None and existing_seed.properties.get("engine.model") == model.name
    if existing_seed is not None and is_own and any(s.marker(_SEED_MARKER) == mark for s in existing_seed.history):
        return
    from pyspark.sql import functions as f

    # A snapshot is read with the names of its time.
    _, schema, name = upstream.table
    rows = session.read.format("iceberg").option("versionAsOf", str(start.snapshot)).load(upstream.full)
    then = run.lake.names_at(schema, name, start.snapshot or -1)
    earlier_by_name = {present_name: old for present_name, old in then.items() if old is not None}
    rows = rows.select(*(f.col(quoted(old)).alias(present_name) for present_name, old in earlier_by_name.items()))
    ownership.drop_beside(session, model, run.state(model), relation, state_folder.SEED, state.generation)
    owner_properties = {"engine.model": model.name, "engine.generation": str(state.generation)}
    properties = {**owner_properties, state_folder.SEED: "true"}
    lake.create_table(session, relation.sql, rows, TableLayout(properties=properties))
    markers = {**run.markers(model, state), _SEED_MARKER: mark}
    lake.append(lake.stage(rows, relation.sql), markers)


def _warn_of_rewriting(run: Run, model: Model, upstream: Upstream) -> None:
    """A table that had commits that replace rows will have them again: the stream stops then."""
    later_snapshots = [s for s in upstream.facts.history if s.parent is not None]
    rewrite = snapshot_history.rewriting(later_snapshots, ignore_deletes=upstream.ignore_deletes)
    if rewrite is None:
        return
    message = (
        f"{upstream.full} has commits that are not appends ('{rewrite.operation}', "
        f"{snapshot_history.time_of(rewrite)}): '{model.name}' starts from its current rows, and stops at the next "
        "such commit"
    )
    hint = f"If such commits are regular, read it in full: remove '{upstream.name}' from 'streams:'."
    run.emit(Diagnosed(Diagnostic("upstream-rewritten", message, hint, Level.WARNING, node=model.name)))
