"""A catalog that PyIceberg alone knows (AWS Glue, Hive), without Java. Neither has views there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.errors import EngineError
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.isolation import isolate
from engine.lake.catalog.pyiceberg_properties import pyiceberg_properties
from engine.lake.clients.catalog_errors import unreachable, unusable

_PACKAGE = "Run pip install 'pyiceberg[{}]'."


class PyIcebergCatalog:
    """A catalog through PyIceberg.

    Raises:
        SetupError: `catalog-unreachable`, `catalog-unusable`.
    """

    purges = True
    at_a_time = 8

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._known: Any = None

    @property
    def _catalog(self) -> Any:
        if self._known is None:
            isolate()
            from pyiceberg.catalog import load_catalog

            properties = pyiceberg_properties(self._config.type, self._config.settings())
            self._known = load_catalog(self._config.name, **properties)
        return self._known

    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema; none where there is no such schema."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._errors():
            try:
                return tuple(name[-1] for name in self._catalog.list_tables(schema))
            except NoSuchNamespaceError:
                return ()

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]:
        """The tables of a schema; their metadata are asked for later."""
        return tuple(CatalogEntry(schema, name, "") for name in self.names(schema))

    def table(self, schema: str, name: str) -> CatalogEntry | None:
        """A table with its metadata, or None."""
        from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchNamespaceError, NoSuchTableError

        with self._errors():
            try:
                found = self._catalog.load_table((*schema.split("."), name))
            except (NoSuchTableError, NoSuchIcebergTableError, NoSuchNamespaceError):
                return None
            content = json.loads(found.metadata.model_dump_json(by_alias=True, exclude_none=True))
            return CatalogEntry(schema, name, str(found.metadata_location), content=content)

    def view(self, schema: str, name: str) -> CatalogEntry | None:  # noqa: ARG002 - there are none
        """None."""
        return None

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        """The metadata of a table.

        Raises:
            FileNotFoundError: it is gone.
        """
        found = entry if entry.content is not None else self.table(entry.schema, entry.name)
        if found is None or found.content is None:
            raise FileNotFoundError(f"{entry.schema}.{entry.name}")
        return found.content

    def remove(self, entry: CatalogEntry) -> bool:
        """Drop a table with its files; the caller has just seen that it is the one that was meant."""
        from pyiceberg.exceptions import NoSuchTableError

        with self._errors():
            try:
                self._catalog.purge_table((*entry.schema.split("."), entry.name))
            except NoSuchTableError:
                return False
            return True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from pyiceberg.exceptions import NotInstalledError

        try:
            yield
        except EngineError:
            raise
        except (NotInstalledError, ImportError) as error:
            raise unusable(self._config, str(error), _PACKAGE.format(self._config.type)) from error
        except OSError as error:
            raise unreachable(self._config, str(error)) from error
        # Clients of AWS and Thrift raise errors of trees of their own.
        except Exception as error:
            raise unusable(self._config, f"{type(error).__name__}: {error}") from error
