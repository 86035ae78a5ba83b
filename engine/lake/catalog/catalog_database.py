"""The SQLite file of a local catalog, without Java: fixed queries of one plain table. Only `remove` and `rename` write.

The file may be a stranger's: its schema runs nothing, and no lock file, journal or index is made beside it, as SQLite
would follow a link of that name.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import local_paths
from engine.errors import SetupError
from engine.lake.catalog.catalog_settings import CatalogConfig, database

_TABLE = "iceberg_tables"
_VIEW = "VIEW"
_THAT_ENTRY = "catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
_ROW_BYTES = 100_000
# Bytes 18 and 19 of the header: the file is written through a log (WAL).
_WAL_MODE = b"\x02\x02"
_ATTEMPTS = 20
# Between two of them, times their number: 2 s in all.
_PAUSE_SECONDS = 0.01
# Nanoseconds; more than a step of the clock of any file system that SQLite is used on but FAT.
_CLOCK_STEP = 100_000_000
# How long to wait for another writer, as Spark's sessions do.
_BUSY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """Levels of `schema` are separated by dots; `location` is empty where a server has not been asked yet."""

    schema: str
    name: str
    location: str
    view: bool = False
    content: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)


def exists(config: CatalogConfig) -> bool:
    """Whether the catalog was ever written.

    Raises SetupError: `lake-outside`, `catalog-unusable`; `lake-moved`, it was written under another name.
    """
    path = database(config)
    for part in (path, *(_sibling(path, end) for end in ("-wal", "-shm", "-journal")), config.path / "warehouse"):
        if part.is_symlink():
            raise _link(part)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if misnamed_file := _misnamed_file(path):
            raise _misnamed(path, misnamed_file) from None
        return False
    except OSError as error:
        raise unreadable(config, error.strerror or "") from error
    if not stat.S_ISREG(mode):
        raise unreadable(config, f"{path} is not a file")
    return True


def _misnamed_file(path: Path) -> Path | None:
    """The file that an earlier version wrote in place of a catalog, in a folder with a question mark in its path.

    It gave Java the path as it is, in which what is behind the question mark was taken for options of SQLite.
    """
    if "?" not in str(path):
        return None
    try:
        names = sorted(name for name in os.listdir(path.parent) if name.startswith(f"{path.name}?"))  # noqa: PTH208
    except OSError:
        return None
    return path.with_name(names[0]) if names else None


def _misnamed(path: Path, misnamed_file: Path) -> SetupError:
    message = f"the catalog is in {misnamed_file}: earlier versions of Headrace took the end of its path for options"
    hint = f"Rename it, and run the command again: mv {shlex.quote(str(misnamed_file))} {shlex.quote(str(path))}"
    return SetupError("lake-moved", message, hint)


def names(config: CatalogConfig, schema: str) -> tuple[str, ...]:
    """The tables of a schema. Raises SetupError: `lake-outside`, `catalog-unusable`."""
    return tuple(row[0] for row in _rows(config, "AND table_namespace = ?", schema))


def location(config: CatalogConfig, schema: str, name: str) -> str | None:
    """Where the metadata of a table are according to the catalog, or None if there is no such table.

    Raises SetupError: `lake-outside`, `catalog-unusable`.
    """
    rows = _rows(config, "AND table_namespace = ? AND table_name = ?", schema, name)
    return rows[0][1] if rows else None


def file_version(config: CatalogConfig) -> object:
    """Return a value that another commit changes; None for a file written just now: file times are coarse."""
    path, file_stats = str(database(config)), []
    for part in (path, f"{path}-wal"):
        try:
            file_stats.append(os.stat(part))  # noqa: PTH116 - asked for with each table
        except FileNotFoundError:
            continue
        except OSError:
            return None
    now_ns = time.time_ns()
    if any(now_ns - file_stat.st_mtime_ns < _CLOCK_STEP for file_stat in file_stats):
        return None
    return tuple((file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns) for file_stat in file_stats)


def locations(config: CatalogConfig) -> list[str]:
    """Where the metadata of all tables and views are. Raises SetupError: `lake-outside`, `catalog-unusable`."""
    return [row[1] for row in _rows(config, "", views=True)]


def entries(config: CatalogConfig, schema: str) -> tuple[CatalogEntry, ...]:
    """The tables and views of a schema. Raises SetupError: `lake-outside`, `catalog-unusable`."""
    rows = _rows(config, "AND table_namespace = ?", schema, views=True)
    return tuple(CatalogEntry(schema, name, location, kind == _VIEW) for name, location, kind in rows)


def every_location(config: CatalogConfig) -> list[str]:
    """Where the metadata of all tables and views are, of catalogs of other names in the same file too.

    Raises SetupError: `lake-outside`, `catalog-unusable`.
    """
    return [row[1] for row in _rows(config, "OR true", views=True)]


def remove(config: CatalogConfig, entry: CatalogEntry) -> bool:
    """Take a table or view out of the catalog, if it is still what it was; its files stay.

    Raises SetupError: `lake-outside`, `catalog-unusable`; `catalog-busy`: another process writes all the time.
    """
    kind = f"AND iceberg_type = '{_VIEW}'" if entry.view else ""
    return _execute_change(config, f"DELETE FROM {_TABLE} WHERE {_THAT_ENTRY} {kind}", (), entry)  # noqa: S608 - of constants


def rename(config: CatalogConfig, entry: CatalogEntry, schema: str, name: str) -> bool:
    """Give a table another name, if it is still what it was; its files stay.

    Raises SetupError: `lake-outside`, `catalog-unusable`: there is something of that name; `catalog-busy`.
    """
    statement = f"UPDATE {_TABLE} SET table_namespace = ?, table_name = ? WHERE {_THAT_ENTRY}"  # noqa: S608 - of constants
    return _execute_change(config, statement, (schema, name), entry)


def _execute_change(config: CatalogConfig, statement: str, values: tuple[str, ...], entry: CatalogEntry) -> bool:
    if not exists(config):
        return False
    try:
        address = local_paths.sqlite(database(config).absolute(), "mode=rw")
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ROW_BYTES)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = FULL")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'").fetchone():
                message = "it has triggers"
                raise sqlite3.DatabaseError(message)
            if not _query(connection, "", views=True):
                return False
            entry_values = (config.name, entry.schema, entry.name, entry.location)
            cursor = connection.execute(statement, (*values, *entry_values))
            return cursor.rowcount > 0
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            message = f"the catalog {config.name} is locked by another process"
            raise SetupError("catalog-busy", message, "Run the command again when that process has ended.") from error
        raise unreadable(config, str(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise unreadable(config, str(error)) from error


def unreadable(config: CatalogConfig, reason: str) -> SetupError:
    message = f"the catalog {config.name} cannot be read: {reason}"
    return SetupError("catalog-unusable", message, "Check the 'catalog' of the target with engine debug.")


def _link(part: Path) -> SetupError:
    message = f"{part} is a symbolic link, which is not followed"
    hint = (
        "Replace the link by the folder it points to, or set the 'path' of the target's catalog to "
        f"{part.resolve().parent}."
    )
    return SetupError("lake-outside", message, hint)


def _rows(config: CatalogConfig, condition: str, *values: str, views: bool = False) -> list[tuple[str, str, str]]:
    if not exists(config):
        return []
    rows: list[tuple[str, str, str]] = []
    for attempt in range(_ATTEMPTS):
        try:
            with _open_read_only(database(config)) as (connection, version):
                query = _query(connection, condition, views=views)
                rows = connection.execute(query, (config.name, *values)).fetchall() if query else []
            if version == _version(database(config)):
                break
        except (sqlite3.Error, OSError) as error:
            # Neither a log that a writer begins at this moment nor a journal that it leaves between SQLite's two looks
            # at it (SQLITE_READONLY_ROLLBACK) can be read without writing; a moment later they can.
            if attempt == _ATTEMPTS - 1:
                raise unreadable(config, str(error)) from error
            time.sleep(_PAUSE_SECONDS * attempt)
    if not all(isinstance(cell, str) for row in rows for cell in row):
        raise unreadable(config, f"{database(config)} contains a location that is not a string")
    return rows


def _query(connection: sqlite3.Connection, condition: str, *, views: bool) -> str:
    """Return the query, empty without the table; raise sqlite3.DatabaseError if reading would run the schema's SQL."""
    schema_rows = connection.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (_TABLE,)).fetchall()
    if not schema_rows:
        return ""
    kinds = {kind for kind, _ in schema_rows}
    columns = (
        {row[1]: row[6] for row in connection.execute(f"PRAGMA table_xinfo({_TABLE})")} if kinds == {"table"} else {}
    )
    virtual = any(str(text).upper().startswith("CREATE VIRTUAL") for _, text in schema_rows)
    if not columns or virtual or any(columns.values()):
        message = f"{_TABLE} is not a plain table"
        raise sqlite3.DatabaseError(message)
    # A catalog of the first schema version has tables only.
    typed = "iceberg_type" in columns
    tables = " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)" if typed and not views else ""
    kind = "coalesce(iceberg_type, 'TABLE')" if typed else "'TABLE'"
    return (
        f"SELECT table_name, metadata_location, {kind} FROM {_TABLE}"  # noqa: S608 - of constants
        f" WHERE metadata_location IS NOT NULL AND (catalog_name = ? {condition}){tables}"
    )


