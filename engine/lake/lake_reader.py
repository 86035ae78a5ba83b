"""Reading tables without a JVM: facts from their metadata as plain JSON, columns and rows through PyIceberg.

Catalog, metadata and files may be a stranger's: nothing in them chooses what runs, and nothing outside the warehouse is
read. PyIceberg, imported late (a third of a second), follows the target alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, SetupError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import NO_WAREHOUSE, CatalogConfig, is_local, warehouse
from engine.lake.catalog.iceberg_types import spark_type
from engine.lake.catalog.locations import OutsideError
from engine.lake.catalog.moved_lake import misplaced_error, moved_error
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.lake.clients.catalog_client import CatalogClient, client
from engine.lake.table_facts import TableFacts, TableMetadata, ViewFacts

if TYPE_CHECKING:
    from pyiceberg.table import Table


@cache
def isolate() -> None:
    """Let PyIceberg read neither `.pyiceberg.yaml` nor PYICEBERG_ variables; to be called before any import of it.

    It looks for the file in the current folder, a project's, and a catalog's properties name classes to import.
    """
    from pyiceberg.utils.config import Config

    Config._from_configuration_files = staticmethod(lambda: None)  # type: ignore[method-assign]  # noqa: SLF001
    Config._from_environment_variables = staticmethod(lambda config: config)  # type: ignore[method-assign]  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class TableColumn:
    name: str
    type: str
    doc: str = ""


class Lake:
    """A catalog and its tables; without a database file yet it is empty.

    Metadata that `load` has asked for are used up by the first question for that table.
    """

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._loaded: dict[tuple[str, str], CatalogEntry | None] = {}
        # Of a local catalog, what its file was before they were read.
        self._standing: object = None

    @property
    def _warehouse(self) -> Path | ObjectWarehouse:
        return warehouse(self._config)

    @property
    def _client(self) -> CatalogClient:
        return client(self._config)

    def load(self, tables: Iterable[tuple[str, str]]) -> None:
        """Ask for many tables: a server for a few at a time, a local catalog for all.

        Raises SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
        """
        names = list(dict.fromkeys(tables))
        if not names:
            return
        if is_local(self._config):
            self._load_local(names)
            return
        catalog = self._client
        with ThreadPoolExecutor(catalog.at_a_time) as pool:
            entries = pool.map(lambda table: catalog.table(*table), names)
            self._loaded |= dict(zip(names, entries, strict=True))

    def _load_local(self, names: Sequence[tuple[str, str]]) -> None:
        """Read a catalog's file once for many tables; what was read counts until the file is written."""
        self._standing = catalog_database.file_version(self._config)
        if self._standing is not None:
            schemas = {schema for schema, _ in names}
            entries = {(e.schema, e.name): e for schema in schemas for e in self._client.entries(schema) if not e.view}
            self._loaded |= {table: entries.get(table) for table in names}

    @contextmanager
    def _entry(self, schema: str, name: str) -> Iterator[CatalogEntry | None]:
        key = (schema, name)
        if (
            key in self._loaded
            and is_local(self._config)
            and catalog_database.file_version(self._config) != self._standing
        ):
            self._loaded.clear()
        entry = self._loaded.pop(key) if key in self._loaded else self._client.table(schema, name)
        if entry is None:
            yield None
            return
        with self.reading_errors(schema, name):
            yield entry

    @contextmanager
    def reading_errors(self, schema: str, name: str) -> Iterator[None]:
        """What goes wrong while a table is read is an error of the catalog.

        Raises SetupError: `catalog-unusable`, `lake-outside`, `lake-moved`.
        """
        try:
            yield
        except EngineError:
            raise
        except OutsideError as error:
            lake_fault = moved_error(self._config) or misplaced_error(self._config, [str(error)])
            raise lake_fault or self._outside(f"{schema}.{name}", error) from error
        except FileNotFoundError as error:
            raise moved_error(self._config) or catalog_database.unreadable(self._config, str(error)) from error
        # Readers of JSON, Avro and Parquet raise anything over bytes that are not what they should be.
        except Exception as error:
            raise catalog_database.unreadable(self._config, f"the table {schema}.{name}: {_reason(error)}") from error

    @contextmanager
    def opened(self, schema: str, name: str) -> Iterator[Table | None]:
        with self._entry(schema, name) as entry:
            if entry is None:
                yield None
                return
            isolate()
            from engine.lake.catalog.warehouse_paths import open_table

            content = self._metadata(entry).content
            yield open_table(self._warehouse, (schema, name), entry.location, content)

    def _metadata(self, entry: CatalogEntry) -> TableMetadata:
        content = self._client.document(entry)
        # The tables of a server may be anywhere; those of a local catalog, which others may have written, may not.
        return (TableMetadata.inside if is_local(self._config) else TableMetadata)(self._warehouse, content)

    def _outside(self, table: str, location: Exception) -> SetupError:
        files = self._warehouse
        where = f"outside the warehouse {files.location if isinstance(files, ObjectWarehouse) else files}"
        hint = "Copy the table into the warehouse, or remove it from the catalog."
        if not is_local(self._config):
            where = where if self._warehouse != NO_WAREHOUSE else "that is not in a local folder"
            hint = "Set 'path' of the target's catalog to a folder above it; without Spark only such files are read."
        message = f"the table {table} names a file {where}: {str(location)[:200]!r}"
        return SetupError("lake-outside", message, hint)

    def table(self, schema: str, name: str, branch: str | None = None, back_to: int | None = None) -> TableFacts | None:
        """Return a table's facts, or None; snapshots after `back_to` that expired come from older metadata files.

        Raises SetupError: `catalog-unusable`; `lake-outside`; `lake-moved` if its folder was renamed.
        """
        with self._entry(schema, name) as entry:
            return None if entry is None else self._metadata(entry).facts(branch, back_to)

    def view(self, schema: str, name: str) -> ViewFacts | None:
        """The facts of a view, or None if there is none.

        Raises SetupError: `catalog-unusable`; `lake-outside`; `lake-moved`.
        """
        entry = self._client.view(schema, name)
        if entry is None:
            return None
        with self.reading_errors(schema, name):
            return ViewFacts.from_metadata(self._client.document(entry))

    def columns(self, schema: str, name: str) -> tuple[TableColumn, ...] | None:
        with self.opened(schema, name) as table:
            if table is None:
                return None
            return tuple(TableColumn(f.name, spark_type(f.field_type), f.doc or "") for f in table.schema().fields)

    def names_at(self, schema: str, name: str, snapshot: int) -> dict[str, str | None]:
        with self.opened(schema, name) as table:
            snapshot_then = table.snapshot_by_id(snapshot) if table else None
            if table is None or snapshot_then is None:
                return {}
            present_schema = table.schema()
            then = (
                table.schemas().get(snapshot_then.schema_id, present_schema)
                if snapshot_then.schema_id is not None
                else present_schema
            )
            old = {f.field_id: f.name for f in then.fields}
            return {f.name: old.get(f.field_id) for f in present_schema.fields}

    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema. Raises SetupError: `lake-outside`, `catalog-unusable`."""
        return self._client.names(schema)

    def arrow(self, schema: str, name: str, limit: int | None, sort: Sequence[tuple[str, bool]] = ()) -> Any:
        """Return rows, or None without the table; `sort` has True for descending, puts NULL last and reads all rows."""
        with self.opened(schema, name) as table:
            if table is None:
                return None
            data = table.scan(limit=None if sort else limit).to_arrow()
            if sort:
                data = data.sort_by([(column, "descending" if down else "ascending") for column, down in sort])
            return data if limit is None else data.slice(0, limit)

    def rows(
        self, schema: str, name: str, limit: int | None, sort: Sequence[tuple[str, bool]] = ()
    ) -> tuple[list[str], list[tuple[Any, ...]]] | None:
        """Column names and rows of a table, or None if there is none.

        Dates and times that Python does not have are texts. Rows of a table with a VARIANT column cannot be read.
        """
        from engine.lake.catalog.metadata_document import rows_of

        data = self.arrow(schema, name, limit, sort)
        return None if data is None else (list(data.column_names), rows_of(data))

    def count(self, schema: str, name: str) -> int | None:
        with self.opened(schema, name) as table:
            return None if table is None else int(table.scan().count())


def _reason(error: Exception) -> str:
    text = "" if isinstance(error, (ValueError, LookupError, TypeError)) else str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
