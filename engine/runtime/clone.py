"""`engine build --clone TARGET`: tables and checkpoints of another target, at one moment of all of them.

Order: the locks of both sides, which nobody else can write to then; a note in each folder of the state that its table
is to be dropped; for each model, after those that it reads, what it remembers of deletes, its table, its state; then
the notes go, that of the first model first: from then on all are whole. After a kill before that, the same command
recreates all of it, so that the tables are those of one moment; a build, or `engine drop`, takes it for a drop.

What of another target cannot be cloned, found before anything is made.

A table over the files of another one: Iceberg's metadata with another UUID, another location and nothing else new.

What is written later lies below the new location. The files of the other table stay that table's: `gc.enabled` is false
here, so that nothing is removed from this side, and a tag keeps its snapshot from expiring on the other side for some
days. The history is the same, so that a position of a stream in one of them is one in the other.

Source: Iceberg's table spec (all paths are absolute), `TableMetadataParser`, and the procedure `register_table`.

The state of another target's table as that of a clone of it: the same checkpoint, with the names of here.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import kill_points
from engine.compile import Manifest, Model, Relation, Source, Target
from engine.compile.nodes.fingerprint import fingerprint
from engine.errors import Diagnostic, EngineError, Location
from engine.lake import table_writer
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.clients.table_removal import CLONE_OF
from engine.lake.commits import STAGED
from engine.lake.fencing.table_fence import FENCE
from engine.lake.lake_reader import Lake
from engine.plan.deployed.renamed_tables import unfinished
from engine.plan.deployed.state_folder import environment
from engine.runtime.build import spark_session
from engine.runtime.context.copy_generation import copy_generation
from engine.runtime.context.run_context import jar_sets, locked_when_free
from engine.runtime.operations.drop_table import Part, drop_part
from engine.runtime.sinks.deleted_keys import SUFFIX as DELETED
from engine.spark.internals.handles import jvm_of
from engine.state import ModelState, Phase, TableState
from engine.state.operations import Drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Clone:
    """A model whose table another target has."""

    own: Model
    other: Model
    folder: TableState
    source: TableState


def copy_state(
    one: Clone, state: ModelState, names: Mapping[str, str], uuids: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Give a table that was cloned the state of the other one; the locks of both are held.

    Raises:
        StateError: `state-unreadable`, `state-unwritable`.
    """
    number = state.generation
    facts = one.source.facts(state)
    known = _facts(one.own, facts if isinstance(facts, Mapping) else {})
    starts = {node: _start(start, uuids.get(node)) for node, start in state.starts.items()}
    made = replace(
        state,
        table=str(one.own.relation),
        uuid=uuids[one.own.id],
        phase=Phase.PUBLISHED,
        fingerprint=fingerprint(known),
        starts=starts,
        environment=environment,
    )
    one.folder.discard(number)
    copy_generation(
        one.source, number, one.folder, number, {node: (names[node], known) for node, known in uuids.items()}
    )
    one.folder.save_facts(number, made.fingerprint, known)
    one.folder.save(made)


def _start(start: Mapping[str, Any], clone: str | None) -> Mapping[str, Any]:
    return start if clone is None else {**start, "uuid": clone}


def _facts(own: Model, known: Mapping[str, Any]) -> dict[str, Any]:
    deferred = {item["name"]: item["deferred"] for item in own.facts["inputs"] if "deferred" in item}
    inputs = [
        {**{key: value for key, value in item.items() if key != "deferred"}, **_deferred(deferred.get(item["name"]))}
        for item in known["inputs"]
    ]
    return {**known, "relation": str(own.relation), "inputs": inputs}


def _deferred(table: str | None) -> dict[str, str]:
    return {} if table is None else {"deferred": table}


KEPT_DAYS = 7
# They would lead to the folder of the other table, or count the leases of another state folder.
_NOT_TAKEN = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path", FENCE)


def clone_table(spark: SparkSession, other: Relation, to: Relation) -> str:
    """Make a table over the files that another one, whose lock is held, has now; return its UUID."""
    parser = jvm_of(spark).org.apache.iceberg.TableMetadataParser
    table = table_writer.load(spark, other.sql)
    metadata = table.operations().current()
    known = json.loads(parser.toJson(metadata))
    if known.get("current-snapshot-id", -1) != -1:
        tag = f"engine_clone_{to.schema}".replace("`", "").replace(".", "_")
        spark.sql(f"ALTER TABLE {other.sql} CREATE OR REPLACE TAG `{tag}` RETAIN {KEPT_DAYS} DAYS")
    made = _document(known, to, other)
    table_writer.create_namespace(spark, to.catalog, to.schema)
    file = f"{made['location']}/metadata/00000-{uuid.uuid4()}.metadata.json"
    parser.write(parser.fromJson(json.dumps(made)), table.io().newOutputFile(file))
    name = table_writer.literal(f"{to.schema}.{to.name}")
    spark.sql(
        f"CALL `{to.catalog}`.system.register_table(table => {name}, metadata_file => {table_writer.literal(file)})"
    )
    return str(made["table-uuid"])


