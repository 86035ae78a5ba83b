"""`engine erase`: rows leave the table, what is beside it and the disk; streams of it continue."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet
import pytest

from engine.lake.table_facts import TableFacts
from tests.lab import EVENTS, Lab, Result, event

pytestmark = pytest.mark.spark

STREAM = """/*---
streams: [shop.events]
---*/
select id, at, kind, amount from {{ source('shop', 'events') }}
"""
READER = "/*---\nstreams: [paid]\n---*/\nselect id as number, kind from {{ ref('paid') }}\n"
JANE = "kind = 'jane'"


def shop(lab: Lab, text: str = STREAM) -> None:
    lab.write("sources/shop.yml", EVENTS)
    lab.model("paid", text)


def erase(lab: Lab, where: str = JANE, *more: str, model: str = "paid", code: int = 0) -> Result:
    result = lab.run("erase", model, "--where", where, *(more or ("--yes",)))
    assert result.code == code, result.text
    return result


def erased(result: Result) -> dict[str, dict[str, Any]]:
    return {e["relation"].rpartition(".")[2]: e for e in result.events if e["event"] == "RowsErased"}


def on_disk(lab: Lab, *tables: str, value: str = "jane") -> list[str]:
    """The Parquet files of tables and of state that hold a value in any column, as a string or inside one."""
    folders = [lab.lake_path / "warehouse" / lab.schema / table for table in tables]
    found = []
    for folder in [*folders, lab.state]:
        files = [path for path in sorted(folder.rglob("*.parquet")) if path.is_file()]
        found += [path.name for path in files if value in str(pyarrow.parquet.ParquetFile(path).read().to_pylist())]
    return found


def facts(lab: Lab, name: str) -> TableFacts:
    table = lab.table(name)
    assert table is not None
    return table


def test_rows_leave_the_table_and_the_disk_and_a_stream_of_it_continues(lab: Lab) -> None:
    shop(lab)
    lab.model("copy", READER)
    lab.land("a", [event(1, kind="jane"), event(2, kind="joe")])
    lab.build()
    lab.land("b", [event(3, kind="jane"), event(4, kind="ann")])
    lab.build()
    assert on_disk(lab, "paid")
    result = erase(lab)
    assert erased(result)["paid"]["rows"] == 2
    assert lab.ids("paid") == [2, 4]
    assert on_disk(lab, "paid") == []
    assert len(facts(lab, "paid").history) == 1
    lab.land("c", [event(5, kind="joe")])
    lab.build()
    assert lab.ids("paid") == [2, 4, 5]
    assert sorted(row["number"] for row in lab.rows("copy")) == [1, 2, 3, 4, 5]
    assert lab.build().model("copy")["status"] == "unchanged"
