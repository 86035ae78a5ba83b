"""What a project does in any catalog and any warehouse, as it does in local ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.catalogs.conftest import CatalogLab
from tests.lab import event

PLAIN = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind, amount from {{ source('shop', 'events') }}\n"
LATEST = """/*---
streams: [shop.events]
unique_key: [id]
sequence_by: at
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""
_MODELS = {
    "plain": PLAIN,
    "latest": LATEST,
    "downstream": "/*---\nstreams: [plain]\n---*/\nselect id, amount * 2 as twice from {{ ref('plain') }}\n",
    "batch": "select kind, count(*) as n from {{ ref('latest') }} group by kind\n",
    "counted": "/*---\nmaterialized: view\n---*/\nselect count(*) as n from {{ ref('plain') }}\n",
    "staged": """/*---
streams: [shop.events]
publish: on_tests_pass
columns: {id: {tests: [not_null]}}
---*/
select id, at from {{ source('shop', 'events') }}
""",
}


def build_plan_show_maintain_and_drop(lab: CatalogLab, data_files: Callable[[str], Sequence[object]]) -> None:
    """Do with a project what its user does, and look at its tables each time.

    Args:
        lab: An empty project.
        data_files: Gives the files in the warehouse that belong to a table.
    """
    for name, text in _MODELS.items():
        lab.model(name, text)
    lab.land("a", [event(1), event(2)])
    lab.build()
    assert lab.ids("plain") == [1, 2] == lab.ids("latest") == lab.ids("staged")
    assert [row["twice"] for row in lab.rows("downstream")] == [2.0, 2.0]
    before = lab.snapshots()

    second = lab.build()
    assert {m["message"] for m in second.events if m["event"] == "ModelFinished"} == {"no new data"}
    assert lab.snapshots() == before

    lab.land("b", [event(2, 5, amount=7.0), event(3)])
    assert lab.run("plan").code == 0
    lab.build()
    assert lab.ids("plain") == [1, 2, 2, 3] == lab.ids("staged")
    assert {row["id"]: row["amount"] for row in lab.rows("latest")} == {1: 1.0, 2: 7.0, 3: 1.0}
    assert lab.rows("batch") == [{"kind": "paid", "n": 3}]
    shown = lab.run("show", "latest", "--table", "--limit", "2")
    assert shown.code == 0, shown.text
    assert lab.run("show", "counted").code == 0

    assert lab.run("maintain").code == 0
    assert lab.ids("plain") == [1, 2, 2, 3]

    lab.build("-f", "-s", "plain+", "latest+")
    assert lab.ids("plain") == [1, 2, 2, 3]
    assert {row["id"]: row["amount"] for row in lab.rows("latest")} == {1: 1.0, 2: 7.0, 3: 1.0}
    assert lab.run("docs", "generate").code == 0

    (lab.root / "models" / "downstream.sql").unlink()
    assert data_files("downstream")
    dropped = lab.run("drop", "downstream", "--yes")
    assert dropped.code == 0, dropped.text
    assert lab.table("downstream") is None
    assert not data_files("downstream")
    assert lab.ids("plain") == [1, 2, 2, 3]
