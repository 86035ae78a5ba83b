"""PostgreSQL as a target: rows by COPY, and the position in a table of the same schema, in one transaction.

A second writer waits for the row of the position and finds that it was moved; `lock_timeout` ends the wait for one that
was suspended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, LiteralString

from engine import kill_points
from engine.addresses import AddressError
from engine.errors import EngineError, ProjectError, RunError, SetupError, StateError
from engine.lake.clients.postgres_catalog import postgres_parameters
from engine.package_source import install_hint
from engine.sinks.column_values import csv
from engine.sinks.position import Position
from engine.sinks.postgres_types import holds, postgres_type
from engine.sinks.target import ChangeKind, SinkSpec, Transaction, Written

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from psycopg import sql

POSITIONS: Final = "headrace_sinks"
_CONNECT_SECONDS: Final = "10"
_LOCK_SECONDS: Final = 30
_IDLE_SECONDS: Final = 120
_DEFAULT_SCHEMA: Final = "public"
# Of the temporary table, beside the delivered columns; no column of a table that was not quoted has a #.
_ORDER, _REMOVED, _COMMIT = "#order", "#removed", "#commit"
_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEYS: Final = """
SELECT array_agg(a.attname) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
AND i.indexprs IS NULL AND i.indnkeyatts = i.indnatts GROUP BY i.indexrelid
"""


class PostgresTarget:
    """A table of a database, over one connection."""

    def __init__(self, spec: SinkSpec, name: str, settings: Mapping[str, Any], table: str) -> None:
        self._spec, self._name = spec, name
        schema, _, own = table.rpartition(".")
        self._schema, self._own = schema or _DEFAULT_SCHEMA, own
        # By column of the sink: the column of the table.
        self._table_columns: dict[str, str] = {}
        self._connection = _connected(name, settings)

    def check(self) -> None:
        """Make the table if the sink creates it, and compare its columns and its keys with the sink's.

        Raises SetupError: `sink-table`; `sink-failed`.
        """
        with self._errors():
            if not self._existing() and self._spec.create:
                self._create()
            existing = self._existing()
        if not existing:
            message = f"the table {self._full_name} of the connection '{self._name}' does not exist"
            raise self._unfit(message, f"Create it: {self._statement()}; Or write 'create: true' in the sink.")
        self._table_columns = {name: _table_column(name, existing) for name in self._spec.names}
        for column in self._spec.columns:
            self._check_column(column.name, column.type, existing)
        if self._spec.key:
            self._check_key()

    def position(self) -> Position | None:
        with self._errors():
            if not self._rows("SELECT to_regclass(%s) IS NOT NULL", (self._quoted(POSITIONS),))[0][0]:
                return None
            position_rows = self._rows(
                self._of_positions("SELECT position FROM {} WHERE sink = %s"), (self._spec.identity,)
            )
        return Position.from_json(self._spec.name, position_rows[0][0]) if position_rows else None

    def begin(self, position: Position) -> None:
        with self._errors(), self._connection.transaction():
            if self._add(position) == 0:
                raise self._fenced()

    def reset(self, position: Position) -> None:
        with self._errors(), self._connection.transaction():
            self._connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            if self._add(position) == 0:
                self._write(position)

    def _add(self, position: Position) -> int:
        self._make_positions()
        text = self._of_positions("INSERT INTO {} (sink, position) VALUES (%s, %s::jsonb) ON CONFLICT DO NOTHING")
        return self._connection.execute(text, (self._spec.identity, position.to_json())).rowcount

    def deliver(self, transaction: Transaction) -> Written:
        """Write changes and position.

        Raises:
            StateError: `sink-fenced`: another process delivers.
            RunError: `sink-key`: two rows of a commit have the same key, or a row has none; `sink-failed`.
        """
        with self._errors(), self._connection.transaction():
            self._lock(transaction.before)
            written = self._upsert(transaction) if self._spec.key else self._insert(transaction)
            kill_points.reach("sink written", self._spec.name)
            self._write(transaction.after)
            kill_points.reach("sink committing", self._spec.name)
        return written

    def close(self) -> None:
        self._connection.close()

    def _insert(self, transaction: Transaction) -> Written:
        rows = 0
        with self._connection.cursor() as cursor, cursor.copy(self._copy_into(self._table)) as copy:
            for change in transaction.changes:
                copy.write(csv(change.rows))
                rows += change.rows.num_rows
        return Written(rows)

    def _upsert(self, transaction: Transaction) -> Written:
        from psycopg import sql

        run = self._connection.execute
        key, columns = self._listed(self._spec.key), self._listed(self._spec.names)
        extra = (_ORDER, _REMOVED, _COMMIT)
        run(
            sql.SQL(
                'CREATE TEMPORARY TABLE headrace_changes ON COMMIT DROP AS SELECT 0::bigint AS "#order", '
                'false AS "#removed", 0 AS "#commit", {} FROM {} WITH NO DATA'
            ).format(columns, self._table)
        )
        self._copy(transaction, extra)
        self._check_rows(key)
        run(
            sql.SQL(
                "CREATE TEMPORARY TABLE headrace_latest ON COMMIT DROP AS SELECT DISTINCT ON ({0}) * "
                'FROM headrace_changes ORDER BY {0}, "#order" DESC'
            ).format(key)
        )
        run("ANALYZE headrace_latest")
        same = sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(self._column(name)) for name in self._spec.key)
        deleted = run(
            sql.SQL('DELETE FROM {} t USING headrace_latest s WHERE s."#removed" AND {}').format(self._table, same)
        ).rowcount
        other_columns = [self._column(name) for name in self._spec.names if name not in self._spec.key]
        updates = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(column) for column in other_columns)
        action = sql.SQL("UPDATE SET {}").format(updates) if other_columns else sql.SQL("NOTHING")
        upserted = run(
            sql.SQL(
                'INSERT INTO {} ({}) SELECT {} FROM headrace_latest WHERE NOT "#removed" ON CONFLICT ({}) DO {}'
            ).format(self._table, columns, columns, key, action)
        ).rowcount
        return Written(upserted, deleted)

    def _copy(self, transaction: Transaction, extra: Sequence[str]) -> None:
        """Copy all changes into the temporary table, with their order; of removed rows there are only the keys."""
        from psycopg import sql

        number = 0
        names = self._spec.names
        copy_all = sql.SQL("COPY headrace_changes ({}) FROM STDIN (FORMAT csv, NULL '')").format(
            sql.SQL(", ").join([*map(sql.Identifier, extra), *(self._column(name) for name in names)])
        )
        with self._connection.cursor() as cursor, cursor.copy(copy_all) as copy:
            for change in transaction.changes:
                removed = change.kind is ChangeKind.REMOVE
                copy.write(csv(_numbered(change.rows, names, number, change.commit, removed=removed)))
                number += change.rows.num_rows

    def _check_rows(self, key: sql.Composed) -> None:
        from psycopg import sql

        absent = sql.SQL(" OR ").join(sql.SQL("{} IS NULL").format(self._column(name)) for name in self._spec.key)
        keyless_row = self._connection.execute(
            sql.SQL('SELECT 1 FROM headrace_changes WHERE NOT "#removed" AND ({}) LIMIT 1').format(absent)
        ).fetchone()
        key_names = ", ".join(self._spec.key)
        if keyless_row is not None:
            message = f"a row for the sink '{self._spec.name}' has NULL in its key ({key_names})"
            raise RunError("sink-key", message, "Filter such rows in the model, or write another 'key:' in the sink.")
        twice = self._connection.execute(
            sql.SQL(
                'SELECT {0} FROM headrace_changes WHERE NOT "#removed" AND "#commit" > 0 '
                'GROUP BY "#commit", {0} HAVING count(*) > 1 LIMIT 1'
            ).format(key)
        ).fetchone()
        if twice is not None:
            message = f"several rows of the table have the same key ({key_names}) of the sink '{self._spec.name}'"
            hint = "Add columns to 'key:' of the sink, or write 'unique_key:' in the model; test it with 'unique'."
            raise RunError("sink-key", message, hint)

    def _lock(self, before: Position) -> None:
        """Hold the row of the position until the transaction ends. Raises StateError: `sink-fenced`."""
        self._connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        self._connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
        text = self._of_positions("SELECT position FROM {} WHERE sink = %s FOR UPDATE")
        position_rows = self._rows(text, (self._spec.identity,))
        if not position_rows or Position.from_json(self._spec.name, position_rows[0][0]) != before:
            raise self._fenced()

    def _write(self, after: Position) -> None:
        text = "UPDATE {} SET position = %s::jsonb, updated_at = clock_timestamp() WHERE sink = %s"
        self._connection.execute(self._of_positions(text), (after.to_json(), self._spec.identity))

    def _fenced(self) -> StateError:
        message = f"another process delivers the sink '{self._spec.name}'"
        return StateError("sink-fenced", message, "End one of them. Nothing was delivered twice.")

    def _make_positions(self) -> None:
        self._connection.execute(
            self._of_positions(
                "CREATE TABLE IF NOT EXISTS {} (sink text PRIMARY KEY, position jsonb NOT NULL, "
                "updated_at timestamptz NOT NULL DEFAULT clock_timestamp())"
            )
        )

    def _existing(self) -> dict[str, str]:
        return {str(name): str(kind) for name, kind in self._rows(_COLUMNS, (self._quoted(self._own),))}

    def _check_column(self, name: str, spark_type: str, existing: Mapping[str, str]) -> None:
        column_type = postgres_type(spark_type)
        if column_type is None:
            hint = f"Cast it in the model, cast({name} as string), or write 'exclude: [{name}]' in the sink."
            raise self._unfit(f"PostgreSQL cannot hold the column '{name}', which is {spark_type}", hint)
        own = self._table_columns[name]
        if own not in existing:
            hint = (
                f'Add it: ALTER TABLE {self._full_name} ADD COLUMN "{name}" {column_type}; '
                f"Or write 'exclude: [{name}]'."
            )
            raise self._unfit(f"the table {self._full_name} has no column '{name}'", hint)
        if not holds(existing[own], spark_type):
            message = f"the column '{name}' is {spark_type}, and {existing[own]} in the table {self._full_name}"
            hint = (
                f'Change the table: ALTER TABLE {self._full_name} ALTER COLUMN "{own}" TYPE {column_type}; '
                "Or cast the column."
            )
            raise self._unfit(message, hint)

    def _check_key(self) -> None:
        key_columns = {self._table_columns[name] for name in self._spec.key}
        with self._errors():
            keys = [set(key_row[0]) for key_row in self._rows(_KEYS, (self._quoted(self._own),))]
        if key_columns not in keys:
            listed = ", ".join(f'"{self._table_columns[name]}"' for name in self._spec.key)
            message = f"the table {self._full_name} has no primary key or unique index on ({listed})"
            raise self._unfit(message, f"Add it: ALTER TABLE {self._full_name} ADD PRIMARY KEY ({listed});")

    def _create(self) -> None:
        with self._connection.transaction():
            # A statement of quoted names and of types from a fixed list.
            self._connection.execute(self._statement().encode())

    def _statement(self) -> str:
        def quoted(name: str) -> str:
            return '"' + name.replace('"', '""') + '"'

        parts = [f"{quoted(column.name)} {postgres_type(column.type) or 'text'}" for column in self._spec.columns]
        if self._spec.key:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, self._spec.key))})")
        return f"CREATE TABLE IF NOT EXISTS {quoted(self._schema)}.{quoted(self._own)} ({', '.join(parts)})"

    def _unfit(self, message: str, hint: str) -> SetupError:
        return SetupError("sink-table", message, hint)

    @property
    def _full_name(self) -> str:
        return f"{self._schema}.{self._own}"

    @property
    def _table(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(self._schema, self._own)

    def _column(self, name: str) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(self._table_columns[name])

    def _listed(self, names: Sequence[str]) -> sql.Composed:
        from psycopg import sql

        return sql.SQL(", ").join(self._column(name) for name in names)

    def _copy_into(self, table: sql.Identifier) -> sql.Composed:
        from psycopg import sql

        columns = self._listed(self._spec.names)
        return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, NULL '')").format(table, columns)

    def _quoted(self, table: str) -> str:
        return f'"{self._schema}"."{table}"'

    def _of_positions(self, text: LiteralString) -> sql.Composed:
        from psycopg import sql

        return sql.SQL(text).format(sql.Identifier(self._schema, POSITIONS))

    def _rows(self, query: LiteralString | sql.Composed, values: Sequence[str]) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the database says against a statement is an error of the sink."""
        import psycopg

        try:
            yield
        except EngineError:
            raise
        except psycopg.errors.LockNotAvailable as error:
            raise self._fenced() from error
        except psycopg.Error as error:
            message = f"PostgreSQL rejects the sink '{self._spec.name}': {_line(error)}"
            raise RunError("sink-failed", message, "Nothing of it was written; the next build tries again.") from error


