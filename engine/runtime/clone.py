"""`engine build --clone TARGET`: tables and checkpoints of another target, at one moment of all of them.

Order: the locks of both sides; a note in each folder of the state that its table is to be dropped; for each model,
after those that it reads, its remembered deletes, its table, its state; then the notes go, that of the first model
first. After a kill before that, the same command recreates all of it; a build, or `engine drop`, takes it for a drop.

A clone is Iceberg's metadata with another UUID and location over the same files. These stay the other table's:
`gc.enabled` is false here, and a tag keeps its snapshot from expiring there for some days. The history is the same, so
that a stream's position in one is one in the other. Source: Iceberg's table spec (all paths are absolute),
`TableMetadataParser`, and the procedure `register_table`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as changed

from engine import kill_points
from engine.compile import Manifest, Model, Relation, Source, Target
from engine.compile.nodes.facts import NO_FACTS, Facts, plain, read_facts
from engine.compile.nodes.fingerprint import fingerprint
from engine.errors import Diagnostic, EngineError, Location
from engine.lake import table_writer
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.clients.table_removal import CLONE_OF
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_fence import FENCE
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
    model: Model
    source_model: Model
    folder: TableState
    source: TableState


def copy_state(
    clone: Clone, state: ModelState, names: Mapping[str, str], uuids: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Give a table that was cloned the state of the other one; the locks of both are held.

    Raises StateError: `state-unreadable`, `state-unwritable`.
    """
    number = state.generation
    cloned_facts = _facts(clone.model, read_facts(clone.source.facts(state)) or NO_FACTS)
    starts = {node: _start(start, uuids.get(node)) for node, start in state.starts.items()}
    cloned_state = replace(
        state,
        table=str(clone.model.relation),
        uuid=uuids[clone.model.id],
        phase=Phase.PUBLISHED,
        fingerprint=fingerprint(cloned_facts),
        starts=starts,
        environment=environment,
    )
    clone.folder.discard(number)
    copy_generation(
        clone.source,
        number,
        clone.folder,
        number,
        {node: (names[node], cloned_facts) for node, cloned_facts in uuids.items()},
    )
    clone.folder.save_facts(number, cloned_state.fingerprint, plain(cloned_facts))
    clone.folder.save(cloned_state)


def _start(start: Mapping[str, Any], clone: str | None) -> Mapping[str, Any]:
    return start if clone is None else {**start, "uuid": clone}


def _facts(model: Model, source_facts: Facts) -> Facts:
    deferred = {item.name: item.deferred for item in model.facts.inputs}
    inputs = tuple(changed(item, deferred=deferred.get(item.name, "")) for item in source_facts.inputs)
    return changed(source_facts, relation=str(model.relation), inputs=inputs)


TAG_DAYS = 7
# They would lead to the folder of the other table, or count the leases of another state folder.
_SOURCE_ONLY_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
    FENCE,
)


def clone_table(spark: SparkSession, source: Relation, to: Relation) -> str:
    """Make a table over the files that another one, whose lock is held, has now; return its UUID."""
    parser = jvm_of(spark).org.apache.iceberg.TableMetadataParser
    table = table_writer.load(spark, source.sql)
    metadata = table.operations().current()
    document = json.loads(parser.toJson(metadata))
    if document.get("current-snapshot-id", -1) != -1:
        tag = f"engine_clone_{to.schema}".replace("`", "").replace(".", "_")
        spark.sql(f"ALTER TABLE {source.sql} CREATE OR REPLACE TAG `{tag}` RETAIN {TAG_DAYS} DAYS")
    clone_document = _document(document, to, source)
    table_writer.create_namespace(spark, to.catalog, to.schema)
    file = f"{clone_document['location']}/metadata/00000-{uuid.uuid4()}.metadata.json"
    parser.write(parser.fromJson(json.dumps(clone_document)), table.io().newOutputFile(file))
    name = table_writer.literal(f"{to.schema}.{to.name}")
    spark.sql(
        f"CALL `{to.catalog}`.system.register_table(table => {name}, metadata_file => {table_writer.literal(file)})"
    )
    return str(clone_document["table-uuid"])


