"""Data tests as the compiler makes them: options, kinds, user-defined ones, and files of SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile.nodes.manifest import Severity
from engine.compile.selection.select_nodes import select
from tests.project.small_projects import ORDERS, clean, findings, line, only

COUNTRY = "select id from {{ ref('orders') }} where amount < {{ var('least', 0) }}\n"
GENERIC = (
    "{% test even(model, column_name) %}\nselect * from {{ model }} where {{ column_name }} % 2 = 1\n{% endtest %}\n"
)


def orders(header: str) -> dict[str, str | bytes]:
    return {"models/orders.sql": f"/*---\n{header}\n---*/\n{ORDERS}"}


def test_options_stand_beside_arguments_or_under_config(tmp_path: Path) -> None:
    header = """\
tags: [daily]
columns:
  id:
    tests:
      - unique: {where: amount > 0, warn_if: '> 1', error_if: '>100', limit: 200, tags: [keys]}
      - not_null: {config: {severity: warn, store_failures: true}, name: id_is_there}
      - not_null: {enabled: false}"""
    unique, there = clean(tmp_path, orders(header)).tests[::-1]
    assert "from (select * from `lake`.`main`.`orders` where amount > 0\n)" in unique.sql
    assert (unique.warn_if, unique.error_if, unique.limit, unique.tags) == ("> 1", "> 100", 200, ("daily", "keys"))
    assert (there.name, there.severity, unique.severity) == ("id_is_there", Severity.WARN, Severity.ERROR)
    assert str(there.stored) == "lake.main_test_failures.id_is_there"
    assert unique.stored is None


def test_a_test_of_ones_own_and_a_file_of_sql(tmp_path: Path) -> None:
    files = {
        **orders("columns: {id: {tests: [even]}}"),
        "macros/even.sql": GENERIC,
        "tests/no_debt.sql": "{{ config(severity='warn', tags=['money'], store_failures=true) }}\n" + COUNTRY,
    }
    manifest = clean(tmp_path, files)
    even, debt = sorted(manifest.tests, key=lambda t: t.name)
    assert even.sql == "select * from `lake`.`main`.`orders` where id % 2 = 1"
    assert debt.sql == "select id from `lake`.`main`.`orders` where amount < 0"
    assert (debt.id, debt.kind, debt.model, debt.severity) == (
        "test.no_debt",
        "singular",
        "model.orders",
        Severity.WARN,
    )
    assert select(manifest, ["test_type:singular"]).nodes == ["test.no_debt"]
    assert select(manifest, ["test_type:generic"]).nodes == ["test.even_orders_id.0ad493f4a2"]
    assert select(manifest, ["test_type:data,tag:money"]).nodes == ["test.no_debt"]
    assert select(manifest, ["path:tests"]).nodes == ["test.no_debt"]


LOOKS = """columns:
  id:
    tests:
      - unique
      - not_null: {where: amount > 0}
      - not_null: {store_failures: true, name: kept}
      - accepted_values: {values: [1, 2], quote: false}
      - even
tests:
  - expression: {expression: amount > 0}"""


def test_one_look_at_the_rows_can_tell_several_tests(tmp_path: Path) -> None:
    """A kind of one's own takes part with a macro failing_<kind> in the same file."""
    even = GENERIC + "{% macro failing_even(model, column_name) %} count_if({{ column_name }} % 2 = 1) {% endmacro %}\n"
    rows, where = "`lake`.`main`.`orders`", "(select * from `lake`.`main`.`orders` where amount > 0\n)"
    tests = clean(tmp_path, {**orders(LOOKS), "macros/even.sql": even}).tests
    assert {t.name: t.look and (t.look.rows, t.look.failing) for t in tests} == {
        "unique_orders_id": (rows, "count(id) - count(distinct id)"),
        "not_null_orders_id": (where, "count_if(id is null)"),
        "kept": None,
        "accepted_values_orders_id": (rows, "count_if(id is not null and id not in (1, 2))"),
        "even_orders_id": (rows, "count_if(id % 2 = 1)"),
        "expression_orders": (rows, "count_if(not coalesce((amount > 0), false))"),
    }