def _document(known: dict[str, Any], to: Relation, other: Relation) -> dict[str, Any]:
    properties = {key: text for key, text in known["properties"].items() if key not in _NOT_TAKEN}
    refs = {name: ref for name, ref in known.get("refs", {}).items() if name == "main"}
    return {
        **known,
        "table-uuid": str(uuid.uuid4()),
        "location": _location(known["location"], to, other),
        "last-updated-ms": int(time.time() * 1000),
        "properties": {**properties, "gc.enabled": "false", CLONE_OF: f"{other} {known['table-uuid']}"},
        "refs": refs,
        "statistics": [],
        "partition-statistics": [],
        "metadata-log": [],
    }


def _location(known: str, to: Relation, other: Relation) -> str:
    """Where a catalog would put the new table, if the other one is where it would have put that."""
    parts = known.rstrip("/").rsplit("/", 2)
    if [part.lower() for part in parts[1:]] == [other.schema.lower(), other.name.lower()]:
        return f"{parts[0]}/{to.schema}/{to.name}-{uuid.uuid4().hex[:8]}"
    return f"{known.rstrip('/')}-{to.schema}-{uuid.uuid4().hex[:8]}"


UNAVAILABLE = "clone-unavailable"
_ANEW = "Build it from its beginning: leave out --clone."


def target_faults(target: Target, other: Target) -> Iterator[Diagnostic]:
    if target.name == other.name:
        message = f"target '{other.name}' cannot be cloned into itself"
        yield Diagnostic(UNAVAILABLE, message, "Choose another target with -t, or leave out --clone.")
        return
    for one in (target, other):
        if not isinstance(one.state, Path):
            message = f"the state of target '{one.name}' is in a bucket, where no checkpoint is copied yet"
            yield Diagnostic(UNAVAILABLE, message, "Build from the beginning: leave out --clone, add --defer.")
    if (target.catalog.name, target.catalog.path) != (other.catalog.name, other.catalog.path):
        message = f"the targets '{target.name}' and '{other.name}' have different catalogs"
        yield Diagnostic(UNAVAILABLE, message, "A clone shares the files of the other table: use one catalog for both.")


def clone_faults(manifest: Manifest, target: Target, clones: Sequence[Clone]) -> Iterator[Diagnostic]:
    """Yield why some tables cannot be cloned; the locks of both sides are held, or nobody writes yet."""
    lake = Lake(target.catalog)
    for one in clones:
        message = _fault(manifest, lake, one)
        if message:
            yield Diagnostic(UNAVAILABLE, message, _ANEW, node=one.own.name, location=Location(one.own.file))
        relation = one.own.relation
        table = lake.table(relation.schema, relation.name)
        if table is not None and CLONE_OF not in table.properties:
            message = f"{relation} exists, and this target has no state of it"
            hint = f"Drop it if nobody needs it, or give '{one.own.name}' another 'alias'."
            yield Diagnostic("name-taken", message, hint, node=one.own.name, location=Location(one.own.file))


def _fault(manifest: Manifest, lake: Lake, one: Clone) -> str:
    other, name = one.other.relation, one.other.name
    state, table = one.source.load(), lake.table(other.schema, other.name)
    for item in one.own.inputs:
        node = manifest.nodes[item.node]
        if item.stream and isinstance(node, Source) and "after_reading" in node.spec.settings:
            return f"'{name}' reads '{item.name}', whose files are archived or deleted after reading"
    if state is None or table is None or table.uuid != state.uuid:
        return f"{other} is not the table that its state is of: it was dropped or replaced"
    if reason := unfinished(one.source):
        return f"{other} is between two states: {reason}"
    if state.phase is not Phase.PUBLISHED or STAGED in table.branches:
        return f"rows of {other} wait for their tests"
    return (
        "" if isinstance(one.source.facts(state), Mapping) else f"the state of {other} does not say what its query was"
    )


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
