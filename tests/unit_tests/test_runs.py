"""Unit tests of streaming models on Spark: one project under project/, one run."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from tests.lab import Lab

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).parent / "project"
OPEN = "is still open: the watermark is 2013-01-01 09:35:00, and the window closes when it passes 2013-01-01 11:00:00"
MARKED = """\
      | window_start        | kind | n   |
      |---------------------+------+-----|
    - | 2013-01-01 10:00:00 | a    | *2* |
    + | 2013-01-01 10:00:00 | a    | *1* |
      | 2013-01-01 10:00:00 | b    | 1   |"""


MOVES = "the watermark advances only after a micro-batch: a row is compared with the rows of earlier steps"
BEGAN = "its micro-batch began with the watermark 2013-01-01 12:10:00, and the earliest event time was 2013-01-01 "
KEPT = "still in state after the step 'flush': nothing in the query limits how long rows wait for others"
GROUPS = "for a window Spark counts late groups of each micro-batch, not rows"
# Tests of a number of late rows that is not what they expect: the number, and the causes that are told.
LATE = {
    "not_late_at_once": (0, f"there was no watermark when the step began; {MOVES}"),
    "not_behind": (0, f"no row arrived behind the watermark: {BEGAN}12:30:00; {MOVES}"),
    "still_in_its_window": (
        0,
        f"{BEGAN}12:05:00, but its window was still open: a row is late only after its window has closed",
    ),
    "one_group": (1, f"{BEGAN}10:05:00", GROUPS),
    "late_after_all": (1, f"{BEGAN}10:05:00", GROUPS),
}


def copied(lab: Lab) -> None:
    shutil.copytree(PROJECT, lab.root, dirs_exist_ok=True)
    lab.write("project.yml", (lab.root / "project.yml").read_text() + "vars: {least: 0}\n")


def test_each_unit_test_ends_as_it_should_and_touches_no_table(lab: Lab) -> None:
    copied(lab)
    result = lab.run("test", "-s", "test_type:unit")
    assert result.code == 1
    ended = {e["node"].removeprefix("unit_test."): e for e in result.events if e["event"] == "TestFinished"}
    told: dict[str, list[dict[str, object]]] = defaultdict(list)
    for event in result.events:
        if event["event"] == "Diagnosed" and event["level"] == "error":
            told[str(event["node"])].append(event)

    failing = {"hourly.still_open", "hourly.wrong_cell", "hourly.was_late", "paid.no_partner", "totals.spark_refuses"}
    failing |= {
        "paid.without_a_time",
        "kept.same_key_twice",
        "kept.no_new_version",
        "matched.waits_for_ever",
        *(f"hourly.{name}" for name in LATE),
    }
    wrong = {name: told[name] for name, e in ended.items() if e["status"] != "pass"}
    assert set(wrong) == failing, json.dumps(wrong, indent=1)
    assert len(ended) == len(failing) + 12

    (found,) = told["hourly.still_open"]
    assert (found["code"], found["file"], found["line"]) == ("unit-test-failed", "tests/failing.yml", 5)
    assert OPEN in str(found["hint"])
    state, rows = told["hourly.wrong_cell"]
    assert state["message"] == "state_rows is 0 at the end, expected 3"
    assert rows["message"] == "1 row differs of 'hourly' at the end"
    assert MARKED in str(rows["hint"])
    assert "Likely cause" not in str(rows["hint"])
    assert "Likely cause: 1 row was dropped as late: it arrived behind the watermark." in str(
        told["hourly.was_late"][0]["hint"]
    )
    for name, (number, *why) in LATE.items():
        (found,) = told[f"hourly.{name}"]
        assert str(found["message"]).startswith(f"late is {number} after step ")
        assert found["hint"] == "\n    ".join(f"Likely cause: {text}." for text in why), name
    assert "Likely cause: a row is in state and there is no watermark yet" in str(told["paid.no_partner"][0]["hint"])
    (found,) = told["matched.waits_for_ever"]
    assert found["hint"].endswith(f"Likely cause: a row is {KEPT}.")  # type: ignore[attr-defined]
    # A column that a given row lacks is NULL, and a bound on the time would lose the row silently.
    assert "a record of shop.payments cannot be read: 'paid_at' is NULL" in ended["paid.without_a_time"]["message"]
    assert ended["kept.same_key_twice"]["message"] == """1 key has more than one row in step 1: {"kind":"a"}"""
    assert ended["kept.no_new_version"]["message"] == "1 row differs of 'kept' at the end"
    assert ended["totals.spark_refuses"]["status"] == "error"
    assert "zero" in ended["totals.spark_refuses"]["message"]

    assert not lab.state.exists()
    stored = json.loads((lab.root / "target" / "run_results.json").read_text())
    known = {r["unique_id"]: (r["status"], r["failures"]) for r in stored["results"]}
    assert known["unit_test.lab.hourly.wrong_cell"] == ("fail", 2)
    assert known["unit_test.lab.last_of.newest_wins"] == ("pass", 0)


def test_a_failed_unit_test_keeps_its_model_from_being_built(lab: Lab) -> None:
    lab.model("one", "select 1 as n")
    lab.model("two", "select n + 1 as n from {{ ref('one') }}")
    lab.write("tests/units.yml", "unit_tests: [{name: sum, model: two, given: {one: [{n: 1}]}, expect: [{n: 3}]}]\n")
    result = lab.run("build")
    assert result.code == 1
    statuses = [(e["node"], e["status"]) for e in result.events if e["event"] in {"ModelFinished", "TestFinished"}]
    assert sorted(statuses) == [("model.one", "success"), ("model.two", "skipped"), ("unit_test.two.sum", "fail")]
    assert result.model("two")["message"] == "because of two.sum"
    lab.write("tests/units.yml", "unit_tests: [{name: sum, model: two, given: {one: [{n: 1}]}, expect: [{n: 2}]}]\n")
    assert [e["node"] for e in lab.build("-s", "two").events if e["event"] == "TestFinished"] == ["unit_test.two.sum"]
    assert lab.rows("two") == [{"n": 2}]
