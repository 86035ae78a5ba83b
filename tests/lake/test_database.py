"""The catalog's file is read beside processes that write it, without locks or writes of the reader."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.lake.catalog import catalog_database
from engine.lake.lake_reader import Lake
from tests.lake.test_table_facts import CONTENT

TABLES = 50
COLUMNS = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, iceberg_type"
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


def table_file(config: SimpleNamespace, number: int) -> str:
    """A metadata file of a table whose property says which it is."""
    folder = config.path / "warehouse/s/t/metadata"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.metadata.json"
    location = (config.path / "warehouse/s/t").as_uri()
    path.write_text(json.dumps({**CONTENT, "location": location, "properties": {"number": str(number)}}))
    return path.as_uri()


@pytest.mark.parametrize("log", ["wal", "delete"])
def test_what_was_read_of_many_tables_counts_until_the_file_is_written(tmp_path: Path, log: str) -> None:
    config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=tmp_path)
    file = tmp_path / "catalog.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"pragma journal_mode = {log}")
        with connection:
            connection.execute(f"create table iceberg_tables ({COLUMNS}, primary key (catalog_name, table_name))")
            row = ("lake", "s", "t", table_file(config, 1), None, "TABLE")
            connection.execute("insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", row)
        # The clock of files goes on in steps: what was written just now may be written again in the same one.
        assert catalog_database.file_version(config) is None
        for part in (file, tmp_path / "catalog.db-wal"):
            if part.exists():
                os.utime(part, (1_700_000_000, 1_700_000_000))
        standing, lake = catalog_database.file_version(config), Lake(config)
        assert standing is not None
        lake.load([("s", "t"), ("s", "other")])
        asked: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            real = catalog_database.location
            patch.setattr(catalog_database, "location", lambda *names: asked.append(names[2]) or real(*names))
            assert (lake.table("s", "other"), asked) == (None, [])
            with connection:
                connection.execute("update iceberg_tables set metadata_location = ?", (table_file(config, 2),))
            assert catalog_database.file_version(config) != standing
            facts = lake.table("s", "t")
        assert facts is not None
        assert (facts.properties["number"], asked) == ("2", ["t"])


@pytest.mark.slow
def test_a_reader_beside_a_writer_sees_whole_commits(tmp_path: Path) -> None:
    config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=tmp_path)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
        connection.execute(f"create table iceberg_tables ({COLUMNS}, primary key (catalog_name, table_name))")
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
