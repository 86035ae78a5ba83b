"""Columns whose names have dots: a path is never taken apart at them."""

from __future__ import annotations

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

HEADER = "streams: [shop.events]\non_schema_change: append_columns"
FROM = "from {{ source('shop', 'events') }}"


def header(text: str, query: str) -> str:
    return f"/*---\n{text}\n---*/\n{query}\n"


def test_a_column_with_a_dot_is_appended_and_widened(lab: Lab) -> None:
    lab.model("paid", header(HEADER, f"select id, struct(id as `a.b`) as s {FROM}"))
    lab.land("a", [event(1, 1)])
    lab.build()
    lab.model("paid", header(HEADER, f"select id, struct(id as `a.b`, 2 as `c.d`) as s, 7 as `x.y` {FROM}"))
    lab.land("b", [event(2, 2)])
    lab.build()
    lab.model("paid", header(HEADER, f"select id, struct(id as `a.b`, 2 as `c.d`) as s, 8L as `x.y` {FROM}"))
    lab.land("c", [event(3, 3)])
    lab.build()
    rows = sorted(lab.rows("paid"), key=lambda row: row["id"])
    assert [row["x.y"] for row in rows] == [None, 7, 8]
    assert [row["s"]["c.d"] for row in rows] == [None, 2, 2]


def test_a_column_with_a_dot_is_ignored(lab: Lab) -> None:
    ignoring = HEADER.replace("append_columns", "ignore")
    lab.model("paid", header(ignoring, f"select id {FROM}"))
    lab.land("a", [event(1, 1)])
    lab.build()
    lab.model("paid", header(ignoring, f"select id, 7 as `x.y` {FROM}"))
    lab.land("b", [event(2, 2)])
    lab.build()
    assert sorted(row["id"] for row in lab.rows("paid")) == [1, 2]
    assert set(lab.rows("paid")[0]) == {"id"}


# Each setting that names columns, with one whose name has a dot.
SETTINGS = {
    "comments": "streams: [shop.events]\npersist_docs: {columns: true}\ncolumns: {x.y: the key}\n",
    "contract": "streams: [shop.events]\ncontract: true\ncolumns: {id: {type: int}, x.y: {type: int}, o.k: {type: int}}\n",
    "checks": "streams: [shop.events]\nexpectations: [{name: some, check: '`x.y` > 0', on_fail: quarantine}]\n",
}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_settings_name_columns_with_dots(lab: Lab, text: str) -> None:
    lab.model("paid", header(text, f"select id, cast(id as int) as `x.y`, cast(id + 1 as int) as `o.k` {FROM}"))
    lab.land("a", [event(1, 1)])
    lab.build()
    lab.land("b", [event(2, 2)])
    lab.build()
    assert lab.ids("paid") == [1, 2]