def _document(document: dict[str, Any], to: Relation, source: Relation) -> dict[str, Any]:
    properties = {key: text for key, text in document["properties"].items() if key not in _SOURCE_ONLY_PROPERTIES}
    refs = {name: ref for name, ref in document.get("refs", {}).items() if name == "main"}
    return {
        **document,
        "table-uuid": str(uuid.uuid4()),
        "location": _location(document["location"], to, source),
        "last-updated-ms": int(time.time() * 1000),
        "properties": {**properties, "gc.enabled": "false", CLONE_OF: f"{source} {document['table-uuid']}"},
        "refs": refs,
        "statistics": [],
        "partition-statistics": [],
        "metadata-log": [],
    }


def _location(location: str, to: Relation, source: Relation) -> str:
    """Where a catalog would put the new table, if the other one is where it would have put that."""
    parts = location.rstrip("/").rsplit("/", 2)
    if [part.lower() for part in parts[1:]] == [source.schema.lower(), source.name.lower()]:
        return f"{parts[0]}/{to.schema}/{to.name}-{uuid.uuid4().hex[:8]}"
    return f"{location.rstrip('/')}-{to.schema}-{uuid.uuid4().hex[:8]}"


UNAVAILABLE = "clone-unavailable"
_ANEW = "Build it from its beginning: leave out --clone."


def target_faults(target: Target, other: Target) -> Iterator[Diagnostic]:
    if target.name == other.name:
        message = f"target '{other.name}' cannot be cloned into itself"
        yield Diagnostic(UNAVAILABLE, message, "Choose another target with -t, or leave out --clone.")
        return
    for either_target in (target, other):
        if not isinstance(either_target.state, Path):
            message = f"the state of target '{either_target.name}' is in a bucket, where no checkpoint is copied yet"
            yield Diagnostic(UNAVAILABLE, message, "Build from the beginning: leave out --clone, add --defer.")
    if (target.catalog.name, target.catalog.path) != (other.catalog.name, other.catalog.path):
        message = f"the targets '{target.name}' and '{other.name}' have different catalogs"
        yield Diagnostic(UNAVAILABLE, message, "A clone shares the files of the other table: use one catalog for both.")


def clone_faults(manifest: Manifest, target: Target, clones: Sequence[Clone]) -> Iterator[Diagnostic]:
    """Yield why some tables cannot be cloned; the locks of both sides are held, or nobody writes yet."""
    lake = Lake(target.catalog)
    for clone in clones:
        message = _fault(manifest, lake, clone)
        if message:
            yield Diagnostic(UNAVAILABLE, message, _ANEW, node=clone.model.name, location=Location(clone.model.file))
        relation = clone.model.relation
        table = lake.table(relation.schema, relation.name)
        if table is not None and CLONE_OF not in table.properties:
            message = f"{relation} exists, and this target has no state of it"
            hint = f"Drop it if nobody needs it, or give '{clone.model.name}' another 'alias'."
            yield Diagnostic("name-taken", message, hint, node=clone.model.name, location=Location(clone.model.file))


def _fault(manifest: Manifest, lake: Lake, clone: Clone) -> str:
    source, name = clone.source_model.relation, clone.source_model.name
    state, table = clone.source.load(), lake.table(source.schema, source.name)
    for item in clone.model.inputs:
        node = manifest.nodes[item.node]
        if item.stream and isinstance(node, Source) and "after_reading" in node.spec.settings:
            return f"'{name}' reads '{item.name}', whose files are archived or deleted after reading"
    if state is None or table is None or table.uuid != state.uuid:
        return f"{source} is not the table that its state is of: it was dropped or replaced"
    if reason := unfinished(clone.source):
        return f"{source} is between two states: {reason}"
    if state.phase is not Phase.PUBLISHED or STAGED in table.branches:
        return f"rows of {source} wait for their tests"
    return "" if read_facts(clone.source.facts(state)) else f"the state of {source} does not record its query"


