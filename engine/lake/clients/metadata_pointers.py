"""Catalogs that keep a pointer to each table's metadata file (AWS Glue, Hive), without Java: neither has views.

A pointer is followed as everywhere: to a file or an object below the warehouse, read as plain JSON. What a table's
properties say about classes, stores and logins counts for nothing. PyIceberg's catalogs are not used: they open a table
with the class that its own properties name (`py-io-impl`), and purge the files that its manifests name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig, warehouse
from engine.lake.catalog.metadata_document import read_document

_KIND: Final = "table_type"
_POINTER: Final = "metadata_location"
_ICEBERG: Final = "iceberg"


class TableRegister(Protocol):
    """A server that knows tables by name, with parameters."""

    def parameters(self, schema: str, name: str) -> Mapping[str, Any] | None:
        """The parameters of a table; None: there is none."""

    def tables(self, schema: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The tables of a schema with their parameters; none where there is no such schema."""

    def schemas(self) -> Iterator[str]:
        """The schemas."""

    def drop(self, schema: str, name: str) -> bool:
        """Remove a table, without its files; False: there is none."""


class PointerCatalog:
    """A catalog of Glue or Hive.

    Raises:
        SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
    """

    purges = False
    renames = False
    at_a_time = 8

    def __init__(self, config: CatalogConfig, register: TableRegister) -> None:
        self._config, self._register = config, register

    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema; none where there is no such schema."""
        return tuple(name for name, parameters in self._register.tables(schema) if _location(parameters))

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]:
        """The tables of a schema."""
        tables = self._register.tables(schema)
        return tuple(CatalogEntry(schema, name, found) for name, known in tables if (found := _location(known)))

    def table(self, schema: str, name: str) -> CatalogEntry | None:
        """A table, or None."""
        parameters = self._register.parameters(schema, name)
        location = _location(parameters) if parameters is not None else ""
        return CatalogEntry(schema, name, location) if location else None

    def view(self, schema: str, name: str) -> CatalogEntry | None:  # noqa: ARG002 - there are none
        """None."""
        return None

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        """The metadata of a table, from its file."""
        return read_document(warehouse(self._config), entry.location)

    def every_location(self) -> list[str]:
        """Where the metadata of all tables are."""
        return [entry.location for schema in self._register.schemas() for entry in self.entries(schema)]

    def remove(self, entry: CatalogEntry) -> bool:
        """Take a table out of the catalog, if it is still what it was; its files stay."""
        found = self.table(entry.schema, entry.name)
        if found is None or found.location != entry.location:
            return False
        return self._register.drop(entry.schema, entry.name)

    def rename(self, entry: CatalogEntry, schema: str, name: str) -> bool:  # noqa: ARG002 - see `renames`
        """Never done: Glue knows no such operation, and Hive's may move the files."""
        return False


def _location(parameters: Mapping[str, Any]) -> str:
    """The metadata file of an Iceberg table; empty: it is another kind of table."""
    kind, location = parameters.get(_KIND), parameters.get(_POINTER)
    known = isinstance(kind, str) and kind.lower() == _ICEBERG and isinstance(location, str)
    return str(location) if known else ""
