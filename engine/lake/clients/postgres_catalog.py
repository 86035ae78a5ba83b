"""Iceberg's JDBC catalog in a PostgreSQL database, read with psycopg and without Java: fixed queries of one table.

Spark writes the same table through the JDBC driver (Iceberg's JdbcCatalog, schema version V1), whose address becomes
parameters of PostgreSQL's C library.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from engine.addresses import AddressError, postgres_address
from engine.errors import SetupError
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.lake.catalog.catalog_settings import CatalogConfig, warehouse
from engine.lake.catalog.metadata_document import read_document
from engine.lake.clients.catalog_errors import denied, insecure, unreachable, unusable
from engine.package_source import install_hint

if TYPE_CHECKING:
    import psycopg


# Of the JDBC driver's address: what the same setting of PostgreSQL's C library is called.
_SSL_KEYS: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def postgres_parameters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of PostgreSQL's C library that connect as a JDBC address does.

    Raises AddressError: the address is not one of PostgreSQL.
    """
    address = postgres_address(settings.get("uri", ""))
    options = address.options
    parameters = {"host": address.server.host, "port": str(address.server.port), "dbname": address.database}
    for key in ("user", "password"):
        if f"jdbc.{key}" in settings:
            parameters[key] = settings[f"jdbc.{key}"]
    # The driver checks certificate and host where nothing else is set; PostgreSQL's library would not.
    if options.get("ssl", "false").lower() in {"true", ""}:
        parameters["sslmode"] = "verify-full"
    parameters |= {
        key: value for key in _SSL_KEYS if (value := settings.get(f"jdbc.{key}", options.get(key))) is not None
    }
    if (schema := settings.get("jdbc.currentSchema", options.get("currentSchema"))) is not None:
        parameters["options"] = f"-c search_path={schema}"
    return parameters


_CONNECT_SECONDS = "10"
_STATEMENT_MS = 60_000
# Of one answer: the server may not be one, so that its own limits count for nothing.
SECONDS = 70.0
_MAX_ROWS = 1_000_000
_MAX_CHARACTERS = 1 << 27
_VIEW = "VIEW"
# A catalog of the first schema version has no column for what a row is.
_COLUMNS = "table_namespace, table_name, metadata_location, coalesce(to_jsonb(t)->>'iceberg_type', 'TABLE')"
_WIDTH = 4
_DENIED = ("authentication failed", "no pg_hba.conf entry", "no password supplied", "permission denied",
           "not permitted to log in")  # fmt: skip
_UNTRUSTED = ("certificate verify failed", "root certificate", "server certificate")


