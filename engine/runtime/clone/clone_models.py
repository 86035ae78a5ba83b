"""`engine build --clone TARGET`: tables and checkpoints of another target, at one moment of all of them.

Order: the locks of both sides, which nobody else can write to then; a note in each folder of the state that its table
is to be dropped; for each model, after those that it reads, what it remembers of deletes, its table, its state; then
the notes go, that of the first model first: from then on all are whole. After a kill before that, the same command
recreates all of it, so that the tables are those of one moment; a build, or `engine drop`, takes it for a drop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import kill_points
from engine.compile import Manifest, Relation, Target
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.clients.table_removal import CLONE_OF
from engine.lake.lake_reader import Lake
from engine.plan.deployed.state_folder import environment
from engine.runtime.build import spark_session
from engine.runtime.clone.clone_checks import clone_faults
from engine.runtime.clone.clone_table import clone_table
from engine.runtime.clone.cloned_state import Clone, copy_state
from engine.runtime.context.locks_when_free import locked_when_free
from engine.runtime.context.needed_jars import jar_sets
from engine.runtime.operations.drop_table import Part, drop_part
from engine.runtime.sinks.deleted_keys import SUFFIX as DELETED
from engine.state import TableState
from engine.state.operations import Drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def clone_models(manifest: Manifest, target: Target, target_dir: Path, clones: Sequence[Clone]) -> None:
    """Make the tables of some models over those of another target.

    Raises:
        EngineError: `clone-unavailable`, `name-taken`: all that forbids it, and nothing was made.
        StateError: `table-locked`, `state-unreadable`, `state-unwritable`.
        SetupError: Spark or the catalog cannot be had.
    """
    models = [one.own for one in clones]
    with locked_when_free([folder for one in clones for folder in (one.source, one.folder)]) as locks:
        if found := [*clone_faults(manifest, target, clones)]:
            raise EngineError.of(found)
        whole = [one for one in clones if _is_whole(one)]
        left = [one for one in clones if one not in whole]
        if left:
            where = environment(manifest, target)
            for one in left:
                _remove_unfinished(target, one)
                one.folder.journal.begin(_note(one, left[0], where))
            with spark_session(target, target_dir, locks, jar_sets(manifest, models)) as spark:
                _clone_all(spark, target, left, where)
        for one in (*left, *whole):
            one.folder.journal.end(Drop)
            kill_points.reach("clone noted", one.own.name)


def is_begun(folder: TableState) -> bool:
    return (begun := folder.journal.begun(Drop)) is not None and begun.clone is not None


def _note(one: Clone, first: Clone, where: Mapping[str, str]) -> Drop:
    return Drop(one.own.name, where, clone=first.folder.name if one is not first else "")


def _is_whole(one: Clone) -> bool:
    begun = one.folder.journal.begun(Drop)
    if begun is None or not begun.clone or one.folder.load() is None:
        return False
    schema, _, table = begun.clone.removeprefix(f"{one.folder.catalog}.").rpartition(".")
    folder = replace(one.folder, schema=schema, table=table)
    return folder.load() is not None and not is_begun(folder)


def _clone_all(spark: SparkSession, target: Target, clones: Sequence[Clone], where: Mapping[str, str]) -> None:
    lake = Lake(target.catalog)
    names = {one.own.id: str(one.own.relation) for one in clones}
    uuids: dict[str, str] = {}
    for one in clones:
        state = one.source.load()
        if state is None:
            raise ValueError(one.own.name)
        deleted = _beside(one.other.relation)
        if lake.table(deleted.schema, deleted.name) is not None:
            clone_table(spark, deleted, _beside(one.own.relation))
        uuids[one.own.id] = clone_table(spark, one.other.relation, one.own.relation)
        kill_points.reach("table cloned", one.own.name)
        copy_state(one, state, names, uuids, where)
        kill_points.reach("state cloned", one.own.name)


def _beside(relation: Relation) -> Relation:
    return replace(relation, name=f"{relation.name}{DELETED}")


def _remove_unfinished(target: Target, one: Clone) -> None:
    for number in one.folder.generations():
        one.folder.discard(number)
    for relation in (one.own.relation, _beside(one.own.relation)):
        part = _clone_of(target.catalog, relation)
        if part is not None:
            drop_part(target, part)


def _clone_of(config: CatalogConfig, relation: Relation) -> Part | None:
    entry = client(config).table(relation.schema, relation.name)
    if entry is None:
        return None
    found = table_removal.stored(config, entry)
    if CLONE_OF not in found.properties:
        return None
    return Part("table", relation.schema, relation.name, found.uuid, found.folder, found)
