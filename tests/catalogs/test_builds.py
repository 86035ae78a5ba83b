"""What a project does in the catalogs of real servers, as it does in a local one."""

from __future__ import annotations

import pytest

from tests.catalogs.conftest import CatalogLab
from tests.lab import EVENTS, event

pytestmark = pytest.mark.spark

PLAIN = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind, amount from {{ source('shop', 'events') }}\n"
LATEST = """/*---
streams: [shop.events]
unique_key: [id]
sequence_by: at
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""
DOWNSTREAM = "/*---\nstreams: [plain]\n---*/\nselect id, amount * 2 as twice from {{ ref('plain') }}\n"
BATCH = "select kind, count(*) as n from {{ ref('latest') }} group by kind\n"
VIEW = "/*---\nmaterialized: view\n---*/\nselect count(*) as n from {{ ref('plain') }}\n"
STAGED = """/*---
streams: [shop.events]
publish: on_tests_pass
columns: {id: {tests: [not_null]}}
---*/
select id, at from {{ source('shop', 'events') }}
"""


def test_a_project_builds_and_plans_shows_maintains_and_drops(shared: CatalogLab) -> None:
    lab = shared
    lab.write("sources/shop.yml", EVENTS)
    models = {
        "plain": PLAIN,
        "latest": LATEST,
        "downstream": DOWNSTREAM,
        "batch": BATCH,
        "counted": VIEW,
        "staged": STAGED,
    }
    for name, text in models.items():
        lab.model(name, text)
    lab.land("a", [event(1), event(2)])
    lab.build()
    assert lab.ids("plain") == [1, 2] == lab.ids("latest") == lab.ids("staged")
    assert [row["twice"] for row in lab.rows("downstream")] == [2.0, 2.0]
    before = lab.snapshots()

    second = lab.build()
    assert {m["message"] for m in second.events if m["event"] == "ModelFinished"} == {"nothing new"}
    assert lab.snapshots() == before

    lab.land("b", [event(2, 5, amount=7.0), event(3)])
    assert lab.run("plan").code == 0
    lab.build()
    assert lab.ids("plain") == [1, 2, 2, 3]
    assert {row["id"]: row["amount"] for row in lab.rows("latest")} == {1: 1.0, 2: 7.0, 3: 1.0}
    assert lab.rows("batch") == [{"kind": "paid", "n": 3}]
    assert lab.ids("staged") == [1, 2, 2, 3]

    lab.build("-f", "-s", "plain+")
    assert lab.ids("plain") == [1, 2, 2, 3]
    shown = lab.run("show", "latest", "--table")
    assert shown.code == 0, shown.text
    assert lab.run("show", "counted").code == 0
    assert lab.run("maintain").code == 0
    assert lab.run("docs", "generate").code == 0

    (lab.root / "models" / "downstream.sql").unlink()
    dropped = lab.run("drop", "downstream", "--yes")
    assert dropped.code == 0, dropped.text
    assert lab.table("downstream") is None
    assert not list((lab.catalog.path / lab.schema.replace(".", "/") / "downstream").rglob("*.parquet"))
    assert lab.table("plain") is not None