def _table_column(name: str, existing: Mapping[str, str]) -> str:
    """The column of the table for a column of the sink; names that were written without quotes are in lower case."""
    return name if name in existing or name.lower() not in existing else name.lower()


def _numbered(rows: pa.RecordBatch, names: Sequence[str], begin: int, commit: int, *, removed: bool) -> pa.RecordBatch:
    """Rows with their order, whether they are removed, and all columns of the sink, in its order."""
    import pyarrow as pa

    size = rows.num_rows
    numbers = pa.array(range(begin, begin + size), pa.int64())
    extra = [numbers, pa.repeat(pa.scalar(removed), size), pa.repeat(pa.scalar(commit), size)]
    row_columns = rows.schema.names
    columns = [rows.column(row_columns.index(name)) if name in row_columns else pa.nulls(size) for name in names]
    return pa.RecordBatch.from_arrays([*extra, *columns], names=[_ORDER, _REMOVED, _COMMIT, *names])


def _connected(name: str, settings: Mapping[str, Any]) -> psycopg.Connection[tuple[Any, ...]]:
    """Open a connection of the target.

    Raises ProjectError: `connection-settings`; SetupError: `sink-unreachable`, or psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        message = "the Python package psycopg is not installed"
        raise SetupError("sink-unreachable", message, install_hint("postgres")) from error
    parameters: dict[str, Any] = database_parameters(name, settings)
    try:
        return psycopg.connect(
            **parameters, connect_timeout=_CONNECT_SECONDS, application_name="headrace", autocommit=True,
            client_encoding="UTF8", keepalives_idle=30,
        )  # fmt: skip
    except psycopg.Error as error:
        message = f"the database of the connection '{name}' does not respond: {_line(error)}"
        hint = "Start it, or correct 'uri', 'username' and 'password' of the connection in project.yml."
        raise SetupError("sink-unreachable", message, hint) from error


_LOGIN: Final = (("username", "user"), ("password", "password"))


def database_parameters(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of PostgreSQL's C library for a connection of the target.

    Raises ProjectError: `connection-settings`.
    """
    login = {f"jdbc.{to}": str(settings[key]) for key, to in _LOGIN if settings.get(key)}
    try:
        return postgres_parameters({"uri": str(settings.get("uri", "")), **login})
    except AddressError as error:
        hint = "Write uri: jdbc:postgresql://<host>:5432/<database>."
        raise ProjectError("connection-settings", f"'uri' of the connection '{name}' {error}", hint) from error


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
