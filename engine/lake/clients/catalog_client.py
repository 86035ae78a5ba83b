"""Catalogs without Java: which tables and views there are, their metadata, and taking them out.

    sqlite   a file of this machine            catalog_database
    jdbc     tables of a PostgreSQL database   postgres_catalog
    rest     a server of Iceberg's protocol    rest_catalog

All of them answer the same questions. A client of a server is kept for the life of the process, with its connection and
its token.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Protocol

from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig, is_local, warehouse
from engine.lake.catalog.metadata_document import read_document


class CatalogClient(Protocol):
    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema; none where there is no such schema."""

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]: ...

    def table(self, schema: str, name: str) -> CatalogEntry | None: ...

    def view(self, schema: str, name: str) -> CatalogEntry | None: ...

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        """The metadata of a table or view; raises as `read_document` does, too."""

    def remove(self, entry: CatalogEntry) -> bool: ...

    def rename(self, entry: CatalogEntry, schema: str, name: str) -> bool: ...

    @property
    def renames(self) -> bool: ...

    @property
    def purges(self) -> bool:
        """Whether `remove` lets the server remove the files."""

    @property
    def at_a_time(self) -> int: ...


class SqliteCatalog:
    purges = False
    renames = True
    at_a_time = 1

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config

    def names(self, schema: str) -> tuple[str, ...]:
        return catalog_database.names(self._config, schema)

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]:
        return catalog_database.entries(self._config, schema)

    def table(self, schema: str, name: str) -> CatalogEntry | None:
        location = catalog_database.location(self._config, schema, name)
        return None if location is None else CatalogEntry(schema, name, location)

    def view(self, schema: str, name: str) -> CatalogEntry | None:
        return next((entry for entry in self.entries(schema) if entry.view and entry.name == name), None)

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        return read_document(warehouse(self._config), entry.location)

    def remove(self, entry: CatalogEntry) -> bool:
        return catalog_database.remove(self._config, entry)

    def rename(self, entry: CatalogEntry, schema: str, name: str) -> bool:
        return catalog_database.rename(self._config, entry, schema, name)


_lock = threading.Lock()
_clients: dict[tuple[Any, ...], CatalogClient] = {}


def client(config: CatalogConfig) -> CatalogClient:
    """The client of a catalog. Raises SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`."""
    if is_local(config):
        return SqliteCatalog(config)
    key = (config.type, config.name, config.path, tuple(sorted(config.settings().items())))
    with _lock:
        if key not in _clients:
            _clients[key] = _new_client(config)
        return _clients[key]


def check_before_java(config: CatalogConfig) -> None:
    """Check what a server would choose for Spark's catalog, which takes its word before the target's.

    Raises SetupError: `catalog-unusable`: it would choose a class, an address or a login; as the questions raise.
    """
    if config.type == "rest":
        from engine.lake.clients.rest_catalog import RestClient

        catalog = client(config)
        if isinstance(catalog, RestClient):
            catalog.before_java()


def _new_client(config: CatalogConfig) -> CatalogClient:
    if config.type == "jdbc":
        from engine.lake.clients.postgres_catalog import PostgresCatalog

        return PostgresCatalog(config)
    from engine.lake.clients.rest_catalog import RestClient

    return RestClient(config)
