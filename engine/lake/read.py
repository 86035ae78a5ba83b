"""Reading tables without a JVM, through PyIceberg (imported late: it takes a third of a second)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError
from engine.lake.catalogs import CatalogConfig, database, pyiceberg_properties
from engine.lake.moved import moved
from engine.lake.types import spark_type

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
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
class Column:
    """A column of a table: its name, its type as Spark DDL, and its comment."""

    name: str
    type: str
    doc: str = ""


class Lake:
    """An open catalog; without a database file yet it is empty."""

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._catalog: Catalog | None = None

    def _open(self) -> Catalog | None:
        if self._catalog is None and database(self._config).exists():
            from pyiceberg.catalog import load_catalog
            from sqlalchemy.exc import SQLAlchemyError

            try:
                self._catalog = load_catalog(self._config.name, **pyiceberg_properties(self._config))
            except (SQLAlchemyError, OSError) as error:
                raise self._unreadable(error) from error
        return self._catalog

    def _table(self, schema: str, name: str) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        catalog = self._open()
        if catalog is None:
            return None
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return catalog.load_table((schema, name))
        except NoSuchTableError:
            return None
        except FileNotFoundError as error:
            raise moved(self._config) or self._unreadable(error) from error
        except (SQLAlchemyError, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> SetupError:
        message = f"the catalog {self._config.name} cannot be read: {error}"
        return SetupError("catalog", message, "Check the 'catalog' of the target with engine debug.")

    def table(self, schema: str, name: str, branch: str | None = None, back_to: int | None = None) -> TableFacts | None:
        """The facts of a table, or None if there is none; its history is that of a branch if it has that.

        Args:
            schema: of the table.
            name: of the table.
            branch: whose history is wanted; None: main's.
            back_to: a snapshot that should be in the history; if it is not, what has expired since is taken from the
                metadata files before, as far as the table still names them.

        Raises:
            SetupError: `catalog`; `lake-moved` if its folder was renamed.
        """
        table = self._table(schema, name)
        if table is None:
            return None
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

    def columns(self, schema: str, name: str) -> tuple[Column, ...] | None:
        """The columns of a table with their types as Spark has them, or None if there is no such table."""
        table = self._table(schema, name)
        if table is None:
            return None
        return tuple(Column(f.name, spark_type(f.field_type), f.doc or "") for f in table.schema().fields)

    def names_at(self, schema: str, name: str, snapshot: int) -> dict[str, str | None]:
        """The names that today's columns of a table had at a snapshot; None: they came later."""
        table = self._table(schema, name)
        found = table.snapshot_by_id(snapshot) if table else None
        if table is None or found is None:
            return {}
        then = table.schemas().get(found.schema_id, table.schema()) if found.schema_id is not None else table.schema()
        old = {f.field_id: f.name for f in then.fields}
        return {f.name: old.get(f.field_id) for f in table.schema().fields}

    def names(self, schema: str) -> tuple[str, ...]:
        """The tables of a schema.

        Raises:
            SetupError: `catalog`.
        """
        catalog = self._open()
        if catalog is None:
            return ()
        from pyiceberg.exceptions import NoSuchNamespaceError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            return tuple(name for *_, name in catalog.list_tables(schema))
        except NoSuchNamespaceError:
            return ()
        except (SQLAlchemyError, OSError) as error:
            raise self._unreadable(error) from error

    def rows(self, schema: str, name: str, limit: int | None) -> tuple[list[str], list[tuple[Any, ...]]] | None:
        """Column names and rows of a table, or None if there is none."""
        table = self._table(schema, name)
        if table is None:
            return None
        data = table.scan(limit=limit).to_arrow()
        return list(data.column_names), list(zip(*(c.to_pylist() for c in data.columns), strict=True))

    def count(self, schema: str, name: str) -> int | None:
        """The number of rows, deletes taken into account."""
        table = self._table(schema, name)
        return None if table is None else int(table.scan().count())


def _history(table: Table, head: int | None, back_to: int | None) -> Iterator[SnapshotFacts]:
    by_id = {s.snapshot_id: s for s in table.metadata.snapshots}
    older = _older_snapshots(table)
    wanted, reached = head, back_to is None
    while wanted is not None:
        while wanted not in by_id and not reached:
            more = next(older, None)
            if more is None:
                break
            by_id = more | by_id
        snapshot = by_id.get(wanted)
        if snapshot is None:
            return
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
    from pyiceberg.serializers import FromInputFile

    for entry in reversed(table.metadata.metadata_log):
        try:
            before = FromInputFile.table_metadata(table.io.new_input(entry.metadata_file))
        except (OSError, ValueError):
            continue
        yield {s.snapshot_id: s for s in before.snapshots}
