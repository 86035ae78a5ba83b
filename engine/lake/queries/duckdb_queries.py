"""Queries by DuckDB in memory: it gets the columns that a query needs, and reaches no file and no network itself.

PyIceberg reads the rows of one snapshot, a batch at a time, so that deletes, renamed columns and the bounds of the
warehouse are what they are everywhere.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from engine.errors import RunError
from engine.lake.catalog.iceberg_types import spark_type
from engine.lake.catalog.metadata_document import rows_of
from engine.lake.queries.select_statement import TableName, query_error, read_statement

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from engine.lake.lake_reader import Lake


# The type, and not a field of this name.
_VARIANT = re.compile(r"\bvariant\b(?! *:)")


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table as it was when it was opened: later commits do not change what is read."""

    place: tuple[str, str]
    columns: tuple[tuple[str, str], ...]
    version: str
    _table: Table

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def only_spark_reads(self) -> bool:
        """Whether a column holds VARIANTs; of its files PyIceberg (0.12) does not read the other columns either."""
        return any(_VARIANT.search(type_) for _, type_ in self.columns)

    def schema(self) -> pa.Schema:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def rows(self, columns: Sequence[str], limit: int | None) -> pa.RecordBatchReader:
        """Read some columns of rows, with deletes applied; `limit` None: all rows."""
        return self._table.scan(selected_fields=tuple(columns), limit=limit).to_arrow_batch_reader()

    def count(self) -> int:
        return int(self._table.scan().count())

    @property
    def snapshot(self) -> int | None:
        current = self._table.current_snapshot()
        return current.snapshot_id if current else None

    def comments(self) -> list[tuple[str, str]]:
        return [(field.name, field.doc) for field in self._table.schema().fields if field.doc]


@contextmanager
def open_table(lake: Lake, schema: str, name: str) -> Iterator[OpenTable | None]:
    """Open a table; None: there is none. What goes wrong while it is read is an error of the catalog."""
    with lake.opened(schema, name) as table:
        if table is None:
            yield None
            return
        columns = tuple((field.name, spark_type(field.field_type)) for field in table.schema().fields)
        yield OpenTable((schema, name), columns, table.metadata_location, table)


