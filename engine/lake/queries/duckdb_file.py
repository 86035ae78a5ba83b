"""A DuckDB file with copies of tables, for programs that have no reader of Iceberg."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from engine.errors import UsageError
from engine.lake.queries.duckdb_queries import OpenTable, copy_rows, open_table, quoted

if TYPE_CHECKING:
    from engine.lake.lake_reader import Lake

# What was copied, from which snapshot: a copy does not show by itself how old it is.
COPIED = "headrace_export"


def write_copies(lake: Lake, tables: Iterable[tuple[str, tuple[str, str]]], file: Path) -> tuple[list[str], list[str]]:
    """Write a file with copies of tables once all are read; return names of copies, and of those only Spark reads.

    Raises:
        SetupError: a table cannot be read.
        UsageError: the file cannot be written.
    """
    copied, not_copied = list[str](), list[str]()
    try:
        with tempfile.TemporaryDirectory(prefix=".headrace-", dir=file.parent) as folder:
            new = Path(folder) / "copies.duckdb"
            with duckdb.connect(str(new), config={"temp_directory": folder}) as database:
                database.execute(f"create table {COPIED}(table_name text, snapshot bigint, copied_at timestamptz)")
                for name, place in tables:
                    with open_table(lake, *place) as table:
                        if table is None or table.only_spark_reads:
                            not_copied.append(name)
                            continue
                        _copy(database, name, table)
                        copied.append(name)
            new.replace(file)
    except (OSError, duckdb.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).partition("\n")[0]
        raise UsageError(
            "usage", f"'{file}' cannot be written: {reason}", "Name a file in a writable folder."
        ) from error
    return copied, not_copied


def _copy(database: duckdb.DuckDBPyConnection, name: str, table: OpenTable) -> None:
    copy_rows(database, quoted(name), table, table.names, None)
    marks = [name, table.snapshot, datetime.now(UTC)]
    database.execute(f"insert into {COPIED} values (?, ?, ?)", marks)  # noqa: S608 - a name of ours
    for column, comment in table.comments():
        text = comment.replace("'", "''")
        database.execute(f"comment on column {quoted(name)}.{quoted(column)} is '{text}'")
