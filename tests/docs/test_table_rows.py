"""Rows of tables on the site: only if asked for, and never personal data."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lab import Lab, writable_catalog
from tests.mcp.test_personal_data import HIDDEN, ROWS, SOURCES, USERS

PERSONAL = ("ann@x", "ANN@X", "Elm", "555", '"ann"')


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    lab = Lab(tmp_path, None, capsys, schema="app")
    lab.write("sources/app.yml", SOURCES)
    lab.write("landing/a.json", "")
    lab.model("users", USERS)
    catalog = writable_catalog(lab.lake_path)
    catalog.create_namespace_if_not_exists("app")
    catalog.create_table_if_not_exists("app.users", schema=ROWS.schema).append(ROWS)
    return lab


def written(lab: Lab, *options: str) -> str:
    """Everything that the site has."""
    assert lab.run("docs", "generate", *options).code == 0
    return "\n".join(path.read_text() for path in sorted((lab.root / "target/docs/data").iterdir()))


def test_a_site_has_no_rows_unless_it_is_asked_for_them(lab: Lab) -> None:
    assert "Rome" not in written(lab)


def test_rows_and_a_profile_have_no_personal_data(lab: Lab) -> None:
    text = written(lab, "--rows", "1")
    assert not [value for value in PERSONAL if value in text]
    assert '"rows":[["2","Rome","home"]]' in text
    assert '"profiled":2' in text
    assert '"profiles":[["id",0,2,"1","2"],["city",0,2,"Oslo","Rome"],["kind",0,1,"home","home"]]' in text
    assert f'"hidden":[{",".join(f"{chr(34)}{name}{chr(34)}" for name in HIDDEN)}]' in text
    # A site that is written again without the option has none.
    assert "Rome" not in written(lab)


def test_values_without_an_order_have_no_least(lab: Lab) -> None:
    lab.write("sources/app.yml", SOURCES.replace("pii:", "mark:"))
    text = written(lab, "--rows", "3")
    assert '["place",0,null,null,null]' in text
    assert '["email",1,1,"ann@x.example","ann@x.example"]' in text


def test_a_table_that_cannot_be_read_is_warned_of(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    for path in lab.lake_path.rglob("*.parquet"):
        path.unlink()
    with caplog.at_level(logging.WARNING, "engine.docs"):
        assert "Rome" not in written(lab, "--rows", "3")
    assert "the rows of lake.app.users cannot be shown" in caplog.text


def test_an_empty_table_has_no_rows(lab: Lab) -> None:
    writable_catalog(lab.lake_path).load_table("app.users").overwrite(pa.table(ROWS.schema.empty_table()))
    assert '"rows":[]' in written(lab, "--rows", "3")
