"""The rebuilt tables take the place of the others: model by model, each in one commit.

Order: the locks of the models' own tables, one more bounded run; then, as steps, a note that nothing is built beside
them any more; for each model its checkpoint is copied, and its rows are published as those of a full refresh are; when
all are, the tables beside them go. After a kill at any moment the same command finishes: the marker of the commit says
which are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Model
from engine.errors import StateError
from engine.lake.lake_reader import Lake
from engine.plan.deployed.checkpoint_facts import read_checkpoint
from engine.plan.deployed.state_folder import next_relation, next_state, table_state
from engine.runtime.build import spark_session
from engine.runtime.context.locks_when_free import locked_when_free
from engine.runtime.context.run_context import Run, command_run
from engine.runtime.erasure.stream_positions import StreamPosition, unread_faults
from engine.runtime.lifecycle import full_refresh
from engine.runtime.lifecycle.fence_previous_owner import raise_fences
from engine.runtime.rebuild.copied_generation import PublishedInput, copied, published_input
from engine.runtime.rebuild.tables_beside import Rebuild, drop, run_once, steps_completed
from engine.runtime.rebuild.taken_over import take_over
from engine.state import ModelState, locked
from engine.state.operations import PUBLISHED, PUBLISHING, Step, carry_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS = 3


def cut_over(one: Rebuild) -> bool:
    """Publish the tables of a rebuild that has caught up; False: its last run failed, and nothing was published.

    Raises:
        StateError: `table-locked`, `rebuild-unfinished`.
        SetupError: Spark or the catalog cannot be had.
    """
    models = [one.model(node) for node in one.models]
    with locked_when_free([table_state(one.target, model) for model in models]) as locks:
        lake = Lake(one.target.catalog)
        for model in models:
            full_refresh.settle(model, table_state(one.target, model), lake)
        if not (completed := steps_completed(one)) and not _caught_up(one):
            return False
        with locked([next_state(one.target, model) for model in models]) as beside, ExitStack() as stack:
            publish = Step(PUBLISHED)
            if PUBLISHED not in completed:
                spark = stack.enter_context(spark_session(one.target, one.target_dir, (*locks, *beside)))
                run = command_run(one.manifest, one.target, one.root, spark)
                raise_fences(run, models)
                publish = Step(PUBLISHED, partial(_publish, one, run, spark))
            steps = [Step(PUBLISHING), publish, Step("rebuild dropped", partial(drop, one))]
            carry_out(
                [(one.journal(node), note) for node, note in reversed(one.notes().items())], steps, models[0].name
            )
    return True


def _caught_up(one: Rebuild) -> bool:
    for _ in range(_RUNS):
        if run_once(one, one.models).failed:
            return False
        if (found := next(_unread(one), None)) is None:
            return True
    message = f"'{found}' has not read all of the tables that are rebuilt with it"
    raise StateError("rebuild-unfinished", message, "Run the command again.", node=found)


def _unread(one: Rebuild) -> Iterator[str]:
    lake = Lake(one.target.catalog)
    for node in one.models:
        reader = one.made(node)
        folder = next_state(one.target, one.model(node))
        state = folder.load()
        if state is None:
            yield reader.name
            continue
        checkpoint = read_checkpoint(folder, state.generation, files=False)
        position = StreamPosition(reader, folder, state, checkpoint, rebuilt=False)
        owners = [one.made(item.node) for item in reader.inputs if item.stream and item.node in one.models]
        tables = ((owner, lake.table(owner.relation.schema, owner.relation.name)) for owner in owners)
        unread = (any(unread_faults([position], owner, owner.relation, table)) for owner, table in tables if table)
        if position.in_flight or any(unread):
            yield reader.name


def _publish(one: Rebuild, run: Run, spark: SparkSession) -> None:
    for node in one.models:
        model = one.model(node)
        made, state = _made(one, model), run.state(model).load()
        if state is None or state.generation_id != made.generation_id:
            read = [item.node for item in model.inputs if item.stream and item.node in one.models]
            _publish_one(run, spark, model, {name: _published(one, run, one.model(name)) for name in read})


def _made(one: Rebuild, model: Model) -> ModelState:
    made = next_state(one.target, model).load()
    if made is None:
        message = f"the state of {next_relation(model.relation)} is lost"
        hint = f"Rebuild it in place: engine build -f -s {model.name}+"
        raise StateError("rebuild-unfinished", message, hint, node=model.name)
    return made


def _published(one: Rebuild, run: Run, model: Model) -> PublishedInput:
    relations = (model.relation, next_relation(model.relation))
    table, made = (run.lake.table(relation.schema, relation.name) for relation in relations)
    if table is None or made is None:
        raise ValueError(model.name)
    return published_input(model, _made(one, model), table, made)


def _publish_one(run: Run, spark: SparkSession, model: Model, inputs: Mapping[str, PublishedInput]) -> None:
    session, relation = spark.newSession(), next_relation(model.relation)
    state = copied(run, model, next_state(run.target, model), inputs)
    kill_points.reach("generation copied", model.name)
    take_over(run, session, model, state, relation)
    kill_points.reach("taken over", model.name)
    full_refresh.publish(run, model, run.state(model), session, state, relation)
