"""Types that no table holds: what the hints say is written, and what compile does not know is found before a write."""

from __future__ import annotations

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

SPAN = "(timestamp'2024-01-02 03:04:05Z' - timestamp'2024-01-01 00:00:00Z')"
WAYS = (
    "cast(null as string) as a", "cast(array() as array<string>) as b", "cast(map() as map<string,string>) as c",
    f"cast({SPAN} as string) as d", f"cast(cast({SPAN} as interval second) as decimal(18, 6)) as e",
    "cast(cast(interval '1-2' year to month as interval month) as int) as f", "cast(make_interval(1) as string) as g",
    "cast(time'01:02:03' as string) as h", "to_json(parse_json('{\"x\": 1}')) as i",
    "cast(struct(1 as x, null as y) as struct<x:int,y:string>) as j",
)  # fmt: skip
UNKNOWN = (
    "/*---\nmaterialized: table\npartition_by: ['truncate(4, at)']\n"
    "pre_hook: create temporary function made_up() returns {0} return {1}\n---*/\nselect 1 as k, made_up() as at"
)


def test_each_way_is_written_and_what_compile_cannot_know_is_found_before_a_write(lab: Lab) -> None:
    lab.model("ways", f"/*---\nmaterialized: table\n---*/\nselect {', '.join(WAYS)}")
    lab.model("span", UNKNOWN.format("interval day", "interval '1' day"))
    lab.model("moment", UNKNOWN.format("date", "date'2024-01-01'"))
    result = lab.run("build")
    assert result.model("ways")["status"] == "success", result.text
    (row,) = lab.rows("ways")
    assert (row["e"], row["f"], row["b"], row["j"]) == (97445, 14, [], {"x": 1, "y": None})
    told = {e["node"]: (e["code"], e["message"]) for e in result.events if e["event"] == "Diagnosed"}
    assert told == {
        "span": ("column-storage", "the column 'at' is interval day, which an Iceberg table cannot hold"),
        "moment": ("partition-type", "'partition_by' cannot take truncate(4, at): 'at' is date"),
    }
    assert lab.table("span") is None
    assert lab.table("moment") is None