class FailureRecorder:
    """Hands batches on, and keeps what reading them raised: a library in between makes a text of it."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.error: Exception | None = None
        self._last: pa.RecordBatch | None = None

    def batches(self) -> Iterator[Any]:
        try:
            for batch in self._reader:
                self._last = batch
                yield batch
        except Exception as error:
            self.error = error
            raise

    def invalid_text(self) -> str | None:
        """Return the first column of the last batch with text that is not UTF-8; Arrow checks it on request only."""
        import pyarrow as pa

        for name, column in zip(self._last.schema.names, self._last.columns, strict=True) if self._last else ():
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                return str(name)
        return None


_Places = dict[TableName, tuple[str, str] | RunError]
Resolve = Callable[[TableName], tuple[str, str] | RunError]
# Names of databases that DuckDB has itself.
_RESERVED_CATALOGS = {"memory", "system", "temp"}
# The optimizer that finds out which columns are read; on empty tables the others would remove more.
_ONLY_COLUMNS = "unused_columns"
# The name of rows while they are read.
_INCOMING = "headrace_incoming"


@dataclass(frozen=True, slots=True)
class QueryRows:
    names: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]


@dataclass(slots=True)
class _Loaded:
    place: str
    version: str
    columns: frozenset[str]
    limit: int | None


class DuckDBQueries:
    def __init__(self, lake: Lake, catalog: str, resolve: Resolve) -> None:
        """Open it; `resolve` gives a table's schema and name, or why there is none: it may be the name of a CTE."""
        self._lake, self._catalog, self._resolve = lake, catalog, resolve
        self._stack = ExitStack()
        # What does not fit into memory; the folder is this user's alone.
        self._spill = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-sql-"))
        self._database = self._stack.enter_context(self._new_database())
        self._loaded: dict[tuple[str, str], _Loaded] = {}
        self._places = count()

    def close(self) -> None:
        self._stack.close()

    @contextmanager
    def _new_database(self, *, bare: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "temp_directory": self._spill,
        }
        with duckdb.connect(":memory:", config=settings) as database:
            if self._catalog.lower() not in _RESERVED_CATALOGS:
                database.execute(f"attach ':memory:' as {quoted(self._catalog)}")
                database.execute(f"use {quoted(self._catalog)}")
            if bare:
                names = [row[0] for row in database.execute("select name from duckdb_optimizers()").fetchall()]
                disabled = ",".join(name for name in names if name != _ONLY_COLUMNS)
                database.execute(f"set disabled_optimizers = '{disabled}'")
            database.execute("set TimeZone = 'UTC'")
            database.execute("set enable_external_access = false")
            database.execute("set lock_configuration = true")
            yield database

    def run(self, sql: str, limit: int | None) -> QueryRows:
        """Run one query.

        Raises:
            RunError: `sql-query`: it is not a query, or it fails.
            SetupError: a table cannot be read.
            KeyboardInterrupt: it was interrupted, and has ended.
        """
        # While DuckDB works, Python's main thread hears no signal: it waits instead.
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self._run, sql, limit)
            try:
                return work.result()
            except KeyboardInterrupt:
                while not work.done():
                    self._database.interrupt()
                    wait([work], timeout=0.1)
                raise

    def _run(self, sql: str, limit: int | None) -> QueryRows:
        statement = read_statement(self._database, sql)
        places = {name: self._resolve(name) for name in statement.tables}
        with ExitStack() as stack:
            tables = self._open(places, stack)
            try:
                columns_by_table = self._columns_needed(sql, tables)
                self._load(tables, columns_by_table, statement.first_rows)
                try:
                    return _rows(self._database, sql, limit)
                except duckdb.BinderException:
                    # Such as `* exclude (a)`, where nobody reads a.
                    self._load(tables, {name: table.names for name, table in tables.items()}, None)
                    return _rows(self._database, sql, limit)
            except duckdb.CatalogException as error:
                raise _missing_table_error(error, places) from error
            except duckdb.Error as error:
                raise query_error(str(error)) from error

    def _open(self, places: _Places, stack: ExitStack) -> dict[TableName, OpenTable]:
        tables = {}
        for name, place in places.items():
            table = stack.enter_context(open_table(self._lake, *place)) if isinstance(place, tuple) else None
            if table is None:
                continue
            if table.only_spark_reads:
                message = f"'{name.name}' has a VARIANT column, and only Spark reads its rows"
                raise RunError("sql-query", message, "Run the query in Spark: engine show --inline.")
            tables[name] = table
        return tables

    def _columns_needed(self, sql: str, tables: dict[TableName, OpenTable]) -> dict[TableName, list[str]]:
        with self._new_database(bare=True) as database:
            places = {f"t{number}": name for number, name in enumerate(tables)}
            for place, name in places.items():
                _create_table(database, f"main.{place}", tables[name].schema().empty_table().to_reader())
                _show_as(database, name, place)
            plan_row = database.execute(f"explain (format json) {sql}").fetchone()
        columns_read: dict[TableName, set[str]] = {}
        for node in _plan_nodes(json.loads(plan_row[1]) if plan_row else []):
            facts = node.get("extra_info", {})
            table = places.get(str(facts.get("Table", "")).rpartition(".")[2])
            if table is not None:
                # Without a list all columns are read, and with an empty one none.
                columns = facts.get("Projections", tables[table].names)
                columns_read.setdefault(table, set()).update(
                    columns if isinstance(columns, list) else filter(None, [columns])
                )
        return {name: _column_names_read(table.names, columns_read.get(name)) for name, table in tables.items()}

    def _load(
        self, tables: dict[TableName, OpenTable], columns_by_table: dict[TableName, list[str]], first_rows: int | None
    ) -> None:
        columns_by_version: dict[str, set[str]] = {}
        for name, table in tables.items():
            columns_by_version.setdefault(table.version, set()).update(columns_by_table[name])
        for name, table in tables.items():
            place = table.place
            columns = [c for c in table.names if c in columns_by_version[table.version]] or table.names[:1]
            loaded = self._loaded.get(place)
            if loaded is None or not _has(loaded, table.version, columns, first_rows):
                if loaded is not None:
                    self._database.execute(f"drop table main.{loaded.place} cascade")
                    del self._loaded[place]
                loaded = _Loaded(f"t{next(self._places)}", table.version, frozenset(columns), first_rows)
                copy_rows(self._database, f"main.{loaded.place}", table, columns, first_rows)
                self._loaded[place] = loaded
            _show_as(self._database, name, loaded.place)


