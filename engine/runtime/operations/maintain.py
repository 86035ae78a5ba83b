"""`engine maintain`: small files joined, old snapshots and orphan files removed, nothing that is still needed.

Needed are the last snapshot that each model wrote and the last that each reader has read. Tags keep those, from foreign
maintenance too, and snapshots from the oldest of them on stay, so that the ancestry to the table is whole. No lock is
taken: a running build only moves these places on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.compile import Manifest, Model, Relation, Target
from engine.errors import EngineError
from engine.lake import maintenance_procedures, staging_branch
from engine.lake.catalog import catalog_settings
from engine.lake.clients import table_removal
from engine.lake.clients.catalog_client import client
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import TableFacts
from engine.runtime.build import OpenSession, spark_session
from engine.runtime.lifecycle.expire_snapshots import (
    AGE,
    DELIVERED,
    READ,
    RETAIN,
    WRITTEN,
    needed_snapshots,
    not_after,
    number_of,
    relations_of,
)
from engine.runtime.spark_support.spark_errors import spark_exceptions, summary
from engine.secrets.scrubber import scrub

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("engine.runtime")

TAGS = "engine_"
_DAY = 24 * 60 * 60
ORPHANS_AFTER = 3 * _DAY


@dataclass(frozen=True, slots=True)
class Care:
    """How tables are maintained; ages in seconds.

    `older_than`: of snapshots that may go; None: as the table's properties say. `orphans_after`: of files that no
    snapshot knows; None: none are looked for, as another table has its files in the same folder.
    """

    dry_run: bool = False
    older_than: int | None = None
    orphans_after: int | None = ORPHANS_AFTER


@dataclass(frozen=True, slots=True)
class Cared:
    """What was done to a table; after a dry run, what would be.

    `joined` small files were read and `into` files written instead. `manifests`: lists of files that were rewritten; 0
    after a dry run. `kept_for`: readers that are at an older snapshot than those that might go. `waits`: rows wait in
    it for tests, so that it was left alone.
    """

    model: Model
    table: str
    joined: int = 0
    into: int = 0
    manifests: int = 0
    expired: int = 0
    orphans: int = 0
    kept_for: tuple[str, ...] = ()
    waits: bool = False
    error: str = ""


def maintain(
    manifest: Manifest,
    target: Target,
    models: Sequence[Model],
    target_dir: Path,
    care: Care,
    opening: OpenSession | None = None,
) -> Iterator[Cared]:
    """Maintain the tables of some models, one after the other, with what is beside them.

    `manifest`: all models: each may be a reader.

    Raises SetupError: Spark or the catalog cannot be had; what is wrong with a table is in its result.
    """
    lake = Lake(target.catalog)
    tables = [(m, r, t) for m in models for r in relations_of(m) if (t := lake.table(r.schema, r.name)) is not None]
    own_tables = [(m, r, t) for m, r, t in tables if t.properties.get("engine.model") == m.name]
    if not own_tables:
        return
    catalog_settings.prepare(target.catalog)
    with (opening or spark_session)(target, target_dir) as spark:
        shared = table_removal.shared_folders(target.catalog, {model.relation.schema for model in manifest.models})
        for model, relation, _ in own_tables:
            entry = client(target.catalog).table(relation.schema, relation.name)
            alone = entry is None or table_removal.table_folder(entry.location) not in shared
            table_care = care if alone else replace(care, orphans_after=None)
            yield _maintain_table(spark.newSession(), manifest, target, model, relation, table_care)


def _maintain_table(
    session: SparkSession, manifest: Manifest, target: Target, model: Model, relation: Relation, care: Care
) -> Cared:
    result = Cared(model, str(relation))
    # Read now: the tables before this one took their time.
    table = Lake(target.catalog).table(relation.schema, relation.name)
    if table is not None and STAGED in table.branches:
        # What waits could not be put behind a compaction.
        return replace(result, waits=True)
    if table is None or not table.history:
        return result
    failures: tuple[type[Exception], ...] = (EngineError, *spark_exceptions())
    try:
        needed_by_tag = needed_snapshots(manifest, target, model, relation, table)
        age = care.older_than * 1000 if care.older_than is not None else number_of(table, AGE)
        by_age = int(time.time() * 1000) - age
        older_than = int(min(by_age, not_after(table, needed_by_tag.values())))
        newest_needed = min(by_age, needed_by_tag[WRITTEN].at) if WRITTEN in needed_by_tag else by_age
        readers = sorted(
            _reader_name(tag) for tag, s in needed_by_tag.items() if tag != WRITTEN and s.at < newest_needed
        )
        result = replace(result, kept_for=tuple(readers))
        retain = number_of(table, RETAIN)
        if care.dry_run:
            return _dry_run_result(session, result, relation, table, older_than, retain, care)
        maintenance_procedures.tag(session, relation, {tag: s.id for tag, s in needed_by_tag.items()}, TAGS)
        # What was done before a fault is reported with it.
        for counts in _steps(session, relation, older_than, retain, care):
            result = replace(result, **counts)
            if staging_branch.undo_rewriting(session, relation.sql):
                # A build has begun to stage rows meanwhile.
                return replace(result, waits=True)
    except failures as failure:
        _log.exception("maintenance of %s", relation)
        return replace(result, error=scrub(summary(str(failure))))
    return result


def _reader_name(tag: str) -> str:
    return f"sink {tag.removeprefix(DELIVERED)}" if tag.startswith(DELIVERED) else tag.removeprefix(READ)


def _dry_run_result(
    session: SparkSession,
    result: Cared,
    relation: Relation,
    table: TableFacts,
    older_than: int,
    retain: int,
    care: Care,
) -> Cared:
    return replace(
        result,
        joined=maintenance_procedures.small_files(session, relation, table.properties),
        expired=maintenance_procedures.would_expire(session, relation, older_than, retain),
        orphans=_orphans(session, relation, care),
    )


def _steps(
    session: SparkSession, relation: Relation, older_than: int, retain: int, care: Care
) -> Iterator[dict[str, Any]]:
    joined, into = maintenance_procedures.compact(session, relation)
    yield {"joined": joined, "into": into}
    _, manifests = maintenance_procedures.rewrite_manifests(session, relation)
    yield {"manifests": manifests}
    count_before = maintenance_procedures.snapshots(session, relation)
    maintenance_procedures.expire(session, relation, older_than, retain)
    yield {"expired": max(count_before - maintenance_procedures.snapshots(session, relation), 0)}
    yield {"orphans": _orphans(session, relation, care)}


def _orphans(session: SparkSession, relation: Relation, care: Care) -> int:
    if care.orphans_after is None:
        return 0
    older_than = int(time.time() * 1000) - care.orphans_after * 1000
    return maintenance_procedures.orphans(session, relation, older_than, dry_run=care.dry_run)
