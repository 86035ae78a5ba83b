"""What an assistant gets of personal data: names of columns, and no value."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from engine.api import Project
from engine.errors import UsageError
from engine.mcp import read_tools
from engine.secrets.scrubber import MASK
from tests.lab import Lab, writable_catalog

SOURCES = """
sources:
  - name: app
    tables:
      - name: users
        format: json
        path: landing
        schema: "id bigint, email string, place struct<street string, city string>, phones array<struct<number: string, kind: string>>"
        columns:
          email: {meta: {pii: true}}
          place.street: {description: where they live, meta: {pii: true}}
          Phones.Number: {meta: {pii: "yes"}}
"""
USERS = """/*---
materialized: table
---*/
select id, email, place, place.city as city, phones, upper(email) as login, phones[0].number as phone, phones[0].kind as kind,
  named_struct('a', place.street) as packed, size(phones) as many
from {{ source('app', 'users') }}
"""
ROWS = pa.table({
    "id": [2, 1], "email": ["ann@x.example", None], "place": [{"street": "Elm Street", "city": "Rome"}] * 2, "city": ["Rome", "Oslo"],
    "phones": [[{"number": "555", "kind": "home"}]] * 2, "login": ["ANN@X.EXAMPLE"] * 2, "phone": ["555"] * 2, "kind": ["home"] * 2,
    "packed": [{"a": "Elm Street"}] * 2, "many": pa.array([1, 1], pa.int32()), "by_hand": ["ann"] * 2,
})  # fmt: skip
HIDDEN = ["email", "place", "phones", "login", "phone", "packed", "many", "by_hand"]


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


def rows_of(lab: Lab, sort: str = "") -> dict[str, object]:
    text = read_tools.show_rows(Project(lab.root), "users", 10, sort)
    for value in ("ann@x", "ANN@X", "Elm", "555"):
        assert value not in text
    record: dict[str, object] = json.loads(text.partition("\n")[2])
    return record


def test_values_of_marked_columns_and_fields_are_masked_and_so_is_what_is_computed_from_them(lab: Lab) -> None:
    found = rows_of(lab)
    assert found["masked"] == HIDDEN
    names, (first, _) = found["columns"], found["rows"]  # type: ignore[misc]
    assert dict(zip(names, first, strict=True)) == {  # type: ignore[call-overload]
        **dict.fromkeys(HIDDEN, MASK), "id": "2", "city": "Rome", "kind": "home",
    }  # fmt: skip


def test_rows_are_not_sorted_by_personal_data(lab: Lab) -> None:
    assert rows_of(lab, "id")["rows"][0][0] == "1"  # type: ignore[index]
    for name in HIDDEN:
        with pytest.raises(UsageError, match=name):
            read_tools.show_rows(Project(lab.root), "users", 10, f"{name} desc")


def test_a_project_without_marks_shows_every_column(lab: Lab) -> None:
    lab.write("sources/app.yml", SOURCES[: SOURCES.index("        columns:")])
    text = read_tools.show_rows(Project(lab.root), "users", 10, "")
    assert "ann@x.example" in text
    assert json.loads(text.partition("\n")[2])["masked"] == []


@pytest.mark.parametrize("name", ["place.stret", "place.street.x", "email.x", "phones.numbr", "nowhere.x"])
def test_a_mark_of_a_field_that_is_not_there_is_an_error(lab: Lab, name: str) -> None:
    """It would hide nothing, without a word."""
    lab.write("sources/app.yml", f"{SOURCES}          {name}: {{meta: {{pii: true}}}}\n")
    (error,) = Project(lab.root).compile().manifest.errors
    assert (error.code, error.location and error.location.file) == ("bad-value", "sources/app.yml")
    assert name in error.message


def test_a_described_field_is_no_column_of_the_source(lab: Lab) -> None:
    lab.model("copy", "/*---\nmaterialized: table\n---*/\nselect * from {{ source('app', 'users') }}")
    manifest = Project(lab.root).compile().manifest
    assert manifest.errors == ()
    model = next(one for one in manifest.models if one.name == "copy")
    assert [column.name for column in model.columns] == ["id", "email", "place", "phones"]
    (source,) = manifest.sources
    assert {field.name: field.type for field in source.fields} == {"place.street": "string", "Phones.Number": "string"}
