"""The rebuilt tables take the place of the others: model by model, each in one commit.

Order: the locks of the models' own tables; one more bounded run; a note that nothing is built beside them any more; for
each model its checkpoint is copied, remembered deletes and quarantined records are appended, and its rows are published
as by a full refresh; then the tables beside them go. After a kill the same command finishes: the commit's marker says
which are published.

A stream that has read all of `<table>__next` has read all of the commit that publishes those rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model, Relation
from engine.compile.nodes.facts import plain
from engine.errors import StateError
from engine.lake.lake_reader import Lake
from engine.lake.snapshot_history import Start
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.deployed import generations
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.state_folder import next_relation, next_state, table_state
from engine.runtime.build import spark_session
from engine.runtime.context.copy_generation import copy_generation
from engine.runtime.context.ownership import raise_fences
from engine.runtime.context.run_context import Run, command_run, locked_when_free
from engine.runtime.erasure.stream_positions import StreamPosition, unread_faults
from engine.runtime.lifecycle import full_refresh
from engine.runtime.operations.compare_versions import VersionDifference, compare_relations
from engine.runtime.quality.quarantine import SUFFIX as QUARANTINE
from engine.runtime.quality.quarantine import quarantine_of
from engine.runtime.rebuild.tables_beside import Rebuild, drop, run_once, steps_completed
from engine.runtime.sinks.deleted_keys import SUFFIX as DELETED
from engine.runtime.sinks.deleted_keys import deleted_of
from engine.state import ModelState, Phase, TableState, locked
from engine.state.first_offsets import offsets_to_move
from engine.state.operations import PUBLISHED, PUBLISHING, Step, carry_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def take_over(run: Run, session: SparkSession, model: Model, state: ModelState, rebuilt_relation: Relation) -> None:
    """Take over what a rebuild has beside its table.

    `run`: that holds the locks.

    Raises StateError: `name-taken`.
    """
    batch = generations.NO_BATCH if state.batch is None else state.batch
    markers = run.markers(model, state, batch)
    deleted, rows = deleted_of(run, model), replace(rebuilt_relation, name=rebuilt_relation.name + DELETED)
    if deleted is not None and _is_missing(run, deleted.relation, rows, state):
        deleted.take_over(session, session.table(rows.sql), state.remembers or state.query_id or "", markers)
    rows = replace(rebuilt_relation, name=rebuilt_relation.name + QUARANTINE)
    quarantine = quarantine_of(run, model)
    if _is_missing(run, quarantine.relation, rows, state):
        quarantine.take_over(session, session.table(rows.sql), markers)


def _is_missing(run: Run, own_relation: Relation, rebuilt_relation: Relation, state: ModelState) -> bool:
    if run.lake.table(rebuilt_relation.schema, rebuilt_relation.name) is None:
        return False
    table = run.lake.table(own_relation.schema, own_relation.name)
    return table is None or not generations.has_published(table.history, state)


@dataclass(frozen=True, slots=True)
class PublishedInput:
    """A table that was rebuilt and published, for those that stream from it and were rebuilt with it.

    `snapshot`: the commit that published its rows. `rebuilt_snapshots`: the snapshots of the table in which they were
    made.
    """

    relation: str
    uuid: str
    snapshot: SnapshotFacts
    rebuilt_snapshots: frozenset[int]

    @property
    def files(self) -> int:
        text = self.snapshot.summary.get("added-data-files", "0")
        return int(text) if text.isdecimal() else 0


def published_input(model: Model, state: ModelState, table: TableFacts, rebuilt_table: TableFacts) -> PublishedInput:
    """Find the commit that published a rebuilt table.

    Raises StateError: `rebuild-unfinished`: the commit has expired.
    """
    first = next((s for s in reversed(table.history) if generations.wrote(state, s) and s.parent is None), None)
    if first is None:
        message = f"the commit that published the rebuilt rows of {model.relation} has expired"
        hint = (
            "Streams that were rebuilt with it cannot continue from it. Discard the rebuild (engine build --rebuild "
            f"--discard -s {model.name}+), and rebuild them: engine build -f -s {model.name}+"
        )
        raise StateError("rebuild-unfinished", message, hint, node=model.name)
    rebuilt_snapshots = frozenset({*(snapshot.id for snapshot in rebuilt_table.history), *rebuilt_table.snapshots})
    return PublishedInput(str(model.relation), table.uuid, first, rebuilt_snapshots)


def copy_rebuilt_generation(
    run: Run, model: Model, rebuilt_folder: TableState, inputs: Mapping[str, PublishedInput]
) -> ModelState:
    """Make the generation that was built beside a model's table the pending one of that table; both locks are held.

    The last micro-batch of `rebuilt_folder` is committed; `inputs` were rebuilt and published before. Raises
    StateError: `state-unreadable`, `lease-lost`.
    """
    rebuilt_state, folder = rebuilt_folder.load(), run.state(model)
    if rebuilt_state is None:
        raise ValueError(model.name)
    table = run.lake.table(model.relation.schema, model.relation.name)
    number = generations.next_number(folder, table)
    starts = {node: _start(start, inputs.get(node)) for node, start in rebuilt_state.starts.items()}
    state = replace(run.signed(model, rebuilt_state), generation=number, phase=Phase.BUILDING, starts=starts)
    # A generation without model.json is nobody's to remove: a kill in the middle of the copy leaves half a checkpoint.
    folder.discard(number)
    folder.save(state)
    tables = {node: (published.relation, published.uuid) for node, published in inputs.items()}
    copy_generation(rebuilt_folder, rebuilt_state.generation, folder, number, tables)
    for published in inputs.values():
        moved_offsets = offsets_to_move(
            folder.checkpoint(number), published.rebuilt_snapshots, published.snapshot.id, published.files
        )
        state = state if moved_offsets is None else moved_offsets.write(folder, state)
    folder.save_facts(number, state.fingerprint, plain(model.facts))
    return state


def _start(start: Mapping[str, object], published: PublishedInput | None) -> Mapping[str, object]:
    return start if published is None else asdict(Start(published.uuid))


_RUNS = 3


def cut_over(rebuild: Rebuild) -> bool:
    """Publish the tables of a rebuild that has caught up; False: its last run failed, and nothing was published.

    Raises:
        StateError: `table-locked`, `rebuild-unfinished`.
        SetupError: Spark or the catalog cannot be had.
    """
    models = [rebuild.model(node) for node in rebuild.models]
    with locked_when_free([table_state(rebuild.target, model) for model in models]) as locks:
        lake = Lake(rebuild.target.catalog)
        for model in models:
            full_refresh.settle_interrupted_refresh(model, table_state(rebuild.target, model), lake)
        if not (completed := steps_completed(rebuild)) and not _caught_up(rebuild):
            return False
        with locked([next_state(rebuild.target, model) for model in models]) as next_locks, ExitStack() as stack:
            publish = Step(PUBLISHED)
            if PUBLISHED not in completed:
                spark = stack.enter_context(spark_session(rebuild.target, rebuild.target_dir, (*locks, *next_locks)))
                run = command_run(rebuild.manifest, rebuild.target, rebuild.root, spark)
                raise_fences(run, models)
                publish = Step(PUBLISHED, partial(_publish, rebuild, run, spark))
            steps = [Step(PUBLISHING), publish, Step("rebuild dropped", partial(drop, rebuild))]
            carry_out(
                [(rebuild.journal(node), note) for node, note in reversed(rebuild.notes().items())],
                steps,
                models[0].name,
            )
    return True


def _caught_up(rebuild: Rebuild) -> bool:
    for _ in range(_RUNS):
        if run_once(rebuild, rebuild.models).failed:
            return False
        if (unread_model := next(_unread(rebuild), None)) is None:
            return True
    message = f"'{unread_model}' has not read all of the tables that are rebuilt with it"
    raise StateError("rebuild-unfinished", message, "Run the command again.", node=unread_model)


def _unread(rebuild: Rebuild) -> Iterator[str]:
    lake = Lake(rebuild.target.catalog)
    for node in rebuild.models:
        reader = rebuild.rebuilt_model(node)
        folder = next_state(rebuild.target, rebuild.model(node))
        state = folder.load()
        if state is None:
            yield reader.name
            continue
        checkpoint = read_checkpoint(folder, state.generation, files=False)
        position = StreamPosition(reader, folder, state, checkpoint, rebuilt=False)
        owners = [
            rebuild.rebuilt_model(item.node) for item in reader.inputs if item.stream and item.node in rebuild.models
        ]
        tables = ((owner, lake.table(owner.relation.schema, owner.relation.name)) for owner in owners)
        unread = (any(unread_faults([position], owner, owner.relation, table)) for owner, table in tables if table)
        if position.in_flight or any(unread):
            yield reader.name


def _publish(rebuild: Rebuild, run: Run, spark: SparkSession) -> None:
    for node in rebuild.models:
        model = rebuild.model(node)
        rebuilt_state, state = _rebuilt_state(rebuild, model), run.state(model).load()
        if state is None or state.generation_id != rebuilt_state.generation_id:
            read_models = [item.node for item in model.inputs if item.stream and item.node in rebuild.models]
            _publish_one(
                run, spark, model, {name: _published(rebuild, run, rebuild.model(name)) for name in read_models}
            )


def _rebuilt_state(rebuild: Rebuild, model: Model) -> ModelState:
    state = next_state(rebuild.target, model).load()
    if state is None:
        message = f"the state of {next_relation(model.relation)} is lost"
        hint = f"Rebuild it in place: engine build -f -s {model.name}+"
        raise StateError("rebuild-unfinished", message, hint, node=model.name)
    return state


def _published(rebuild: Rebuild, run: Run, model: Model) -> PublishedInput:
    relations = (model.relation, next_relation(model.relation))
    table, rebuilt_table = (run.lake.table(relation.schema, relation.name) for relation in relations)
    if table is None or rebuilt_table is None:
        raise ValueError(model.name)
    return published_input(model, _rebuilt_state(rebuild, model), table, rebuilt_table)


def _publish_one(run: Run, spark: SparkSession, model: Model, inputs: Mapping[str, PublishedInput]) -> None:
    session, relation = spark.newSession(), next_relation(model.relation)
    state = copy_rebuilt_generation(run, model, next_state(run.target, model), inputs)
    kill_points.reach("generation copied", model.name)
    take_over(run, session, model, state, relation)
    kill_points.reach("taken over", model.name)
    full_refresh.publish(run, model, run.state(model), session, state, relation)


def compare_tables(rebuild: Rebuild) -> Iterator[tuple[str, VersionDifference]]:
    """Yield the difference of each table that exists, with the name of its model.

    Raises:
        RunError: `query-failed`.
        SetupError: Spark or the catalog cannot be had.
    """
    lake = Lake(rebuild.target.catalog)
    models = [rebuild.model(node) for node in rebuild.models]
    models = [m for m in models if (t := lake.table(m.relation.schema, m.relation.name)) is not None and t.history]
    if not models:
        return
    with spark_session(rebuild.target, rebuild.target_dir) as spark:
        for model in models:
            relation = next_relation(model.relation)
            description = "the rebuilt table, with the one that readers see"
            yield (
                model.name,
                compare_relations(spark.newSession(), model, description, model.relation.sql, relation.sql),
            )
