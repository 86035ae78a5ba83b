"""Keys and tests on columns whose names need quotes, from the header to the table."""

from __future__ import annotations

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark
HEADER = """\
streams: [shop.events]
unique_key: "order id"
sequence_by: ["made at"]
{more}
columns:
  order id: {{tests: [not_null, {unique}{{accepted_values: {{values: [1, 2, 3], quote: false}}}}]}}
  made-by: {{tests: [not_null]}}
"""
SQL = "select id as `order id`, at as `made at`, kind as `made-by`, amount from {{ source('shop', 'events') }}"


MODELS = {"merged": "", "deleted": "delete_when: amount < 0", "old": "history: true"}


@pytest.mark.nightly
def test_a_merge_and_its_tests(lab: Lab) -> None:
    for name, more in MODELS.items():
        lab.model(name, f"/*---\n{HEADER.format(more=more, unique='' if name == 'old' else 'unique, ')}---*/\n{SQL}")
    lab.land("a", [event(1, "11:00", "a"), event(2, "12:00", "a")])
    lab.build()
    lab.land("b", [event(1, "20:00", "b", 5.0)])
    lab.build()
    for name in MODELS:
        latest = {row["order id"]: row["made-by"] for row in lab.rows(name) if row.get("is_current", True)}
        assert latest == {1: "b", 2: "a"}, name