@contextmanager
def _open_read_only(path: Path) -> Iterator[tuple[sqlite3.Connection, object]]:
    """A connection that writes nothing, and the version of the file that it reads; None: SQLite does that."""
    version = _version(path)
    with _readable(path, version) as address, closing(sqlite3.connect(address, uri=True)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ROW_BYTES)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        yield connection, version


@contextmanager
def _readable(path: Path, version: object) -> Iterator[str]:
    """Yield the address that a file is opened with; its index is not written, and a log without one means a copy.

    A file whose log is empty is read alone.
    """
    uri = local_paths.sqlite(path.absolute(), "mode=ro")
    if version is not None:
        yield f"{uri}&immutable=1"
    elif _has_log(path) and not _sibling(path, "-shm").exists():
        with tempfile.TemporaryDirectory() as folder:
            for part in (path, _sibling(path, "-wal")):
                shutil.copyfile(part, Path(folder, part.name), follow_symlinks=False)
            yield local_paths.sqlite(Path(folder, path.name), "mode=rw")
    elif _has_log(path):
        yield f"{uri}&readonly_shm=1"
    else:
        yield uri


def _version(path: Path) -> object:
    """What shows whether a file with an empty log was written meanwhile; None for others, which SQLite locks itself."""
    with path.open("rb") as stream:
        header = stream.read(20)
        facts = os.fstat(stream.fileno())
    if header[18:20] != _WAL_MODE or _has_log(path):
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _has_log(path: Path) -> bool:
    log = _sibling(path, "-wal")
    return log.is_file() and log.stat().st_size > 0


def _sibling(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
