"""The catalog's file is read beside processes that write it, without locks or writes of the reader."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

from engine.lake.catalog import catalog_database

TABLES = 50
# Each connection begins a log and, when it closes, removes it; each commit gives all tables another place.
WRITER = """
import sqlite3, sys
number = 0
while True:
    connection = sqlite3.connect(sys.argv[1], timeout=30)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma wal_autocheckpoint = 2")
    for _ in range(number % 7 + 1):
        number += 1
        with connection:
            connection.execute("update iceberg_tables set metadata_location = ?", (f"/{number}" + "x" * (number % 900),))
    connection.close()
    print(number, flush=True)
"""


def test_a_reader_beside_a_writer_sees_whole_commits(tmp_path: Path) -> None:
    config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=tmp_path)
    columns = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
        connection.execute(f"create table iceberg_tables ({columns}, primary key (catalog_name, table_name))")
        rows = [("lake", "s", f"t{number}", "/0", None, "TABLE") for number in range(TABLES)]
        connection.executemany("insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", rows)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "catalog.db")], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = set()
        for _ in range(500):
            found = catalog_database.locations(config)
            assert len(found) == TABLES
            (place,) = set(found)
            seen.add(place)
    finally:
        writer.kill()
        writer.communicate()
    assert len(seen) > 1
