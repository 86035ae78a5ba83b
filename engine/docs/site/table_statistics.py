"""The tables of models as they are: rows, bytes and the last snapshots, through PyIceberg and without Java."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.characters import whole_number
from engine.compile.nodes.manifest import Manifest, Model
from engine.errors import EngineError
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.commits import STAGED
from engine.lake.lake_reader import Lake
from engine.lake.table_facts import SnapshotFacts, TableFacts, row_count

QUARANTINE = "__quarantine"
# A chart shows no more.
_KEPT = 100
_READERS = 8
_log = logging.getLogger("engine.docs")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit: when it was, what it did, the rows it added and took away, and the engine's marks in it."""

    id: int
    at: datetime
    operation: str
    added: int
    removed: int
    rows: int
    bytes: int
    batch: int | None
    run: str


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A stored table.

    Attributes:
        columns: names and Iceberg types, as stored.
        snapshots: the last ones, oldest first.
        commits: how many snapshots are kept in all.
        waiting: rows wait for the tests to pass, and readers do not see them yet.
    """

    uuid: str
    columns: tuple[tuple[str, str], ...]
    snapshots: tuple[Snapshot, ...]
    commits: int
    rows: int
    bytes: int
    files: int
    quarantined: tuple[Snapshot, ...] = ()
    waiting: bool = False

    @property
    def last(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None


def read_tables(
    manifest: Manifest, catalog: CatalogConfig, only: Collection[str] | None = None
) -> dict[str, StoredTable]:
    """The tables of the models that have one, by the models' ids; empty where the catalog cannot be read.

    Args:
        manifest: of the project.
        catalog: that the tables are in.
        only: ids of the models that are wanted; None: all.
    """
    lake = Lake(catalog)
    models = [m for m in manifest.models if m.keeps_rows and (only is None or m.id in only)]
    try:
        names = {schema: set(lake.names(schema)) for schema in {m.relation.schema for m in models}}
        with ThreadPoolExecutor(_READERS) as pool:
            tables = pool.map(lambda model: _table(lake, model, names[model.relation.schema]), models)
            return {model.id: table for model, table in zip(models, tables, strict=True) if table}
    except EngineError as error:
        _log.warning("the tables cannot be shown: %s. %s", error.diagnostic.message, error.diagnostic.hint)
        return {}


def _table(lake: Lake, model: Model, names: Iterable[str]) -> StoredTable | None:
    relation = model.relation
    facts = lake.table(relation.schema, relation.name) if relation.name in names else None
    if facts is None:
        return None
    beside = f"{relation.name}{QUARANTINE}"
    quarantine = lake.table(relation.schema, beside) if beside in names else None
    now = facts.history[0].summary if facts.history else {}
    return StoredTable(
        uuid=facts.uuid,
        columns=facts.columns,
        snapshots=_snapshots(facts),
        commits=len(facts.history),
        rows=_rows(now),
        bytes=_count(now, "total-files-size"),
        files=_count(now, "total-data-files"),
        quarantined=_snapshots(quarantine) if quarantine else (),
        waiting=STAGED in facts.branches,
    )


def _snapshots(facts: TableFacts) -> tuple[Snapshot, ...]:
    return tuple(_snapshot(snapshot) for snapshot in reversed(facts.history[:_KEPT]))


def _snapshot(facts: SnapshotFacts) -> Snapshot:
    batch = facts.marker("batch-id")
    return Snapshot(
        facts.id,
        datetime.fromtimestamp(facts.at / 1000, UTC),
        facts.operation,
        _count(facts.summary, "added-records"),
        _removed(facts.summary),
        _rows(facts.summary),
        _count(facts.summary, "total-files-size"),
        whole_number(batch or ""),
        facts.marker("run-id") or "",
    )


def _rows(summary: Mapping[str, str]) -> int:
    """The rows that a reader gets, or, where nobody counts what was deleted, those in the files."""
    counted_rows = row_count(summary)
    return _count(summary, "total-records") if counted_rows is None else counted_rows


def _removed(summary: Mapping[str, str]) -> int:
    marked = _count(summary, "added-position-deletes") - _count(summary, "removed-position-deletes")
    return max(0, _count(summary, "deleted-records") + marked)


def _count(summary: Mapping[str, str], key: str) -> int:
    return whole_number(summary.get(key, "")) or 0
