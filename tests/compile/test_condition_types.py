"""Types of conditions: `delete_when` and the checks of expectations are boolean, and name what exists."""

from __future__ import annotations

import pytest

from tests.project.small_projects import FROM, ORDERS, clean, findings, model, only, orders_with

SOURCE = orders_with("id string, amount double, ok boolean, tags array<string>, item struct<name string, sold boolean>")


def checks(check: str, more: str = "", sql: str = ORDERS) -> dict[str, str | bytes]:
    header = f"streams: [shop.orders]\nexpectations:\n  - name: good\n    check: {check}\n{more}"
    return {**SOURCE, **model(header, sql)}


BOOLEAN = ["ok", "item.sold", "not ok", "amount > 0", "size(tags) > 0", "id in ('a')", "ok is null", "null", "cast(id as boolean)",
           "if(ok, true, false)", "coalesce(ok, false)", "contains(id, 'a')", "exists(tags, t -> t = 'a')"]  # fmt: skip


@pytest.mark.parametrize("check", BOOLEAN)
def test_conditions_that_are_boolean(check, tmp_path):
    assert clean(tmp_path, checks(f'"{check}"'))


def test_the_type_of_an_alias_of_the_query_decides(tmp_path):
    found = only(findings(tmp_path, checks("cheap", sql=f"select id, amount * 2 as cheap {FROM}")))
    assert found.message == "the check of 'good' (cheap) is double, not boolean"
    assert clean(tmp_path / "b", checks("cheap", sql=f"select id, amount < 2 as cheap {FROM}"))


def test_a_function_that_a_hook_made_may_be_used_in_a_check(tmp_path):
    hook = "pre_hook: create temporary function positive_number as 'a.B'"
    assert clean(tmp_path, checks("positive_number(amount)", hook))
