"""`docs generate --profile`: what columns hold, some rows, and no personal data."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from engine.compile import compile_project
from engine.compile.nodes.personal_data import personal_columns
from engine.docs.profile import table_profile
from engine.project import load_project
from tests.docs.build import Site
from tests.lab import Lab, writable_catalog

SOURCES = """
sources:
  - name: app
    tables:
      - name: users
        format: json
        path: landing
        schema: "id bigint, email string, place struct<street string, city string>, amount decimal(8,2), at timestamp"
        columns: {email: {meta: {pii: true}}}
"""
USERS = """/*---
materialized: table
columns:
  size: {meta: {pii: false}}
  place.street: {meta: {pii: yes}}
---*/
select id, email, lower(email) as login, length(email) as size, place, place.city as city, amount, at
from {{ source('app', 'users') }}
"""
LATER = "/*---\nmaterialized: table\n---*/\nselect id, login as name, city, count(*) as n from {{ ref('users') }} group by all"
PRIVATE = "/*---\nmaterialized: table\nmeta: {pii: true}\n---*/\nselect 1 as id"
SECRET = "tiger-7419-lily"
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "email": ["a@x.example"] * 4,
        "login": ["a@x.example"] * 4,
        "size": pa.array([11, 11, 12, None], pa.int32()),
        "place": [{"street": "Secret Street", "city": "Rome"}] * 4,
        "city": ["Rome", "<b>Rome</b>", "Rome", SECRET],
        "amount": pa.array([Decimal("1.50"), None, Decimal(-2), None], pa.decimal128(8, 2)),
        "at": pa.array([datetime(2024, 5, 1, 10, i, tzinfo=UTC) for i in range(4)], pa.timestamp("us", tz="UTC")),
        "added_by_hand": ["somebody"] * 4,
    }
)


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lab:
    lab = Lab(tmp_path, None, capsys, schema="app")
    lab.write("sources/app.yml", SOURCES)
    lab.write("landing/a.json", "")
    for name, text in (("users", USERS), ("later", LATER), ("private", PRIVATE)):
        lab.model(name, text)
    write(lab, "users", ROWS)
    write(lab, "private", pa.table({"id": [1]}))
    return lab


def write(lab: Lab, name: str, rows: pa.Table) -> None:
    catalog = writable_catalog(lab.lake_path)
    catalog.create_namespace_if_not_exists("app")
    catalog.create_table_if_not_exists(f"app.{name}", schema=rows.schema).append(rows)


def site(lab: Lab, *options: str) -> Site:
    result = lab.run("docs", "generate", *options)
    assert result.code == 0, result.text
    return Site(lab.root / "target" / "docs")


def test_without_the_option_no_row_is_on_the_site(lab: Lab) -> None:
    written = site(lab)
    assert "profile" not in written.node("model.users")
    assert "Rome" not in written.all_data


def test_columns_and_rows_are_shown_and_personal_data_is_not(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_SECRET_X", SECRET)
    written = site(lab, "--profile")
    profile = written.node("model.users")["profile"]
    assert (profile["rows"], profile["total"]) == (4, 4)
    assert profile["left_out"] == ["email", "login", "place", "added_by_hand"]
    city = profile["columns"][2]
    assert city[:4] == ["city", "string", 0, 3]
    assert city[6] == [["Rome", 2]]
    assert [c for c in profile["columns"] if c[0] != "city"] == [
        ["id", "bigint", 0, 4, "1", "4", []],
        ["size", "int", 1, 2, "11", "12", [["11", 2]]],
        ["amount", "decimal(8,2)", 2, 2, "-2.00", "1.50", []],
        ["at", "timestamp", 0, 4, "2024-05-01 10:00:00", "2024-05-01 10:03:00", []],
    ]
    assert profile["sample"][1] == ["2", "11", "<b>Rome</b>", None, "2024-05-01 10:01:00"]
    hidden = written.node("model.private")["profile"]
    assert (hidden["columns"], hidden["sample"], hidden["left_out"]) == ([], [], ["id"])
    for text in ("a@x.example", "Secret Street", "somebody", SECRET, "<b>Rome</b>"[2:] + "</script"):
        assert text not in written.all_data, text


def test_personal_data_is_followed_through_the_lineage(lab: Lab) -> None:
    found = personal_columns(compile_project(load_project(lab.root)).manifest)
    assert found["source.app.users"] == {"email"}
    assert found["model.users"] == {"email", "login", "place.street"}
    assert found["model.later"] == {"name"}
    assert found["model.private"] == {"id"}


def test_no_more_than_the_first_rows_are_read(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_profile, "MOST_ROWS", 3)
    profile = site(lab, "--profile").node("model.users")["profile"]
    assert (profile["rows"], profile["total"], profile["columns"][0][3]) == (3, 4, 3)


def test_values_of_all_types_and_none(lab: Lab) -> None:
    rows = pa.table(
        {
            "id": pa.array([], pa.int64()),
            "size": pa.array([], pa.int32()),
            "city": pa.array([], pa.string()),
            "at": pa.array([], pa.timestamp("us", tz="UTC")),
        }
    )
    lab.model("empty", "/*---\nmaterialized: table\n---*/\nselect id, size, city, at from {{ ref('users') }}")
    write(lab, "empty", rows)
    kinds = {
        "flag": pa.array([True, False, True]), "day": pa.array([date(2024, 1, 1)] * 3), "raw": pa.array([b"a"] * 3),
        "many": pa.array([[1], [], None]), "time": pa.array([None, 1_000_000, 5], pa.timestamp("us", tz="UTC")),
        "real": pa.array([1.5, float("nan"), 2.0]), "long": pa.array(["x" * 500] * 3),
    }  # fmt: skip
    sql = "true as flag, date'2024-01-01' as day, binary('a') as raw, array(1) as many, current_timestamp() as time, 1d as real, '' as long"
    lab.model("kinds", f"/*---\nmaterialized: table\n---*/\nselect {sql}")
    write(lab, "kinds", pa.table(kinds))
    written = site(lab, "--profile")
    assert [column[2:] for column in written.node("model.empty")["profile"]["columns"]] == [[0, 0, "", "", []]] * 4
    columns = {column[0]: column[2:] for column in written.node("model.kinds")["profile"]["columns"]}
    assert columns["flag"] == [0, 2, "false", "true", [["true", 2]]]
    assert columns["day"] == [0, 1, "2024-01-01", "2024-01-01", [["2024-01-01", 3]]]
    assert columns["raw"] == [0, None, "", "", []]
    assert columns["many"] == [1, None, "", "", []]
    assert columns["time"][2:4] == ["1970-01-01 00:00:00.000005", "1970-01-01 00:00:01"]
    assert columns["real"][2:4] == ["1.5", "2"]
    assert columns["long"][2] == "x" * 120 + "…"


def test_a_table_that_cannot_be_read_breaks_no_site(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    for data in lab.lake_path.rglob("*.parquet"):
        data.write_bytes(b"PAR1 no more")
    assert "profile" not in site(lab, "--profile").node("model.users")


def test_runs_are_those_that_marked_their_commits(lab: Lab) -> None:
    catalog = writable_catalog(lab.lake_path)
    table = catalog.load_table("app.users")
    for run in ("first", "first", "second"):
        table.append(ROWS, snapshot_properties={"engine.run-id": run, "engine.batch-id": "1"})
    runs = site(lab).node("model.users")["table"]["runs"]
    assert [run[1:] for run in runs] == [[1, 4, 0, 16, "second"], [2, 8, 0, 12, "first"]]
