"""A catalog's file that another program made or changed: what it names is read, and nothing that it says is run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import SetupError
from engine.lake.catalog import catalog_database, moved_lake

COLUMNS = "catalog_name text, table_namespace text, table_name text, metadata_location text, iceberg_type text"


def catalog(root: Path, columns: str = COLUMNS, place: str = "") -> SimpleNamespace:
    """A catalog with one table."""
    with closing(sqlite3.connect(root / "catalog.db")) as connection, connection:
        connection.execute(f"create table iceberg_tables ({columns})")
        row = ("lake", "s", "t", place or (root / "warehouse/s/t/metadata/1.json").as_uri(), "TABLE")
        names = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        connection.execute(f"insert into iceberg_tables ({names}) values (?, ?, ?, ?, ?)", row)
    return SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=root)


def test_a_plain_table_is_read(tmp_path: Path) -> None:
    assert len(catalog_database.locations(catalog(tmp_path))) == 1


@pytest.mark.parametrize("kind", ["virtual", "stored"])
def test_a_column_that_is_computed_is_not_read(tmp_path: Path, kind: str) -> None:
    config = catalog(tmp_path, f"{COLUMNS}, sum text generated always as (upper(table_name)) {kind}")
    with pytest.raises(SetupError) as raised:
        catalog_database.locations(config)
    assert raised.value.diagnostics[0].code == "catalog-unusable"


@pytest.mark.parametrize(
    ("place", "before"),
    [
        ("file:///old/lake/warehouse/s/t/metadata/1.json", "/old/lake"),
        ("file:///lake/warehouse/s/t/metadata/1.json", "/lake"),
        # Whatever a place looks like, it is named.
        ("file:///s/t/1.json", "/s/t"),
        ("file:///warehouse/s/t/1.json", "/warehouse/s/t"),
    ],
)
def test_a_moved_lake_names_where_it_was(tmp_path: Path, place: str, before: str) -> None:
    error = moved_lake.moved_error(catalog(tmp_path, place=place))  # type: ignore[arg-type]
    assert error is not None
    assert f"the warehouse was moved from {before} to {tmp_path}," in error.diagnostics[0].message
