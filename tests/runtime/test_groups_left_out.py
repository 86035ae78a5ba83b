"""Filters above an aggregate in update mode: a group that a query leaves out by now is deleted from the table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab import Lab
from tests.projects import sources_yaml

SOURCES = sources_yaml(
    t="k string, v int, at timestamp", levels={"stream": False, "schema": "level string, low int, high int"}
)
T, LEVELS = "{{ source('shop', 't') }}", "{{ source('shop', 'levels') }}"
COUNTS = f"select k, count(*) as c, sum(v) as s from {T} group by k"


def model(sql: str, *lines: str) -> str:
    said = "\n".join(("streams: [shop.t]", "output_mode: update", *lines))
    return f"/*---\n{said}\n---*/\n{sql}\n"


KEYED, LEVELLED = "unique_key: [k]", "unique_key: [k, level]"
# Each leaves a group out that has three rows or more.
FEW = {
    "having": model(f"select k, count(*) as c, sum(v) as s from {T} group by k having count(*) < 3"),
    "having_hidden": model(f"select k, sum(v) as s, count(*) as c from {T} group by k having max(v) < 3 and count(*) < 3"),
    "subquery": model(f"select s, c, k from ({COUNTS}) where c < 3 and k <> 'never'", KEYED),
    "cte": model(f"with g as ({COUNTS}), few as (select * from g where c < 3) select k, c, s from few", KEYED),
    "piped": model(f"from {T} |> aggregate count(*) as c, sum(v) as s group by k |> where c < 3 |> select c, s, k", KEYED),
    "inlined": model("select k, c, s from {{ ref('counted') }} where c < 3", KEYED),
    "twice": model(f"select k, c, s from (select * from ({COUNTS}) where c < 3) where s < 4", KEYED),
    "joined": model(f"select k, c, s from ({COUNTS}) g join {LEVELS} l on c >= low and c < high and level = 'few'", KEYED),
    "cross": model(f"select k, c, s from ({COUNTS}) g, {LEVELS} l where level = 'few' and c < high", KEYED),
    "semi": model(f"select k, c, s from ({COUNTS}) g left semi join {LEVELS} l on c < high and high < 10", KEYED),
    "anti": model(f"select k, c, s from ({COUNTS}) g left anti join {LEVELS} l on c >= low and low > 0", KEYED),
    "inside": model(f"select k, c, s from ({COUNTS}) where c < (select max(low) from {LEVELS} where low < 10)", KEYED),
    "listed": model(f"select k, c, s from ({COUNTS}) where c not in (select low from {LEVELS} where low > 0)", KEYED),
    "computed": model(f"select k, c, s, 6 div (3 - c) as part from ({COUNTS}) where c < 3", KEYED),
}  # fmt: skip
# A group may have several rows, and moves from one to another.
SEVERAL = {
    "levelled": model(f"select k, level, c from ({COUNTS}) g join {LEVELS} l on c >= low and c < high", LEVELLED),
    "outer_levelled": model(f"select k, level, c from ({COUNTS}) g left join {LEVELS} l on c >= low and c < high", LEVELLED),
    "exploded": model(f"select k, level, c from ({COUNTS}) lateral view explode(array(if(c < 3, 'few', 'many'))) as level", LEVELLED),
}  # fmt: skip
ALL = {**FEW, **SEVERAL}


def land(lab: Lab, number: int, *keys: str) -> None:
    rows = [{"k": key, "v": 1, "at": f"2024-05-01T10:{number:02}:00Z"} for key in keys]
    lab.land(str(number), rows, folder="landing/t")


def rows(lab: Lab, name: str) -> dict[Any, Any]:
    found = lab.rows(name)
    made = {(row["k"], row["level"]) if "level" in row else row["k"]: row["c"] for row in found}
    assert len(made) == len(found)
    return made


def prepare(lab: Lab, names: dict[str, str]) -> None:
    lab.write("sources/shop.yml", SOURCES)
    levels = [("few", 0, 3), ("many", 3, 100)]
    lab.land("1", [dict(zip(("level", "low", "high"), one, strict=True)) for one in levels], folder="landing/levels")
    counted = f"/*---\nmaterialized: ephemeral\nstreams: [shop.t]\n---*/\n{COUNTS}\n"
    if "inlined" in names:
        lab.model("counted", counted)
    for name, text in names.items():
        lab.model(name, text.replace("[shop.t]", "[counted]") if name == "inlined" else text)


@pytest.mark.spark
def test_a_group_that_is_left_out_by_now_is_deleted(lab: Lab) -> None:
    prepare(lab, ALL)
    land(lab, 1, "a", "b", "b", "c", "c", "c")
    lab.build()
    few = {"a": 1, "b": 2}
    several = {("a", "few"): 1, ("b", "few"): 2, ("c", "many"): 3}
    assert {name: rows(lab, name) for name in ALL} == {**dict.fromkeys(FEW, few), **dict.fromkeys(SEVERAL, several)}
    land(lab, 2, "b", "c", "d")
    lab.build()
    few = {"a": 1, "d": 1}
    several = {("a", "few"): 1, ("b", "many"): 3, ("c", "many"): 4, ("d", "few"): 1}
    expected: dict[str, dict[Any, int]] = {**dict.fromkeys(FEW, few), **dict.fromkeys(SEVERAL, several)}
    # Three rows are left out, four are not.
    expected["listed"] = {"a": 1, "c": 4, "d": 1}
    assert {name: rows(lab, name) for name in ALL} == expected
