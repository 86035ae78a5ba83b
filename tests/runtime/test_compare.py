"""`engine compare`: what a full refresh, or a build that waits, changes of a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

LAST = """/*---
streams: [shop.events]
unique_key: id
sequence_by: at
---*/
select id, at, {0} from {{{{ source('shop', 'events') }}}}{1}
"""
PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, {0} from {{{{ source('shop', 'events') }}}}{1}\n"


def compared(lab: Lab, model: str) -> dict[str, Any]:
    result = lab.run("compare", model, "--output", "json")
    assert result.code == 0, result.text
    found: dict[str, Any] = json.loads(result.out.splitlines()[-1])
    return found


def shop(lab: Lab) -> None:
    lab.land("a", [event(1, kind="a", amount=1.5), event(2, kind="b", amount=2.0), event(3, kind="a", amount=4.0)])


def test_by_key(lab: Lab) -> None:
    shop(lab)
    lab.model("last", LAST.format("kind, amount, 1 as gone", " where id < 3"))
    lab.build()
    lab.model(
        "last", LAST.format("upper(kind) as kind, cast(amount as int) as amount, id * 2 as twice", " where id > 1")
    )
    lab.build("-f")
    found = compared(lab, "last")
    assert found["what"].startswith("the table, with the version that was replaced at 20")
    assert (found["key"], found["rows"], found["only"], found["differing"], found["same"]) == (
        ["id"], [2, 2], [1, 1], 1, False
    )  # fmt: skip
    assert {column["name"]: (column["before"], column["now"], column["differing"], column["sums"]) for column in found["columns"]} == {
        "id": ("int", "int", None, [3, 5]),
        "at": ("timestamp", "timestamp", 0, None),
        "kind": ("string", "string", 1, None),
        # Of another type: neither compared nor added up.
        "amount": ("double", "int", None, None),
        "twice": (None, "int", None, None),
        "gone": ("int", None, None, None),
    }  # fmt: skip
    text = lab.run("compare", "last").text
    assert "other values of the same key" in text
    assert "double, now int" in text


@pytest.mark.nightly
def test_by_whole_rows_with_repeated_ones_and_nulls(lab: Lab) -> None:
    shop(lab)
    lab.model("paid", PAID.format("nullif(kind, 'b') as kind, map('k', amount) as more", ""))
    lab.land("b", [event(1, kind="a"), event(2, kind="b")])
    lab.build()
    lab.model("paid", PAID.format("nullif(kind, 'b') as kind, map('k', id) as more", " where id <> 3"))
    lab.build("-f")
    found = compared(lab, "paid")
    assert (found["key"], found["rows"], found["only"], found["differing"]) == ([], [5, 4], [1, 0], 0)
    lab.model("paid", PAID.format("nullif(kind, 'b') as kind, map('k', id) as more", " where id <> 3 and true"))
    lab.build("-f")
    assert compared(lab, "paid")["same"]


def test_rows_that_wait_with_those_that_readers_see(lab: Lab) -> None:
    shop(lab)
    settings = "publish: on_tests_pass\ncolumns: {id: {tests: [{expression: {expression: '< 4'}}]}}\nstreams:"
    lab.model("paid", PAID.format("amount", "").replace("streams:", settings))
    lab.build()
    nothing = lab.run("compare", "paid")
    assert (nothing.code, nothing.codes()) == (2, ["usage"])
    lab.land("b", [event(4, amount=7.0)])
    assert lab.run("build").code == 1
    found = compared(lab, "paid")
    assert found["what"] == "the rows that are staged, with those that readers see"
    assert (found["rows"], found["only"]) == ([3, 4], [0, 1])
    assert {column["name"]: column["sums"] for column in found["columns"]} == {"id": [6, 10], "amount": [7.5, 14.5]}
