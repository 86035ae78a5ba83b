"""Reading tables without a JVM, through PyIceberg (imported late: it takes a third of a second).

The catalog, the metadata and the files may come with a project that somebody else wrote: nothing in them chooses what
runs, and nothing outside the warehouse is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, SetupError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_settings import CatalogConfig
from engine.lake.catalog.isolation import isolate
from engine.lake.catalog.moved_lake import moved
from engine.lake.iceberg_types import spark_type

_LAST_MS = 253_402_300_799_999  # the end of the year 9999: no date can be later

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot: id, its parent's, operation (append, overwrite, replace, delete), summary, commit time (ms)."""

    id: int
    parent: int | None
    operation: str
    summary: Mapping[str, str]
    at: int = 0

    def marker(self, key: str) -> str | None:
        """The value of `engine.<key>` in the summary."""
        return self.summary.get(f"engine.{key}")


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as it stands: `history` is the current snapshot and its ancestors, newest first.

    `snapshots` are the ids of all that the table knows, those of branches and of what was rolled back too; `main` is
    the snapshot that readers see, whatever branch was asked for, and `branches` are the names of the others.
    """

    uuid: str
    properties: Mapping[str, str]
    history: tuple[SnapshotFacts, ...]
    columns: tuple[tuple[str, str], ...]
    snapshots: frozenset[int] = frozenset()
    main: int | None = None
    branches: frozenset[str] = frozenset()

    @property
    def snapshot(self) -> int | None:
        """Id of the current snapshot."""
        return self.history[0].id if self.history else None

    def holds(self, snapshot: int) -> bool:
        """Whether a snapshot is in the history; the oldest that is known names its parent, expired or not."""
        return any(snapshot in {known.id, known.parent} for known in self.history)

    @property
    def position(self) -> dict[str, Any]:
        """What a full read of the table depends on, as plain JSON; a column may be added without a snapshot."""
        columns = hashlib.sha256(repr(self.columns).encode()).hexdigest()[:16]
        return {"table": self.uuid, "snapshot": self.snapshot, "columns": columns}

    @property
    def complete(self) -> bool:
        """Whether the history goes back to the table's first snapshot."""
        return not self.history or self.history[-1].parent is None


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

    @contextmanager
    def _table(self, schema: str, name: str) -> Iterator[Table | None]:
        """A table, or None; what goes wrong while it is read is an error of the catalog."""
        location = catalog_database.location(self._config, schema, name)
        if location is None:
            yield None
            return
        isolate()
        from engine.lake.catalog.warehouse_paths import OutsideError, open_table

        try:
            yield open_table(self._config.path / "warehouse", (schema, name), location)
        except EngineError:
            raise
        except OutsideError as error:
            raise moved(self._config) or self._outside(f"{schema}.{name}", error) from error
        except FileNotFoundError as error:
            raise moved(self._config) or catalog_database.unreadable(self._config, str(error)) from error
        # Readers of JSON, Avro and Parquet raise anything over bytes that are not what they should be.
        except Exception as error:
            raise catalog_database.unreadable(self._config, f"the table {schema}.{name}: {_reason(error)}") from error

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
            SetupError: `catalog`; `lake-outside`; `lake-moved` if its folder was renamed.
        """
        with self._table(schema, name) as table:
            return None if table is None else _facts(table, branch, back_to)

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
            SetupError: `lake-outside`, `catalog`.
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
    from pyiceberg.exceptions import ValidationError

    text = "" if isinstance(error, ValidationError) else str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _facts(table: Table, branch: str | None, back_to: int | None) -> TableFacts:
    refs = {key: ref for key, ref in table.refs().items() if ref.snapshot_ref_type == "branch"}
    main = table.metadata.current_snapshot_id
    head = refs[branch].snapshot_id if branch in refs else main
    return TableFacts(
        uuid=str(table.metadata.table_uuid),
        properties=dict(table.metadata.properties),
        history=tuple(_history(table, head, back_to)),
        columns=tuple((f.name, str(f.field_type)) for f in table.schema().fields),
        snapshots=frozenset(s.snapshot_id for s in table.metadata.snapshots),
        main=main,
        branches=frozenset(refs) - {"main"},
    )


def _history(table: Table, head: int | None, back_to: int | None) -> Iterator[SnapshotFacts]:
    by_id = {s.snapshot_id: s for s in table.metadata.snapshots}
    older = _older_snapshots(table)
    wanted, reached = head, back_to is None
    seen: set[int] = set()
    while wanted is not None:
        if wanted in seen:
            message = f"the snapshot {wanted} is its own ancestor"
            raise ValueError(message)
        seen.add(wanted)
        while wanted not in by_id and not reached:
            more = next(older, None)
            if more is None:
                break
            by_id = more | by_id
        snapshot = by_id.get(wanted)
        if snapshot is None:
            return
        if not 0 <= snapshot.timestamp_ms <= _LAST_MS:
            message = f"the snapshot {wanted} has no possible time"
            raise ValueError(message)
        reached = reached or wanted == back_to
        summary = snapshot.summary
        properties = dict(summary.additional_properties) if summary else {}
        operation = summary.operation.value if summary else ""
        wanted = snapshot.parent_snapshot_id
        yield SnapshotFacts(snapshot.snapshot_id, wanted, operation, properties, snapshot.timestamp_ms)


def _older_snapshots(table: Table) -> Iterator[dict[int, Snapshot]]:
    """The snapshots of the metadata files before, the newest first: they know what expired since.

    Files that are gone are skipped; Iceberg keeps `write.metadata.previous-versions-max` of them.
    """
    from pyiceberg.exceptions import ValidationError

    from engine.lake.catalog.warehouse_paths import WarehouseIO, read_metadata

    files = table.io
    assert isinstance(files, WarehouseIO)  # noqa: S101 - a table of this module
    for entry in reversed(table.metadata.metadata_log):
        try:
            before = read_metadata(files, entry.metadata_file)
        except (OSError, ValueError, ValidationError):
            continue
        yield {s.snapshot_id: s for s in before.snapshots}
