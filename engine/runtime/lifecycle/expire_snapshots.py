"""Expiry of old snapshots at the end of a build, as each commit writes the list of all snapshots again.

600 micro-batches left a metadata file of 676 KB. What its model wrote last, and what its readers have read, stays.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compile import Manifest, Model, Relation, Sink, Target
from engine.errors import Diagnostic, EngineError, Level, RunError
from engine.events import Diagnosed
from engine.lake import maintenance_procedures
from engine.lake.commits import STAGED
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.deployed.renamed_tables import state_now
from engine.plan.deployed.state_folder import next_state, table_state
from engine.runtime.quality import quarantine
from engine.runtime.sinks import deleted_keys
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.secrets.scrubber import scrub
from engine.state import checkpoint as spark_checkpoint

if TYPE_CHECKING:
    from engine.runtime.context.run_context import Run


WRITTEN = "engine_written"
READ = "engine_read_by_"
DELIVERED = "engine_delivered_by_"
_DAY = 24 * 60 * 60
# A sink that does not deliver keeps snapshots for so long.
_SINK_RETAIN_MS = 7 * _DAY * 1000
# Iceberg's defaults of the table properties of these names.
AGE = ("history.expire.max-snapshot-age-ms", 5 * _DAY * 1000)
RETAIN = ("history.expire.min-snapshots-to-keep", 1)


def number_of(table: TableFacts, name_and_default: tuple[str, int]) -> int:
    """Return a property of a table that is a number.

    Raises RunError: `maintenance-skipped`: it is something else; Iceberg would fail on it, too.
    """
    name, default = name_and_default
    value = table.properties.get(name, str(default))
    try:
        return int(value)
    except ValueError as error:
        message = f"the table property '{name}' is '{value}', which is not a number"
        hint = f"Correct it under table_properties: {{{name}: '{default}'}}"
        raise RunError("maintenance-skipped", message, hint) from error


def relations_of(model: Model) -> tuple[Relation, ...]:
    suffixes = (quarantine.SUFFIX, deleted_keys.SUFFIX)
    return (model.relation, *(replace(model.relation, name=model.relation.name + suffix) for suffix in suffixes))


def needed_snapshots(
    manifest: Manifest, target: Target, model: Model, relation: Relation, table: TableFacts
) -> dict[str, SnapshotFacts]:
    by_tag: dict[str, SnapshotFacts | None] = {WRITTEN: _last_written(target, model, relation, table)}
    by_id = {snapshot.id: snapshot for snapshot in table.history}
    for reader in manifest.models:
        if relation != model.relation and not reader.streaming:
            continue
        snapshot_ids = _positions(target, reader) if reader.streaming else _computed_from(target, reader, model)
        positions = [by_id[i] for i in snapshot_ids if i in by_id]
        if positions:
            by_tag[READ + reader.name] = min(positions, key=lambda snapshot: snapshot.at)
    if relation == model.relation:
        by_tag |= {
            DELIVERED + sink.name: _delivered_last(manifest, target, sink, table)
            for sink in manifest.sinks
            if sink.model == model.id
        }
    return {tag: snapshot for tag, snapshot in by_tag.items() if snapshot is not None}


def _delivered_last(manifest: Manifest, target: Target, sink: Sink, table: TableFacts) -> SnapshotFacts | None:
    """Return the snapshot that a sink continues from, if it is young enough; None: the sink needs none.

    If the sink's target does not tell its position, each snapshot may be the one.
    """
    from engine.runtime.deliver_sinks import open_sink

    oldest_at = time.time() * 1000 - _SINK_RETAIN_MS
    young_snapshots = [snapshot for snapshot in table.history if snapshot.at >= oldest_at]
    try:
        with open_sink(manifest, target, sink) as opened:
            position = opened.target.position()
    except EngineError as error:
        _log.warning("the position of the sink %s is not known: %s", sink.name, error)
        return min(young_snapshots, key=lambda snapshot: snapshot.at, default=None)
    if position is None or position.table != table.uuid:
        return None
    needed_ids = {position.snapshot, position.base, position.reading}
    needed = (snapshot for snapshot in young_snapshots if snapshot.id in needed_ids)
    return min(needed, key=lambda snapshot: snapshot.at, default=None)


def not_after(table: TableFacts, needed_snapshots: Collection[SnapshotFacts]) -> float:
    """Return the time in ms before which snapshots may expire so that some and all after them stay; infinite: of none.

    A clock that was set back makes a snapshot older than its parent, by up to a minute (Iceberg rejects more).
    """
    ids = {snapshot.id for snapshot in needed_snapshots}
    oldest = max((index for index, snapshot in enumerate(table.history) if snapshot.id in ids), default=-1)
    return min((snapshot.at for snapshot in table.history[: oldest + 1]), default=math.inf)


def _last_written(target: Target, model: Model, relation: Relation, table: TableFacts) -> SnapshotFacts | None:
    state = table_state(target, model).load() if relation == model.relation else None
    noted = next((s for s in table.history if state is not None and s.id == state.snapshot), None)
    return noted or next((s for s in table.history if s.marker("model") == model.name), None)


def _computed_from(target: Target, reader: Model, model: Model) -> Iterator[int]:
    state = state_now(target, reader).load() if reader.recomputed else None
    at = state.inputs.get(model.id) if state is not None and state.pinned else None
    if isinstance(at, Mapping) and isinstance(at.get("snapshot"), int):
        yield at["snapshot"]


def _positions(target: Target, reader: Model) -> Iterator[int]:
    """Yield the snapshots that the generations of a reader have read up to, not those kept for a rollback."""
    # A rebuild beside the table (`engine build --rebuild`) has a folder of its own.
    folders = (state_now(target, reader), next_state(target, reader))
    for checkpoint in (folder.checkpoint(number) for folder in folders for number in folder.generations()):
        for offset in spark_checkpoint.standing(checkpoint):
            snapshot = offset.get("snapshot_id")
            if isinstance(snapshot, int):
                yield snapshot


_log = logging.getLogger("engine.runtime")

# Unless the table says how old a snapshot may be, more than this many do not stay, once they are an hour old.
MOST_SNAPSHOTS = 1_000
_HOUR_MS = 60 * 60 * 1000
# Expiry is a commit: it waits until it is worth one.
_WORTH = 20


def expire_snapshots(run: Run, models: Iterable[Model]) -> None:
    """Expire the old snapshots of models' tables, where there are enough of them.

    What `engine maintain` keeps stays. A table that cannot be maintained now is left to a later build, and logged.
    """
    failures: tuple[type[Exception], ...] = (*spark_exceptions(), EngineError, OSError, ValueError)
    for model in models:
        for relation in relations_of(model):
            try:
                _expire(run, model, relation)
            except failures as error:
                # The run is over, and what it wrote stays: nothing here may undo that.
                _log.warning("old snapshots of %s were not expired", relation, exc_info=True)
                run.emit(Diagnosed(_skipped(model, relation, error)))


def _skipped(model: Model, relation: Relation, error: Exception) -> Diagnostic:
    message = f"old snapshots of {relation} were not expired: {scrub(summary(str(error)))}"
    hint = f"The rows are written. Look for the cause with: engine maintain -s {model.name}"
    return Diagnostic("maintenance-skipped", message, hint, Level.WARNING, node=model.name)


def _expire(run: Run, model: Model, relation: Relation) -> None:
    table = run.lake.table(relation.schema, relation.name)
    if table is None or STAGED in table.branches or table.properties.get("engine.model") != model.name:
        return
    if table.properties.get("gc.enabled", "true").lower() == "false":
        return
    retain = number_of(table, RETAIN)
    allowed = _allowed_by_age(table, int(time.time() * 1000))
    if _older(table, allowed, retain) < _WORTH:
        return
    by_tag = needed_snapshots(run.manifest, run.target, model, relation, table)
    expire_before = int(min(allowed, not_after(table, by_tag.values())))
    if (count := _older(table, expire_before, retain)) >= _WORTH:
        maintenance_procedures.expire_here(run.spark.newSession(), relation, expire_before, retain)
        _log.info("expired %d snapshots of %s", count, relation)


def _allowed_by_age(table: TableFacts, now_ms: int) -> int:
    old = now_ms - number_of(table, AGE)
    if AGE[0] in table.properties or len(table.history) <= MOST_SNAPSHOTS:
        return old
    return max(old, min(table.history[MOST_SNAPSHOTS - 1].at, now_ms - _HOUR_MS))


def _older(table: TableFacts, expire_before: int, retain: int) -> int:
    return sum(snapshot.at < expire_before for snapshot in table.history[retain:])
