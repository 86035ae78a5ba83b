"""Data tests on Spark: kinds for streams, bounds of failures, kept failures, a test of one's own, a file of SQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.compile import DataTest
from engine.node_ids import data_test_id, rest_of, shown_name
from engine.runtime import run_nodes
from engine.runtime.data_tests.run_data_test import DataTestVerdict, run_test
from tests.lab import Lab

pytestmark = pytest.mark.spark

HOURS = """/*---
columns:
  hour:
    tests:
      - recency: {within: 1 day, name: recent}
      - recency: {within: 100000 days, name: old_enough}
      - no_gaps: {every: 1 hour, by: [place], name: gap_at_b}
      - no_gaps: {every: 2 hours, by: [place], name: no_gap_of_two}
  total:
    tests:
      - monotone: {order_by: hour, by: [place], name: sinks_at_a}
      - monotone: {order_by: hour, by: [place], where: place = 'b', name: rises_at_b}
      - expression: {expression: '> 0', name: positive, warn_if: '> 1', error_if: '> 5', store_failures: true}
      - even: {name: even}
      - not_null: {limit: 1, severity: warn, name: there}
      - not_null: {where: place = 'a', name: there_at_a}
      - expression: {expression: '/ (total - 3) > 0', where: place = 'a', name: divides}
tests:
  - row_count_matches: {to: other, name: as_many}
  - row_count_matches: {to: other, within: 2, name: about_as_many}
  - expression: {expression: total < 100 or total is null, name: small}
---*/
select * from values
  (timestamp'2024-01-01 10:00', 'a', 3), (timestamp'2024-01-01 11:00', 'a', 2),
  (timestamp'2024-01-01 10:00', 'b', 4), (timestamp'2024-01-01 12:00', 'b', 6),
  (timestamp'2024-01-01 13:00', 'b', null), (timestamp'2024-01-01 14:00', 'b', null)
  as t(hour, place, total)
"""
EVEN = "{% test even(model, column_name) %}\nselect * from {{ model }} where {{ column_name }} % 2 = 1\n{% endtest %}\n"
# Status and failing rows, counted by hand.
EXPECTED = {
    "recent": ("fail", 1),
    "old_enough": ("pass", 0),
    "gap_at_b": ("fail", 1),
    "no_gap_of_two": ("pass", 0),
    "sinks_at_a": ("fail", 1),
    "rises_at_b": ("pass", 0),
    "positive": ("warn", 2),
    "even": ("fail", 1),
    "there": ("warn", 1),
    "there_at_a": ("pass", 0),
    "divides": ("error", 0),
    "as_many": ("fail", 1),
    "about_as_many": ("pass", 0),
    "small": ("pass", 0),
    "no_b": ("fail", 4),
}


def test_every_kind_counts_its_failing_rows(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    own: set[str] = set()

    def noted(session: Any, test: DataTest, query: str) -> DataTestVerdict:
        own.add(test.name)
        return run_test(session, test, query)

    monkeypatch.setattr(run_nodes, "run_test", noted)
    lab.model("hours", HOURS)
    lab.model("other", "select 1 as n union all select 2 union all select 3 union all select 4")
    lab.write("macros/even.sql", EVEN)
    lab.write("tests/no_b.sql", "-- Rows of b.\nselect * from {{ ref('hours') }} where place = 'b'\n")
    result = lab.run("build")
    assert result.code == 1
    ended = {shown_name(e["node"]): e for e in result.events if e["event"] == "TestFinished"}
    assert {name: (e["status"], e["failures"]) for name, e in ended.items()} == EXPECTED
    # One look tells that "small" passes; of "there" the rows are counted; a look that fails tells nothing.
    assert set(EXPECTED) - own == {"small"}
    assert ended["positive"]["message"].endswith(f"stored in lake.{lab.schema}_test_failures.positive")
    names, rows = lab._lake().rows(f"{lab.schema}_test_failures", "positive", None) or ((), ())
    assert sorted(row[list(names).index("hour")].hour for row in rows) == [13, 14]
    stored = json.loads((lab.root / "target" / "manifest.json").read_text())["nodes"][
        f"test.lab.{rest_of(data_test_id('positive', 'model.hours'))}"
    ]["config"]
    assert (stored["warn_if"], stored["error_if"], stored["store_failures"]) == ("> 1", "> 5", True)
