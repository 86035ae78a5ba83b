"""What a batch table or view was computed from, against what it would be computed from now."""

from __future__ import annotations

from typing import Any

import pytest

from engine.plan.refresh.batch_inputs import same_columns, same_tables

TABLE = {"table": "u1", "snapshot": 5, "columns": "c1"}
VIEW = {"view": "f1", "model.a": TABLE}
CASES: list[tuple[str, Any, Any, bool, bool]] = [
    # what differs, before, now, the same tables, the same columns
    ("nothing", TABLE, TABLE, True, True),
    ("rows", TABLE, {**TABLE, "snapshot": 6}, True, True),
    ("the table", TABLE, {**TABLE, "table": "u2"}, False, False),
    ("columns", TABLE, {**TABLE, "columns": "c2"}, True, False),
    ("a view's text", VIEW, {**VIEW, "view": "f2"}, True, False),
    ("rows behind a view", VIEW, {**VIEW, "model.a": {**TABLE, "snapshot": 6}}, True, True),
    ("columns behind a view", VIEW, {**VIEW, "model.a": {**TABLE, "columns": "c2"}}, True, False),
    ("what a view reads", VIEW, {"view": "f1", "model.b": TABLE}, True, False),
    ("a table for a view", TABLE, VIEW, False, False),
    ("what is not known any more", TABLE, None, False, False),
    ("what was not known", None, TABLE, False, False),
    ("what is not known", None, None, True, True),
    ("a listing", "h1", "h2", True, False),
]


@pytest.mark.parametrize(
    ("before", "now", "tables", "columns"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_a_view_is_the_same_over_the_same_tables_and_columns(
    before: Any, now: Any, tables: bool, columns: bool
) -> None:
    assert same_tables({"model.x": before}, {"model.x": now}) is tables
    assert same_columns({"model.x": before}, {"model.x": now}) is columns


def test_another_input_is_another_table() -> None:
    assert not same_tables({"model.x": TABLE}, {"model.y": TABLE})
    assert not same_columns({"model.x": TABLE}, {"model.y": TABLE})
    assert not same_columns({"model.x": TABLE}, {"model.x": TABLE, "model.y": TABLE})
