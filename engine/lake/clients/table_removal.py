"""Removing tables and views without Java: what is in the catalog, and the files of a table.

A server of the REST protocol is asked to remove the files itself. In other catalogs the files of a table are its
folder, on this machine or in an object store, as Iceberg lays them out: `<warehouse>/<schema>/<table>/`. A folder goes
only if it is below the warehouse, holds the table's own metadata, and no other table of the catalog has its metadata in
it or around it; else the files stay. Links are removed as links. Source: Iceberg's JdbcCatalog (a drop is the DELETE of
one row) and CatalogUtil.dropTableData, which leaves files alone where `gc.enabled` is false.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from engine.characters import whole_number
from engine.errors import SetupError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig, warehouse
from engine.lake.catalog.locations import OutsideError, resolve, root
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.lake.clients.catalog_client import client
from engine.lake.clients.postgres_catalog import PostgresCatalog
from engine.lake.table_facts import row_count

# <schema>/<table>
_DEPTH = 2
# The property of a table over the files of another one: the name and the UUID of that one.
CLONE_OF = "engine.clone-of"


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """`folder` goes too; None: it stays because of `kept_reason`. `rows` and `size`: None if unknown, or of a view."""

    entry: CatalogEntry
    uuid: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    folder: PurePath | None = None
    kept_reason: str = ""
    rows: int | None = None
    size: int | None = None
    missing: bool = False


def stored_relation(config: CatalogConfig, entry: CatalogEntry) -> StoredRelation:
    """What a table or view is, from its metadata file alone.

    Raises SetupError: `lake-outside`, `catalog-unusable`: the catalog cannot be read.
    """
    catalog = client(config)
    try:
        metadata = catalog.document(entry)
        folder = None if catalog.purges else _resolved(config, str(metadata.get("location", "")))
    except OutsideError:
        return StoredRelation(entry, kept_reason="its metadata is outside the warehouse")
    except FileNotFoundError:
        return StoredRelation(entry, kept_reason="its metadata file is missing", missing=True)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        return StoredRelation(entry, kept_reason=f"its metadata cannot be read ({type(error).__name__})")
    properties = _texts(metadata.get("properties"))
    kept_reason = "" if folder is None else why_kept(config, folder, entry)
    # The files of a clone that are not its own lie in another folder; a server might remove them, too.
    is_clone = CLONE_OF in properties and not catalog.purges
    if not kept_reason and not is_clone and properties.get("gc.enabled", "true").lower() == "false":
        kept_reason = "its property gc.enabled is false"
    uuid = str(metadata.get("view-uuid" if entry.view else "table-uuid", ""))
    rows, size = (None, None) if entry.view else _numbers(metadata)
    return StoredRelation(entry, uuid, properties, None if kept_reason else folder, kept_reason, rows, size)


def why_kept(config: CatalogConfig, folder: PurePath, removed_entry: CatalogEntry | None = None) -> str:
    """Why a folder is not removed with a table; empty: it is the folder of that table, and of nothing else.

    Raises SetupError: `lake-outside`, `catalog-unusable`: the catalog cannot be read.
    """
    files = warehouse(config)
    top = files.root if isinstance(files, ObjectWarehouse) else root(files)
    if not folder.is_relative_to(top) or len(folder.relative_to(top).parts) < _DEPTH:
        return "its folder is not a table folder in the warehouse"
    if removed_entry is not None and not _resolved(config, removed_entry.location).is_relative_to(folder):
        return "its metadata and data are in different folders"
    other_locations = _every_location(config)
    if removed_entry is not None and removed_entry.location in other_locations:
        # Once: a table may be registered under two names.
        other_locations.remove(removed_entry.location)
    for location in other_locations:
        try:
            path = _resolved(config, location)
        except OutsideError:
            continue
        # <table>/metadata/<file>
        if path.is_relative_to(folder) or folder.is_relative_to(path.parent.parent):
            return "another table of the catalog has its files in the same folder"
    return ""


def shared_folders(config: CatalogConfig, schemas: Collection[str]) -> frozenset[str]:
    """The folders that have the files of several tables: of one that was renamed and of another that got its name.

    Raises SetupError: the catalog cannot be read.
    """
    catalog = client(config)
    if catalog.purges:
        names = [(schema, name) for schema in schemas for name in catalog.names(schema)]
        with ThreadPoolExecutor(catalog.at_a_time) as pool:
            entries = pool.map(lambda name: catalog.table(*name), names)
        locations = [entry.location for entry in entries if entry is not None]
    else:
        locations = _every_location(config)
    return frozenset(folder for folder, count in Counter(map(table_folder, locations)).items() if count > 1)


def table_folder(location: str) -> str:
    return location.rsplit("/", _DEPTH)[0]


def folder_of(config: CatalogConfig, text: str) -> PurePath:
    return PurePosixPath(text) if isinstance(warehouse(config), ObjectWarehouse) else Path(text)


def remove_folder(config: CatalogConfig, folder: PurePath) -> bool:
    """Remove the files of a table that has left the catalog; False if they are not its alone, and stay.

    Raises SetupError: `catalog-unusable`: a file cannot be removed; `s3-denied`, `s3-unreachable`.
    """
    files = warehouse(config)
    if isinstance(files, ObjectWarehouse):
        if why_kept(config, folder):
            return False
        files.remove(PurePosixPath(folder))
        return True
    if Path(os.path.realpath(folder)) != folder or why_kept(config, folder):
        return False
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        message = f"the files in {folder} cannot be removed: {error.strerror}"
        raise SetupError("catalog-unusable", message, "Make the folder writable and run the command again.") from error
    return True


def _resolved(config: CatalogConfig, location: str) -> PurePath:
    files = warehouse(config)
    return files.resolve(location) if isinstance(files, ObjectWarehouse) else resolve(files, location)


def _every_location(config: CatalogConfig) -> list[str]:
    catalog = client(config)
    if isinstance(catalog, PostgresCatalog):
        return catalog.every_location()
    return catalog_database.every_location(config)


def _texts(value: object) -> dict[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, dict) else {}


def _numbers(metadata: Mapping[str, Any]) -> tuple[int | None, int | None]:
    current, snapshots = metadata.get("current-snapshot-id"), metadata.get("snapshots")
    if current is None or current == -1:
        return 0, 0
    known_snapshots = [s for s in snapshots if isinstance(s, dict)] if isinstance(snapshots, list) else []
    summary = next((_texts(s.get("summary")) for s in known_snapshots if s.get("snapshot-id") == current), {})
    return row_count(summary), whole_number(summary.get("total-files-size", ""))