class PostgresCatalog:
    """The table `iceberg_tables` of a database; one connection, opened when it is needed, and reopened after it broke.

    Raises SetupError: `catalog-unreachable`, `catalog-denied`, `catalog-unusable`.
    """

    purges = False
    renames = True
    at_a_time = 1

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._open: psycopg.Connection[Any] | None = None
        atexit.register(self._close)

    def names(self, schema: str) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries(schema) if not entry.view)

    def entries(self, schema: str) -> tuple[CatalogEntry, ...]:
        return self._entries("AND table_namespace = %s", schema)

    def table(self, schema: str, name: str) -> CatalogEntry | None:
        return next((entry for entry in self._entries_named(schema, name) if not entry.view), None)

    def view(self, schema: str, name: str) -> CatalogEntry | None:
        return next((entry for entry in self._entries_named(schema, name) if entry.view), None)

    def document(self, entry: CatalogEntry) -> Mapping[str, Any]:
        return read_document(warehouse(self._config), entry.location)

    def every_location(self) -> list[str]:
        """Where the metadata of all tables and views are, of catalogs of other names in the same database too."""
        return [entry.location for entry in self._entries("OR true")]

    def remove(self, entry: CatalogEntry) -> bool:
        deleted_rows = self._rows(
            "DELETE FROM iceberg_tables t WHERE catalog_name = %s AND table_namespace = %s AND table_name = %s"
            " AND metadata_location = %s RETURNING table_name",
            (self._config.name, entry.schema, entry.name, entry.location),
        )
        return bool(deleted_rows)

    def rename(self, entry: CatalogEntry, schema: str, name: str) -> bool:
        moved = self._rows(
            "UPDATE iceberg_tables t SET table_namespace = %s, table_name = %s WHERE catalog_name = %s"
            " AND table_namespace = %s AND table_name = %s AND metadata_location = %s RETURNING table_name",
            (schema, name, self._config.name, entry.schema, entry.name, entry.location),
        )
        return bool(moved)

    def _entries_named(self, schema: str, name: str) -> tuple[CatalogEntry, ...]:
        return self._entries("AND table_namespace = %s AND table_name = %s", schema, name)

    def _entries(self, condition: str, *values: str) -> tuple[CatalogEntry, ...]:
        query = (
            f"SELECT {_COLUMNS} FROM iceberg_tables t"  # noqa: S608 - of constants
            f" WHERE metadata_location IS NOT NULL AND (catalog_name = %s {condition}) ORDER BY 1, 2"
        )
        rows = self._rows(query, (self._config.name, *values))
        if not all(len(row) == _WIDTH for row in rows):
            raise unusable(self._config, "its response has other columns than the query")
        return tuple(CatalogEntry(str(s), str(n), str(place), kind == _VIEW) for s, n, place, kind in rows)

    def _rows(self, query: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        psycopg = _driver(self._config)
        with self._lock:
            for attempt in range(2):
                fresh = self._open is None
                try:
                    if self._open is None:
                        self._open = self._connected(psycopg)
                    return self._fetch(self._open, query, values)
                except psycopg.errors.UndefinedTable:
                    return []
                except psycopg.errors.InsufficientPrivilege as error:
                    raise denied(self._config, str(error)) from error
                except psycopg.OperationalError as error:
                    self._close()
                    # A connection that was made before may have broken since.
                    if fresh or attempt:
                        raise self._setup_error(error) from error
                except (psycopg.Error, UnicodeError) as error:
                    raise unusable(self._config, str(error)) from error
        raise AssertionError

    def _fetch(self, connection: Any, query: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        size = 0
        with self._deadline(connection), connection.cursor() as cursor:
            for row in cursor.stream(query, values):
                rows.append(row)
                size += sum(len(value) for value in row if isinstance(value, str))
                if len(rows) > _MAX_ROWS or size > _MAX_CHARACTERS:
                    # Before the cursor ends, which would read what is left.
                    self._close()
                    raise unusable(self._config, "its response is too large")
        return rows

    @contextmanager
    def _deadline(self, connection: Any) -> Iterator[None]:
        """End an exchange that takes too long: libpq waits for an answer without end."""
        late = threading.Event()
        line = socket.socket(fileno=os.dup(connection.fileno()))

        def end() -> None:
            late.set()
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(SECONDS, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except _driver(self._config).OperationalError as error:
            if late.is_set():
                self._close()
                raise unreachable(self._config, f"it does not respond within {SECONDS:.0f} seconds") from error
            raise
        finally:
            timer.cancel()
            line.close()

    def _connected(self, psycopg: Any) -> Any:
        try:
            parameters = postgres_parameters(self._config.settings())
        except AddressError as error:
            raise unusable(
                self._config, f"'uri' {error}", "Write uri: jdbc:postgresql://<host>:5432/<database>."
            ) from error
        options = f"{parameters.pop('options', '')} -c statement_timeout={_STATEMENT_MS}".strip()
        return psycopg.connect(
            **parameters,
            options=options,
            connect_timeout=_CONNECT_SECONDS,
            application_name="headrace",
            autocommit=True,
        )

    def _setup_error(self, error: Exception) -> SetupError:
        text = str(error)
        if any(sign in text for sign in _DENIED):
            return denied(self._config, text)
        if 'database "' in text and "does not exist" in text:
            return unusable(self._config, text, "Create the database, or correct 'uri' of the target's catalog.")
        if any(sign in text for sign in _UNTRUSTED):
            return insecure(self._config, text)
        return unreachable(self._config, text)

    def _close(self) -> None:
        if self._open is not None:
            with suppress(Exception):  # it is gone either way
                self._open.close()
        self._open = None


def _driver(config: CatalogConfig) -> Any:
    try:
        import psycopg
    except ImportError as error:
        message = "the Python package psycopg is not installed"
        raise unusable(config, message, install_hint("postgres")) from error
    return psycopg
