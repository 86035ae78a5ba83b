"""Tables as they stand: a catalog that cannot be read breaks no site."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

from engine.docs.site.table_statistics import read_tables
from tests.docs.build import small


def catalog(path: Path) -> SimpleNamespace:
    return SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=path)


def test_without_a_lake_there_are_no_tables(tmp_path):
    assert read_tables(small(), catalog(tmp_path / "none")) == {}


def test_a_lake_without_the_schema_has_no_tables(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    assert read_tables(small(), catalog(tmp_path)) == {}


def test_a_catalog_that_cannot_be_read_is_told_and_breaks_nothing(tmp_path, caplog):
    (tmp_path / "catalog.db").write_text("no database at all, but long enough to look like one" * 100)
    with caplog.at_level(logging.WARNING, "engine.docs"):
        assert read_tables(small(), catalog(tmp_path)) == {}
    assert "the tables cannot be shown: the catalog lake cannot be read" in caplog.text
