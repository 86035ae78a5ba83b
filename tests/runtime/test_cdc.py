"""Change data capture: the changes of a table in any order, as Debezium writes them, make that table again."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

ROW = "struct<id: int, name: string, tags: map<string, string>>"
SOURCE = sources_yaml(
    customers={
        "max_files_per_trigger": 1,
        "schema": f"before {ROW}, after {ROW}, op string, ts_ms bigint, source struct<lsn: bigint>",
    }
)
CUSTOMERS = """/*---
streams: [shop.customers]
unique_key: id
sequence_by: lsn
delete_when: op = 'd'
exclude: [op]
---*/
select
    coalesce(after.id, before.id) as id,
    after.name,
    after.tags,
    source.lsn as lsn,
    op
from {{ source('shop', 'customers') }}
where op in ('c', 'u', 'd', 'r')
"""
Row = dict[str, Any]


def changes(seed: int, count: int) -> tuple[list[Row], dict[int, Row]]:
    """A history of a table as Debezium tells it, in order, and the table at its end."""
    rng = random.Random(seed)
    table: dict[int, Row] = {}
    told: list[Row] = []
    for lsn in range(1, count + 1):
        number = rng.randrange(8)
        before = table.get(number)
        if before is not None and rng.random() < 0.4:
            del table[number]
            told.append({"before": before, "after": None, "op": "d", "ts_ms": lsn, "source": {"lsn": lsn}})
            continue
        after = {"id": number, "name": rng.choice(["Ada", "Grace", None]), "tags": {"lsn": str(lsn)}}
        table[number] = after
        told.append(
            {"before": before, "after": after, "op": "u" if before else "c", "ts_ms": lsn, "source": {"lsn": lsn}}
        )
    return told, table


@pytest.mark.nightly
def test_changes_that_come_out_of_order_make_the_table_again(lab: Lab) -> None:
    told, table = changes(3, 120)
    random.Random(4).shuffle(told)
    assert any(change["op"] == "d" for change in told[:20])
    lab.write("sources/shop.yml", SOURCE)
    lab.model("customers", CUSTOMERS)
    for number in range(4):
        lab.land(f"{number}", told[number * 30 : number * 30 + 30], "landing/customers")
    # Debezium tells a change again after a crash of its own.
    lab.land("again", [*told[:20], {"op": "t", "source": {"lsn": 999}}], "landing/customers")
    lab.build()
    found = {r["id"]: {"id": r["id"], "name": r["name"], "tags": dict(r["tags"])} for r in lab.rows("customers")}
    assert found == table
    lab.build("-f")
    found = {r["id"]: {"id": r["id"], "name": r["name"], "tags": dict(r["tags"])} for r in lab.rows("customers")}
    assert found == table
