"""Reading tables without a JVM: facts from their metadata as plain JSON, columns and rows through PyIceberg.

PyIceberg is imported where it is needed: that takes a third of a second. The catalog, the metadata and the files may
come with a project that somebody else wrote: nothing in them chooses what runs, and nothing outside the warehouse is
read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, SetupError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.iceberg_types import spark_type
from engine.lake.catalog.isolation import isolate
from engine.lake.catalog.locations import OutsideError
from engine.lake.catalog.metadata_document import read_document
from engine.lake.catalog.moved_lake import moved
from engine.lake.table_facts import TableFacts, TableMetadata, ViewFacts, documented, texts

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its name, its type as Spark DDL, and its comment."""

    name: str
    type: str
    doc: str = ""


class Lake:
    """A catalog and its tables; without a database file yet it is empty."""

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config

    @property
    def _warehouse(self) -> Path:
        return self._config.path / "warehouse"

    @contextmanager
    def _location(self, schema: str, name: str) -> Iterator[str | None]:
        """The metadata file of a table, or None."""
        location = catalog_database.location(self._config, schema, name)
        if location is None:
            yield None
            return
        with self._errors(schema, name):
            yield location

    @contextmanager
    def _errors(self, schema: str, name: str) -> Iterator[None]:
        """What goes wrong while a table is read is an error of the catalog."""
        try:
            yield
        except EngineError:
            raise
        except OutsideError as error:
            raise moved(self._config) or self._outside(f"{schema}.{name}", error) from error
        except FileNotFoundError as error:
            raise moved(self._config) or catalog_database.unreadable(self._config, str(error)) from error
        # Readers of JSON, Avro and Parquet raise anything over bytes that are not what they should be.
        except Exception as error:
            raise catalog_database.unreadable(self._config, f"the table {schema}.{name}: {_reason(error)}") from error

    @contextmanager
    def _table(self, schema: str, name: str) -> Iterator[Table | None]:
        """A table of PyIceberg's, or None."""
        with self._location(schema, name) as location:
            if location is None:
                yield None
                return
            isolate()
            from engine.lake.catalog.warehouse_paths import open_table

            yield open_table(self._warehouse, (schema, name), location)

    def _outside(self, table: str, location: Exception) -> SetupError:
        warehouse = self._config.path / "warehouse"
        message = f"the table {table} names a file outside the warehouse {warehouse}: {str(location)[:200]!r}"
        return SetupError("lake-outside", message, "Copy the table into the warehouse, or remove it from the catalog.")

    def table(self, schema: str, name: str, branch: str | None = None, back_to: int | None = None) -> TableFacts | None:
        """The facts of a table, or None if there is none; its history is that of a branch if it has that.

        Args:
            schema: of the table.
            name: of the table.
            branch: whose history is wanted; None: main's.
            back_to: a snapshot that should be in the history; if it is not, what has expired since is taken from the
                metadata files before, as far as the table still names them.

        Raises:
            SetupError: `catalog-unusable`; `lake-outside`; `lake-moved` if its folder was renamed.
        """
        with self._location(schema, name) as location:
            return None if location is None else TableMetadata.read(self._warehouse, location).facts(branch, back_to)

    def view(self, schema: str, name: str) -> ViewFacts | None:
        """The facts of a view, or None if there is none.

        Raises:
            SetupError: `catalog-unusable`; `lake-outside`; `lake-moved`.
        """
        entries = catalog_database.entries(self._config, schema)
        location = next((entry.location for entry in entries if entry.view and entry.name == name), None)
        if location is None:
            return None
        with self._errors(schema, name):
            found = read_document(self._warehouse, location)
            version = next(v for v in found["versions"] if v["version-id"] == found["current-version-id"])
            schemas = {schema["schema-id"]: schema for schema in found["schemas"]}
            shown = f"{found['view-uuid']} {version['version-id']}"
            return ViewFacts(texts(found.get("properties")), tuple(documented(schemas[version["schema-id"]])), shown)

    def columns(self, schema: str, name: str) -> tuple[TableColumn, ...] | None:
        """The columns of a table with their types as Spark has them, or None if there is no such table."""
        with self._table(schema, name) as table:
            if table is None:
                return None
            return tuple(TableColumn(f.name, spark_type(f.field_type), f.doc or "") for f in table.schema().fields)

    def names_at(self, schema: str, name: str, snapshot: int) -> dict[str, str | None]:
        """The names that today's columns of a table had at a snapshot; None: they came later."""
        with self._table(schema, name) as table:
            found = table.snapshot_by_id(snapshot) if table else None
            if table is None or found is None:
                return {}
            now = table.schema()
            then = table.schemas().get(found.schema_id, now) if found.schema_id is not None else now
            old = {f.field_id: f.name for f in then.fields}
            return {f.name: old.get(f.field_id) for f in now.fields}

    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema.

        Raises:
            SetupError: `lake-outside`, `catalog-unusable`.
        """
        return catalog_database.names(self._config, schema)

    def rows(self, schema: str, name: str, limit: int | None) -> tuple[list[str], list[tuple[Any, ...]]] | None:
        """Column names and rows of a table, or None if there is none.

        Dates and times that Python does not have are texts. Rows of a table with a VARIANT column cannot be read.
        """
        with self._table(schema, name) as table:
            if table is None:
                return None
            from engine.lake.catalog.metadata_values import rows_of

            data = table.scan(limit=limit).to_arrow()
            return list(data.column_names), rows_of(data)

    def count(self, schema: str, name: str) -> int | None:
        """The number of rows, deletes taken into account."""
        with self._table(schema, name) as table:
            return None if table is None else int(table.scan().count())


def _reason(error: Exception) -> str:
    """What a reader says, without the content that some of them show."""
    text = "" if isinstance(error, (ValueError, LookupError, TypeError)) else str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
