"""Descriptions as comments of tables, views, columns and fields; nobody's rows or streams notice."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.fault_injection.points import reached
from tests.lab import Lab

pytestmark = pytest.mark.spark

FILES = {
    "clean": """/*---
description: It's "each" event\\, once. 航班
streams: [shop.events]
columns:
  ID: Unique.
  kind: What it was.
  place: {description: Where it was.}
  place.name: Its name.
  PLACE.inner.deep: Far below.
---*/
select id, at, kind, named_struct('name', kind, 'inner', named_struct('deep', amount)) as place
from {{ source('shop', 'events') }}
""",
    "counted": """/*---
description: How many of each kind in an hour.
streams: {clean: {watermark: at delay 10 minutes}}
windows: {hour: "tumbling(at, 1 hour)"}
columns: {n: How many.}
---*/
select hour.start as hour_start, kind, count(*) as n from {{ ref('clean') }} group by hour, kind
""",
    "newest": """/*---
materialized: view
description: The newest.
columns: {id: Unique., place.name: Its name.}
---*/
select id, place from {{ ref('clean') }} order by at desc limit 1
""",
    "silent": """/*---
description: Nobody hears it.
persist_docs: {relation: false, columns: true}
columns: {id: Unique.}
---*/
select id, kind from {{ ref('clean') }}
""",
}


@pytest.fixture
def shop(lab: Lab) -> Lab:
    for name, text in FILES.items():
        lab.model(name, text)
    land(lab, 10)
    return lab


def land(lab: Lab, hour: int) -> None:
    rows = [{"id": hour * 10 + i, "at": f"2026-01-01T{hour}:0{i}:00Z", "kind": "a", "amount": 1.5} for i in range(2)]
    lab.land(f"f{hour}", rows)


def metadata(lab: Lab, name: str) -> tuple[str, dict[str, Any]]:
    """Where the current metadata of a table or view is, and what stands there: as the specification has it."""
    with closing(sqlite3.connect(lab.lake_path / "catalog.db")) as catalog:
        query = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"
        (location,) = catalog.execute(query, (lab.schema, name)).fetchone()
    content = Path(unquote(urlsplit(location).path)).read_bytes()
    return location, json.loads(gzip.decompress(content) if ".gz." in location else content)


def places(lab: Lab) -> dict[str, str]:
    return {name: metadata(lab, name)[0] for name in FILES}


def comments(lab: Lab, name: str) -> dict[str, str]:
    """Comments by path; that of the whole by the empty one."""
    _, found = metadata(lab, name)
    versions = {version["version-id"]: version["schema-id"] for version in found.get("versions", ())}
    current = versions[found["current-version-id"]] if versions else found["current-schema-id"]
    (schema,) = [schema for schema in found["schemas"] if schema["schema-id"] == current]
    said = dict(docs(schema, ""))
    return {**({"": text} if (text := found["properties"].get("comment")) is not None else {}), **said}


def docs(struct: dict[str, Any], above: str) -> Any:
    for field in struct["fields"]:
        if "doc" in field:
            yield above + field["name"], field["doc"]
        if isinstance(field["type"], dict):
            yield from docs(field["type"], f"{above}{field['name']}.")


def snapshots(lab: Lab) -> dict[str, list[int]]:
    return {name: [s["snapshot-id"] for s in metadata(lab, name)[1].get("snapshots", ())] for name in FILES}


def test_descriptions_are_comments_and_change_with_the_project(shop: Lab) -> None:
    shop.build()
    assert comments(shop, "clean") == {
        "": "It's \"each\" event\\, once. 航班", "id": "Unique.", "kind": "What it was.", "place": "Where it was.",
        "place.name": "Its name.", "place.inner.deep": "Far below.",
    }  # fmt: skip
    assert comments(shop, "counted") == {"": "How many of each kind in an hour.", "n": "How many."}
    assert comments(shop, "newest") == {"": "The newest.", "id": "Unique.", "place.name": "Its name."}
    # What Spark hands down from clean (of kind) goes: the project says nothing of it.
    assert comments(shop, "silent") == {"id": "Unique."}
    shown = shop.session.spark.sql(f"describe table lake.{shop.schema}.newest").collect()
    assert ("id", "Unique.") in [(row["col_name"], row["comment"]) for row in shown]

    before, history = places(shop), snapshots(shop)
    shop.model("clean", FILES["clean"].replace("What it was.", "Its kind.").replace("  ID: Unique.\n", ""))
    shop.model("newest", FILES["newest"].replace("id: Unique., ", "").replace("description: The newest.\n", ""))
    shop.model("silent", FILES["silent"].replace("columns: true", "columns: false").replace("Unique", "Other"))
    again = shop.build()
    assert {e["status"] for e in again.events if e["event"] == "ModelFinished"} == {"unchanged"}
    assert snapshots(shop) == history
    assert comments(shop, "clean") == {
        "": "It's \"each\" event\\, once. 航班", "kind": "Its kind.", "place": "Where it was.",
        "place.name": "Its name.", "place.inner.deep": "Far below.",
    }  # fmt: skip
    assert comments(shop, "newest") == {"place.name": "Its name."}
    assert comments(shop, "silent") == {"id": "Unique."}
    # One commit for all that differs, and none where nothing does.
    assert metadata(shop, "clean")[1]["metadata-log"][-1]["metadata-file"] == before["clean"]
    assert [name for name, place in places(shop).items() if place == before[name]] == ["counted", "silent"]

    # The streams over and below the edited comments go on where they were.
    land(shop, 12)
    grown = shop.build()
    assert (grown.model("clean")["rows_in"], grown.model("counted")["rows_in"]) == (2, 2)
    assert [(row["kind"], row["n"]) for row in shop.rows("counted")] == [("a", 2)]
    shown = shop.session.spark.sql(f"select id from lake.{shop.schema}.newest").collect()
    assert [row["id"] for row in shown] == [121]


@pytest.mark.nightly
def test_comments_that_were_not_written_are_written_by_the_next_build_and_outlive_a_refresh(shop: Lab) -> None:
    from py4j.protocol import Py4JError

    def refuse(*_: object) -> None:
        raise Py4JError("no")

    with reached("describing", refuse):
        assert shop.build("-s", "clean").codes() == ["comments-failed"]
    assert len(shop.rows("clean")) == 2
    assert list(comments(shop, "clean")) == [""]
    shop.build("-s", "clean")
    assert len(comments(shop, "clean")) == 6
    shop.build("-f", "-s", "clean")
    assert len(comments(shop, "clean")) == 6
