"""Edits that are each allowed, one after the other: the state goes on in the order in which it began."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab import Lab

SOURCES = """
sources:
  - name: shop
    tables:
      - name: {name}
        format: json
        path: landing/t
        schema: "k string, a int, b int"
      - name: other
        format: json
        path: landing/other
        stream: false
        schema: "k string, a int"
"""
SUMS = """/*---
streams: [shop.{name}]
output_mode: update
---*/
select k, {items} from {{{{ source('shop', '{name}') }}}} group by k
"""
ROW = {"k": "z", "a": 1, "b": 100}
XY, YX = "sum(a) as x, sum(b) as y", "sum(b) as y, sum(a) as x"


def land(lab: Lab, name: str, sums: str = "", items: str = XY) -> None:
    """Write source and model, and land a row."""
    lab.write("sources/shop.yml", SOURCES.format(name=name))
    lab.model("sums", (sums or SUMS).format(name=name, items=items))
    files = len(list((lab.root / "landing/t").glob("*.json"))) if (lab.root / "landing/t").exists() else 0
    lab.land(str(files), [ROW], folder="landing/t")


def record(lab: Lab) -> Path:
    return lab.state / "sums" / "1" / "sources.json"


@pytest.mark.spark
def test_a_source_renamed_after_a_reorder_leaves_the_order_of_the_state(lab: Lab) -> None:
    land(lab, "t")
    lab.build()
    land(lab, "t", items=YX)
    lab.build()
    assert lab.rows("sums") == [{"k": "z", "x": 2, "y": 200}]
    land(lab, "t2", items=YX)
    plan = lab.run("plan").text
    assert "reads 1 new file" in plan, plan
    lab.build()
    assert lab.rows("sums") == [{"k": "z", "x": 3, "y": 300}]
    # And on: back to the first order, then nothing is edited.
    land(lab, "t2", items=XY)
    lab.build()
    land(lab, "t2", items=XY)
    lab.build()
    assert lab.rows("sums") == [{"k": "z", "x": 5, "y": 500}]


@pytest.mark.spark
def test_a_state_whose_order_nobody_knows_is_not_continued(lab: Lab) -> None:
    land(lab, "t")
    lab.build()
    land(lab, "t", items=YX)
    lab.build()
    noted = json.loads(record(lab).read_text())
    del noted["order"]
    record(lab).write_text(json.dumps(noted))
    land(lab, "t2", items=YX)
    before = lab.snapshot("sums")
    result = lab.run("build")
    assert result.code == 1
    assert "model-changed" in result.codes()
    assert "does not record the order of its aggregates" in result.text
    assert lab.snapshot("sums") == before


BOTH = """/*---
streams: [shop.{name}]
output_mode: update
---*/
select t.k, {items} from {{{{ source('shop', '{name}') }}}} t join {{{{ source('shop', 'other') }}}} o on t.k = o.k
group by t.k
"""


@pytest.mark.spark
def test_columns_of_one_name_and_literals_with_numbers_are_not_taken_for_each_other(lab: Lab) -> None:
    lab.land("1", [{"k": "z", "a": 7}], folder="landing/other")
    texts = ["count_if(k <> 'z#1') as one", "count_if(k <> 'z') as two"]
    lab.model("texts", SUMS.format(name="t", items=", ".join(texts)))
    land(lab, "t", BOTH, "sum(t.a) as x, sum(o.a) as y")
    lab.build()
    lab.model("texts", SUMS.format(name="t", items=", ".join(reversed(texts))))
    land(lab, "t", BOTH, "sum(o.a) as y, sum(t.a) as x")
    lab.build()
    assert lab.rows("texts") == [{"k": "z", "one": 2, "two": 0}]
    assert lab.rows("sums") == [{"k": "z", "x": 2, "y": 14}]


@pytest.mark.spark
def test_a_table_to_which_nothing_was_written_takes_another_order(lab: Lab) -> None:
    fails = SUMS.replace("---*/", "expectations: [{{name: none, check: k is null, on_fail: fail}}]\n---*/")
    land(lab, "t", fails)
    assert lab.run("build").code == 1
    land(lab, "t", items=f"max(b) as m, {YX}")
    lab.build()
    assert lab.rows("sums") == [{"k": "z", "m": 100, "y": 200, "x": 2}]
