"""`output_mode: complete`: the table is rewritten in each micro-batch, at once."""

from __future__ import annotations

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

RANKING = """/*---
streams: {shop.events: {max_files_per_trigger: 1}}
output_mode: complete
partition_by: kind
expectations: [{name: known, check: kind is not null, on_fail: quarantine}]
---*/
select kind, count(*) as n, sum(amount) as amount
from {{ source('shop', 'events') }}
group by kind
having sum(amount) > 0
order by n desc, kind
limit 3
"""


def ranking(lab: Lab) -> dict[str, tuple[int, float]]:
    return {r["kind"]: (r["n"], r["amount"]) for r in lab.rows("ranking")}


def test_the_table_is_what_the_query_says_of_all_rows(lab: Lab) -> None:
    lab.model("ranking", RANKING)
    lab.land("a", [event(1, kind="a"), event(2, kind="a"), event(3, kind="b"), event(4, kind="c"), event(5, kind="d")])
    lab.land("b", [event(6, kind="d"), event(7, kind="d"), event(8, kind="e"), event(9, kind="e")])
    result = lab.build().model("ranking")
    assert ranking(lab) == {"d": (3, 3.0), "a": (2, 2.0), "e": (2, 2.0)}
    assert result["rows_out"] == 6
    table = lab.table("ranking")
    assert table is not None
    assert [(s.operation, s.marker("batch-id")) for s in table.history] == [("overwrite", "1"), ("overwrite", "0")]
    assert table.properties["history.expire.min-snapshots-to-keep"] == "3"
    before = lab.snapshot("ranking")
    assert lab.build().model("ranking")["status"] == "unchanged"
    assert lab.snapshot("ranking") == before

    # A ranking that becomes empty empties its table, once.
    lab.land("c", [event(10, kind=kind, amount=-10.0) for kind in "abcde"])
    lab.land("d", [event(11, kind="a", amount=-10.0)])
    lab.build()
    assert ranking(lab) == {}
    table = lab.table("ranking")
    assert table is not None
    assert [s.marker("batch-id") for s in table.history] == ["2", "1", "0"]

    # Rows that must not be are left out of the table in each batch, and counted.
    lab.land("e", [event(12, kind=None, amount=50.0), event(13, kind="a", amount=100.0)])
    lab.build()
    assert ranking(lab) == {"a": (5, 82.0)}
    lab.build("-f")
    assert ranking(lab) == {"a": (5, 82.0)}