def clone_models(manifest: Manifest, target: Target, target_dir: Path, clones: Sequence[Clone]) -> None:
    """Make the tables of some models over those of another target.

    Raises:
        EngineError: `clone-unavailable`, `name-taken`: all that forbids it, and nothing was made.
        StateError: `table-locked`, `state-unreadable`, `state-unwritable`.
        SetupError: Spark or the catalog cannot be had.
    """
    models = [clone.model for clone in clones]
    with locked_when_free([folder for clone in clones for folder in (clone.source, clone.folder)]) as locks:
        if faults := [*clone_faults(manifest, target, clones)]:
            raise EngineError.from_diagnostics(faults)
        finished_clones = [clone for clone in clones if _is_whole(clone)]
        unfinished_clones = [clone for clone in clones if clone not in finished_clones]
        if unfinished_clones:
            where = environment(manifest, target)
            for clone in unfinished_clones:
                _remove_unfinished(target, clone)
                clone.folder.journal.begin(_note(clone, unfinished_clones[0], where))
            with spark_session(target, target_dir, locks, jar_sets(manifest, models)) as spark:
                _clone_all(spark, target, unfinished_clones, where)
        for clone in (*unfinished_clones, *finished_clones):
            clone.folder.journal.end(Drop)
            kill_points.reach("clone noted", clone.model.name)


def is_begun(folder: TableState) -> bool:
    return (drop := folder.journal.open_operation(Drop)) is not None and drop.clone is not None


def _note(clone: Clone, first: Clone, where: Mapping[str, str]) -> Drop:
    return Drop(clone.model.name, where, clone=first.folder.name if clone is not first else "")


def _is_whole(clone: Clone) -> bool:
    drop = clone.folder.journal.open_operation(Drop)
    if drop is None or not drop.clone or clone.folder.load() is None:
        return False
    schema, _, table = drop.clone.removeprefix(f"{clone.folder.catalog}.").rpartition(".")
    folder = replace(clone.folder, schema=schema, table=table)
    return folder.load() is not None and not is_begun(folder)


def _clone_all(spark: SparkSession, target: Target, clones: Sequence[Clone], where: Mapping[str, str]) -> None:
    lake = Lake(target.catalog)
    names = {clone.model.id: str(clone.model.relation) for clone in clones}
    uuids: dict[str, str] = {}
    for clone in clones:
        state = clone.source.load()
        if state is None:
            raise ValueError(clone.model.name)
        deleted = _deleted_keys_table(clone.source_model.relation)
        if lake.table(deleted.schema, deleted.name) is not None:
            clone_table(spark, deleted, _deleted_keys_table(clone.model.relation))
        uuids[clone.model.id] = clone_table(spark, clone.source_model.relation, clone.model.relation)
        kill_points.reach("table cloned", clone.model.name)
        copy_state(clone, state, names, uuids, where)
        kill_points.reach("state cloned", clone.model.name)


def _deleted_keys_table(relation: Relation) -> Relation:
    return replace(relation, name=f"{relation.name}{DELETED}")


def _remove_unfinished(target: Target, clone: Clone) -> None:
    for number in clone.folder.generations():
        clone.folder.discard(number)
    for relation in (clone.model.relation, _deleted_keys_table(clone.model.relation)):
        part = _clone_of(target.catalog, relation)
        if part is not None:
            drop_part(target, part)


def _clone_of(config: CatalogConfig, relation: Relation) -> Part | None:
    entry = client(config).table(relation.schema, relation.name)
    if entry is None:
        return None
    relation_facts = table_removal.stored_relation(config, entry)
    if CLONE_OF not in relation_facts.properties:
        return None
    return Part("table", relation.schema, relation.name, relation_facts.uuid, relation_facts.folder, relation_facts)
