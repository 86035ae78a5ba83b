"""A query whose inputs or columns have other names now is the query that it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.plan import Change, LastWriter
from engine.plan.changed_query import changed_query
from engine.plan.comparison import StreamsRead
from engine.plan.edits.present_names import with_inputs_of_now
from tests.plan.facts_by_hand import facts
from tests.project.small_projects import clean, model

pytestmark = pytest.mark.slow

ORDERS = "select id, {} from {{{{ source('shop', 'orders') }}}}"
RENAMED = "materialized: table\ncolumns: [{name: cost, renamed_from: amount}]"


def change(root: Path, before: str, after: str, header: str = "materialized: table", now: str = "") -> Change:
    """What becomes of a table over orders and customers, whose column `amount` is `cost` now."""
    found = []
    others = {
        "customers": model("materialized: table", "select id, name from {{ source('shop', 'customers') }}", "customers")
    }
    for sql, own, orders in (
        (before, header, model("materialized: table", ORDERS.format("amount"), "orders")),
        (after, now or header, model(RENAMED, ORDERS.format("amount as cost"), "orders")),
    ):
        files = {**others["customers"], **orders, **model(own, sql, "m")}
        found.append(clean(root / str(len(found)), files))
    old, new = (manifest.model("m") for manifest in found)
    writer = LastWriter(old.fingerprint, old.facts)
    if old.fingerprint == new.fingerprint:
        return Change.UNCHANGED
    return changed_query(found[1], new, writer, StreamsRead.compare(new, writer, None)).change


ORDER, CUSTOMER = "{{ ref('orders') }}", "{{ ref('customers') }}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"select amount * 2 as n from {ORDER}", f"select cost * 2 as n from {ORDER}"),
        (f"select o.amount * 2 as n from {ORDER} o", f"select o.cost * 2 as n from {ORDER} o"),
        # Of several inputs the binder knows whose a name is.
        (f"select amount as n, name from {ORDER} join {CUSTOMER} using (id)", f"select cost as n, name from {ORDER} join {CUSTOMER} using (id)"),
        (
            f"select sum(x) as n from (select amount + 1 as x from {ORDER}) where x > 1",
            f"select sum(x) as n from (select cost + 1 as x from {ORDER}) where x > 1",
        ),
        (
            f"with o as (select amount, id from {ORDER}) select max(o.amount) as n from o where amount > 0",
            f"with o as (select cost, id from {ORDER}) select max(o.cost) as n from o where cost > 0",
        ),
        # An alias hides the column: it stays.
        (
            f"select amount from (select id as amount from {ORDER}) order by amount",
            f"select amount from (select id as amount from {ORDER}) order by amount",
        ),
    ],
)  # fmt: skip
def test_a_column_of_an_input_has_another_name(tmp_path: Path, before: str, after: str) -> None:
    assert change(tmp_path, before, after) is Change.UNCHANGED


def test_another_column_is_no_rename(tmp_path: Path) -> None:
    assert change(tmp_path, f"select amount as n from {ORDER}", f"select id as n from {ORDER}") is not Change.UNCHANGED


OWN = "materialized: table\ncolumns: [{name: total, renamed_from: n}]"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"select id, name as n from {CUSTOMER}", f"select id, name as total from {CUSTOMER}"),
        (f"select id, name as n from {CUSTOMER} order by n", f"select id, name as total from {CUSTOMER} order by total"),
        (f"select id, n from (select id, name as n from {CUSTOMER})", f"select id, n as total from (select id, name as n from {CUSTOMER})"),
        (f"select upper(name) as n, count(*) as c from {CUSTOMER} group by n", f"select upper(name) as total, count(*) as c from {CUSTOMER} group by total"),
        (f"select name as n from {CUSTOMER} union all select name from {CUSTOMER}", f"select name as total from {CUSTOMER} union all select name from {CUSTOMER}"),
    ],
)  # fmt: skip
def test_a_column_of_the_query_has_another_name(tmp_path: Path, before: str, after: str) -> None:
    assert change(tmp_path, before, after, now=OWN) is Change.UNCHANGED


@pytest.mark.parametrize(
    ("check", "now"),
    [("n is not null", "total is not null"), ("length(`n`) > 1 and n <> 'n'", "length(total) > 1 and total <> 'n'")],
)
def test_conditions_have_the_names_of_now(tmp_path: Path, check: str, now: str) -> None:
    rule = 'expectations: [{{name: some, check: "{}", on_fail: drop}}]'
    before, after = f"select id, name as n from {CUSTOMER}", f"select id, name as total from {CUSTOMER}"
    header = f"materialized: table\n{rule.format(check)}"
    assert change(tmp_path, before, after, header, f"{OWN}\n{rule.format(now)}") is Change.UNCHANGED


def test_an_input_has_another_name() -> None:
    sql = "select orders . id , o . n , x . orders from `@source shop.orders` , `@ref other` as o , lateral ( select orders . x ) as x"
    found = with_inputs_of_now(facts(sql=sql), {"shop.orders": "shop.sales"}).sql
    assert "`@source shop.sales`" in found
    assert found.startswith("select sales . id , o . n , x . orders")
