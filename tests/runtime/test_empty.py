"""`--empty`: tables with their columns and without rows, from which the next build reads everything."""

from __future__ import annotations

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

STREAM = "/*---\nstreams: [shop.events]\n---*/\nselect id, at, kind, amount from {{ source('shop', 'events') }}"
HOURS = (
    "/*---\nstreams:\n  paid:\n    watermark: at delay 10 minutes\nwindows:\n  hour: tumbling(at, 1 hour)\n"
    "columns: {n: {tests: [not_null]}}\n---*/\n"
    "select hour.start as hour, count(*) as n from {{ ref('paid') }} group by hour"
)
KINDS = (
    "/*---\npublish: on_tests_pass\ncolumns: {kind: {tests: [not_null]}}\n---*/\n"
    "select kind, max(id) as id from {{ ref('paid') }} group by kind"
)
BROKEN = "select id, {} as x from {{{{ ref('kinds') }}}}"
SHOWN = "/*---\nmaterialized: view\n---*/\nselect kind from {{ ref('kinds') }}"


def test_tables_are_made_without_rows_and_the_next_build_reads_everything(lab: Lab) -> None:
    for name, text in {"paid": STREAM, "hours": HOURS, "kinds": KINDS, "shown": SHOWN}.items():
        lab.model(name, text)
    lab.model("late", BROKEN.format("cast(raise_error('read') as boolean)"))
    lab.land("a", [event(1, 1), event(2, "11:10")])
    empty = lab.run("build", "--empty")
    assert empty.code == 0, empty.text
    # A row of a query would have ended the build; no data test has passed over nothing.
    assert not [e for e in empty.events if e["event"] == "TestFinished"]
    assert [lab.rows(name) for name in ("paid", "hours", "kinds", "late")] == [[], [], [], []]
    assert set(lab.snapshots().values()) == {None}
    assert empty.model("paid")["note"] == "made without rows"

    # Again, after an edit: what has no rows is made again.
    lab.model("late", BROKEN.format("cast(id as string)"))
    again = lab.run("build", "--empty")
    assert again.code == 0, again.text
    assert lab.table("late").columns[1][1] == "string"

    full = lab.build()
    assert full.model("paid")["rows_out"] == 2, full.text
    assert lab.ids("paid") == [1, 2]
    assert [row["id"] for row in lab.rows("kinds")] == [2]
    assert lab.rows("late") == [{"id": 2, "x": "2"}]
    before = lab.snapshots()

    # What has rows stays as it is, unless its model was edited.
    lab.land("b", [event(3, "11:20")])
    kept = lab.run("build", "--empty")
    assert kept.code == 0, kept.text
    assert {kept.model(name)["status"] for name in ("paid", "hours", "kinds", "late")} == {"unchanged"}
    lab.model("late", BROKEN.format("id + 1"))
    refused = lab.run("build", "--empty")
    assert (refused.code, refused.codes()) == (1, ["empty-existing"]), refused.text
    assert lab.snapshots() == before
    lab.build()
    assert lab.ids("paid") == [1, 2, 3]
