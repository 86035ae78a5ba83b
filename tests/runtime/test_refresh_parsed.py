"""Batch tables whose queries compile reads with corrections of the parser, refreshed after their input changed."""

from __future__ import annotations

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"
WINDOWS = "select window.start as begins, count(*) as n from {{ ref('paid') }} group by window(at, '30 minutes')\n"
FIRST = "select hour(at) as h, first_value(id, false) as f, count(*) as n from {{ ref('paid') }} group by hour(at)\n"
LARGER = "select id, id >>> 1 as half, 'it''s' as a from {{ ref('paid') }} where id !> 2 -- all\\\n and id = 0\n"


def test_what_compile_reads_is_refreshed(lab: Lab) -> None:
    for name, text in (("paid", PAID), ("windows", WINDOWS), ("firsts", FIRST), ("larger", LARGER)):
        lab.model(name, text)
    lab.land("a", [event(1, "10:05"), event(2, "10:10")])
    lab.build()
    lab.land("b", [event(3, "10:45"), event(0, "10:50")])
    result = lab.build()
    assert [result.model(name)["status"] for name in ("windows", "firsts", "larger")] == ["success"] * 3
    assert sorted(row["n"] for row in lab.rows("windows")) == [2, 2]
    assert [row["n"] for row in lab.rows("firsts")] == [4]
    # The condition behind the backslash is a part of the comment, and the string has one quote.
    assert sorted((row["id"], row["half"], row["a"]) for row in lab.rows("larger")) == [
        (0, 0, "it's"), (1, 0, "it's"), (2, 1, "it's"),
    ]  # fmt: skip
