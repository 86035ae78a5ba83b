"""The generation of its table that a query writes: continued, reset, rebuilt beside it, or begun.

A table of which nothing is written yet is recreated with the query as it is by now, but its sources begin where they
began: Spark fixes that before the first micro-batch, and another beginning would skip records that nobody has read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.compile import Model, Relation, Source
from engine.lake.table_facts import TableFacts
from engine.plan import ActionKind, Change
from engine.plan.actions import state_checks
from engine.plan.deployed import generations
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.runtime.context.run_context import Run
from engine.runtime.lifecycle import full_refresh, publish, replaced_materialization, reset_checkpoint
from engine.runtime.sinks import table_setup
from engine.runtime.streams.stream_query import StreamQuery
from engine.sources import source_traits
from engine.state import ModelState, Phase, TableState
from engine.state.checkpoint import is_unread
from engine.state.first_offsets import has_beginnings, keep_beginnings
from engine.state.operations import Refresh

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def begin_first(run: Run, model: Model, folder: TableState, frame: DataFrame) -> ModelState:
    """Make the empty table of a model of which nothing is written; its sources begin where they began at first."""
    earlier_state, generation = folder.load(), max(folder.generations(), default=1)
    if earlier_state is None or earlier_state.generation != generation or earlier_state.table != str(model.relation):
        state = table_setup.make(model, model.relation, generation, folder, frame)
    elif _resumes(run, model, folder, earlier_state):
        state = table_setup.remake(model, model.relation, earlier_state, folder, frame)
    else:
        keep_beginnings(folder.checkpoint(generation))
        empty_state = replace(
            table_setup.new_state(model.relation, generation), begin=earlier_state.begin, sources=earlier_state.sources
        )
        state = table_setup.remake(
            model, model.relation, replace(empty_state, remembers=earlier_state.remembers), folder, frame
        )
    state = replace(state, phase=Phase.PUBLISHED)
    folder.save(state)
    return state


def _resumes(run: Run, model: Model, folder: TableState, state: ModelState) -> bool:
    comparison = run.plan.actions[model.id].comparison
    is_same_query = comparison is not None and comparison.refusal is None and comparison.change is not Change.NEW
    nodes = [run.manifest.nodes[item.node] for item in model.inputs if item.stream]
    # Where the others begin is found again from what is there, and what is there may be corrected in between.
    fixed = any(isinstance(node, Source) and not source_traits(node.spec.format).start_is_repeatable for node in nodes)
    return is_same_query and fixed and has_beginnings(folder.checkpoint(state.generation))


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of a table, and what is in it.

    `table` has the history that its writer continues from; None: nothing is written yet. `relation`: the model's table,
    or the staging table of a rebuild. `branch`: where rows wait for their tests. `is_rebuild`: to be published when it
    is done.
    """

    state: ModelState
    table: TableFacts | None
    relation: Relation
    branch: str | None
    is_rebuild: bool

    @property
    def reached(self) -> int | None:
        """Return the newest micro-batch in the table; one that state knows of is, even if its marker has expired."""
        if self.table is None:
            return None
        marked = generations.committed_batch(self.table.history, self.state)
        return max((batch for batch in (marked, self.state.batch) if batch is not None), default=None)


def open_generation(
    query: StreamQuery, reset_state: ModelState | None, earlier_columns: frozenset[str] | None
) -> Generation:
    """Return state and table that belong together; what is missing of them is made.

    Raises StateError: state and table do not belong together, or the table cannot hold the rows; nothing was written.
    """
    model, refresh = query.model, query.run.plan.actions[query.model.id].kind is ActionKind.REFRESH
    if reset_state is not None:
        state, table = _reset(query, reset_state, earlier_columns)
    else:
        state, table = _rebuilding(query) if refresh else _open_existing(query, earlier_columns)
    if state.phase is Phase.BUILDING:
        return Generation(state, table, full_refresh.staging(model, state.generation), None, is_rebuild=True)
    return Generation(state, table, model.relation, publish.branch_of(model), is_rebuild=False)


def _open_existing(query: StreamQuery, earlier_columns: frozenset[str] | None) -> tuple[ModelState, TableFacts | None]:
    run, model, folder, frame = query.run, query.model, query.folder, query.frame
    state = folder.load()
    table = publish.as_written(run, model, state.snapshot if state is not None else None)
    if state is None or state.phase is not Phase.PUBLISHED:
        state_checks.fresh(model, table)
        replaced_materialization.stands_as_view(run, frame.sparkSession, model, table)
        return begin_first(run, model, folder, frame), None
    if run.plan.actions[model.id].kind in {ActionKind.CREATE, ActionKind.EMPTY}:
        return begin_first(run, model, folder, frame), None
    state_checks.check_table(model, state, read_checkpoint(folder, state.generation, files=False), table)
    if table is None:
        return state, table
    columns, checkpoint = table_setup.columns_of(model, frame), folder.checkpoint(state.generation)
    unread = not generations.has_commits(table) and is_unread(checkpoint)
    if unread and not table_setup.has_columns(model, columns, earlier_columns):
        # What it reads has other columns now.
        return begin_first(run, model, folder, frame), None
    table_setup.check_columns(model, columns, earlier_columns)
    return state, table


def _reset(
    query: StreamQuery, reset_state: ModelState, earlier_columns: frozenset[str] | None
) -> tuple[ModelState, TableFacts | None]:
    run, model = query.run, query.model
    table = publish.as_written(run, model)
    if table is not None:
        table_setup.check_columns(model, table_setup.columns_of(model, query.frame), earlier_columns)
    reset_checkpoint.begin_reset(run, model, query.folder, reset_state)
    return reset_state, table


def _rebuilding(query: StreamQuery) -> tuple[ModelState, TableFacts | None]:
    run, model, folder, frame = query.run, query.model, query.folder, query.frame
    table = run.lake.table(model.relation.schema, model.relation.name)
    if table is None and replaced_materialization.stands_as_view(run, frame.sparkSession, model, table):
        return full_refresh.begin_generation(model, folder, frame, None), None
    if table is None:
        state = table_setup.make(model, model.relation, generations.next_number(folder, None), folder, frame)
        state = replace(state, phase=Phase.PUBLISHED)
        folder.save(state)
        folder.journal.end(Refresh)
        folder.discard_before(state.generation)
        return state, None
    state_checks.check_ours(model, table, folder.load())
    return full_refresh.begin_generation(model, folder, frame, table), None