def _missing_table_error(error: duckdb.CatalogException, places: _Places) -> RunError:
    for name, place in places.items():
        if isinstance(place, RunError) and f"Table with name {name.name} does not exist" in str(error):
            return place
    return query_error(str(error))


def _column_names_read(names: list[str], columns_read: set[str] | None) -> list[str]:
    """The columns that are read; all of them where the plan does not show the table, or other than names of columns."""
    return (
        [name for name in names if name in columns_read]
        if columns_read is not None and columns_read.issubset(names)
        else names
    )


def _has(loaded: _Loaded, version: str, columns: Sequence[str], first_rows: int | None) -> bool:
    enough = loaded.limit is None or (first_rows is not None and first_rows <= loaded.limit)
    return loaded.version == version and loaded.columns.issuperset(columns) and enough


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def copy_rows(
    database: duckdb.DuckDBPyConnection, into: str, table: OpenTable, columns: Sequence[str], limit: int | None
) -> None:
    """Make a table of DuckDB with rows of a table.

    Raises:
        Exception: what reading raises.
        RunError: `text-not-utf8`.
        duckdb.Error: what writing raises.
    """
    reader = table.rows(columns, limit)
    failures = FailureRecorder(reader)
    try:
        _create_table(database, into, pa.RecordBatchReader.from_batches(reader.schema, failures.batches()))
    except duckdb.Error as error:
        if failures.error is not None:
            raise failures.error from error
        if (column := failures.invalid_text()) is not None:
            raise _not_utf8(table, column) from error
        raise


def _not_utf8(table: OpenTable, column: str) -> RunError:
    message = f"column '{column}' of table '{table.place[1]}' holds text that is not UTF-8, which DuckDB rejects"
    hint = f"Write make_valid_utf8({column}) as {column} in the model, or query with Spark: engine show --inline."
    return RunError("text-not-utf8", message, hint, node=table.place[1])


def _create_table(database: duckdb.DuckDBPyConnection, into: str, reader: pa.RecordBatchReader) -> None:
    database.register(_INCOMING, reader)
    try:
        database.execute(f"create table {into} as select * from {_INCOMING}")  # noqa: S608 - quoted
    finally:
        with suppress(duckdb.Error):
            database.unregister(_INCOMING)


def _show_as(database: duckdb.DuckDBPyConnection, name: TableName, place: str) -> None:
    schema = quoted(name.schema or "main")
    database.execute(f"create schema if not exists {schema}")
    database.execute(f"create or replace view {schema}.{quoted(name.name)} as select * from main.{place}")  # noqa: S608 - quoted


def _plan_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    for node in tree:
        yield node
        yield from _plan_nodes(node.get("children", []))


def _rows(database: duckdb.DuckDBPyConnection, sql: str, limit: int | None) -> QueryRows:
    result = database.execute(sql)
    types = [str(column[1]) for column in result.description or []]
    reader = result.fetch_record_batch(10_000)
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if limit is not None and rows >= limit:
            break
    table = pa.Table.from_batches(batches, reader.schema).slice(0, limit)
    return QueryRows(list(table.column_names), types, rows_of(table))