def test_a_kind_that_stands_in_for_the_engines_is_not_told_by_its_look(tmp_path: Path) -> None:
    strict = (
        "{% test unique(model, column_name) %}\nselect * from {{ model }} where {{ column_name }} > 9\n{% endtest %}\n"
    )
    (unique,) = clean(tmp_path, {**orders("columns: {id: {tests: [unique]}}"), "macros/unique.sql": strict}).tests
    assert unique.look is None


FAULTS = {
    "a bound": ("tests: [{unique: {column_name: id, warn_if: many}}]", {}, "bad-value models/orders.sql:2:45 'many' is not a condition on the number of failures"),
    "a limit": ("tests: [{unique: {column_name: id, limit: 0}}]", {}, "bad-value models/orders.sql:2:43 'limit' must be at least 1, not 0"),
    "a later option": ("tests: [{unique: {column_name: id, fail_calc: x}}]", {}, "not-supported models/orders.sql:2:36 'fail_calc' is not supported in this version"),
    "an unknown model": ("title: t", {"tests/x.sql": "select 1 from {{ ref('nothing') }}"}, "unknown-ref tests/x.sql:1:15 the test 'x' reads 'nothing', which is not a model"),
    "no model": ("title: t", {"tests/x.sql": "select 1 as n"}, "missing-key tests/x.sql:1:1 the test 'x' reads no model or source"),
    "no SQL": ("title: t", {"tests/x.sql": "select from where"}, "sql-syntax tests/x.sql:1:13 syntax error near 'where'"),
    "a file that is no name": ("title: t", {"tests/X-1.sql": "select 1"}, "bad-name tests/X-1.sql:1:1 'X-1' is not a valid name"),
}  # fmt: skip


@pytest.mark.parametrize(("header", "files", "expected"), FAULTS.values(), ids=FAULTS)
def test_a_mistake_is_told_at_its_place(
    tmp_path: Path, header: str, files: dict[str, str | bytes], expected: str
) -> None:
    found = findings(tmp_path, {**orders(header), **files})
    assert line(only(tuple(d for d in found if d.is_error))) == expected


ODD = """/*---
columns:
  select: {tests: [not_null, unique]}
  a.b: {tests: [not_null, accepted_values: {values: [x]}]}
  from: {tests: [expression: {expression: '> 0'}]}
  current_date: {tests: [not_null]}
  left: {tests: [not_null]}
  s.inner: {tests: [not_null]}
  'two words': {tests: [unique]}
---*/
select id as `select`, id as `a.b`, amount as `from`, ts as `current_date`, id as `left`,
    named_struct('inner', 1) as s, id as `two words`
from {{ source('shop', 'orders') }}
"""


def test_columns_have_any_name_that_spark_has_for_them(tmp_path: Path) -> None:
    tests = clean(tmp_path, {"models/orders.sql": ODD}).tests
    sql = " ".join(test.sql for test in tests)
    for name in ("`select`", "`a.b`", "`from`", "`current_date`", "`two words`", "s.`inner`"):
        assert name in sql, name


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (orders("columns: {id: {tests: [{unique: {where: amout > 0}}]}}"),
         "models/orders.sql:2:25 the test 'unique' names the column 'amout', which 'orders' does not have"),
        ({**orders("columns: {id: {tests: [near]}}"),
          "macros/near.sql": "{% test near(model, column_name) %}select nowhere from {{ model }}{% endtest %}"},
         "models/orders.sql:2:24 the test 'near' names the column 'nowhere', which 'orders' does not have"),
        ({**orders("tags: [x]"), "tests/debt.sql": "\nselect id\nfrom {{ ref('orders') }} where amuont < 0\n"},
         "tests/debt.sql:3:32 the test 'debt' names the column 'amuont', which 'orders' does not have"),
        ({**orders("tags: [x]"), "tests/debt.sql": "select o.id from {{ ref('orders') }} as o\njoin {{ source('shop', 'customers') }} as c on o.id = c.nr"},
         "tests/debt.sql:2:55 the test 'debt' names the column 'nr', which 'shop.customers' does not have"),
        (orders("columns: {id: {tests: [{expression: {expression: '> amounts'}}]}}"),
         "models/orders.sql:2:25 the test 'expression' names the column 'amounts', which 'orders' does not have"),
    ],
)  # fmt: skip
def test_columns_that_no_table_has_are_named_at_their_place(
    tmp_path: Path, files: dict[str, str | bytes], message: str
) -> None:
    assert line(only(findings(tmp_path, files))) == f"unknown-column {message}"
