"""The errors that beginners meet first: each has a hint that can be pasted, in the names of the project."""

from __future__ import annotations

import pytest

from tests.project.small_projects import findings, line, only
from tests.projects import sources_yaml

ORDERS = "{{ source('shop', 'orders') }}"
STREAM = "/*---\nstreams: [shop.orders]\n---*/\n"
OTHERS = {
    "models/sales.sql": f"select * from {ORDERS}\n",
    "models/daily.sql": f"/*---\nalias: sales_daily\n---*/\nselect * from {ORDERS}\n",
}

TABLES = [
    ("shop.orders", "Write {{ source('shop', 'orders') }}, so that the dependency is known."),
    ("orders", "Write {{ source('shop', 'orders') }}, so that the dependency is known."),
    ("Sales", "Write {{ ref('sales') }}, so that the dependency is known."),
    ("main.sales", "Write {{ ref('sales') }}, so that the dependency is known."),
    ("lake.main.sales_daily", "Write {{ ref('daily') }}, so that the dependency is known."),
    ("salse", "Did you mean {{ ref('sales') }}?"),
    ("shop.custmers", "Did you mean {{ source('shop', 'customers') }}?"),
    ("zzz", "Write {{ ref('model') }} or {{ source('name', 'table') }}, so that the dependency is known."),
]


@pytest.mark.parametrize(("table", "hint"), TABLES)
def test_a_table_that_is_named_directly(table: str, hint: str, tmp_path) -> None:
    found = only(findings(tmp_path, {**OTHERS, "models/m.sql": f"select * from {table}\n"}))
    assert line(found) == f"undeclared-relation models/m.sql:1:15 '{table}' is neither a model, a source nor a CTE"
    assert found.hint == hint


def test_what_a_macro_made_is_shown_behind_the_suggestion(tmp_path) -> None:
    macro = "{% macro rows(name) %}select * from {{ name }}{% endmacro %}"
    found = only(findings(tmp_path, {**OTHERS, "macros/m.sql": macro, "models/m.sql": "{{ rows('sales') }}"}))
    assert found.hint.startswith("Write {{ ref('sales') }}, so that the dependency is known.")


def test_a_model_hides_a_source_table_of_its_name(tmp_path) -> None:
    files = {"models/orders.sql": f"select * from {ORDERS}\n", "models/m.sql": "select * from orders\n"}
    assert only(findings(tmp_path, files)).hint.startswith("Write {{ ref('orders') }}")


HEADER = """\
Set streams: {shop.orders: {watermark: ts delay 30 minutes}} and windows: {hour: "tumbling(ts, 1 hour)"} in the header"""
GROUPS = [
    ("select id, count(*) as n from {o} group by id", "hour, id", "update"),
    ("select date_trunc('hour', ts) as h, id, count(*) as n from {o} group by 1, 2", "hour, id", "update"),
    ("select count(*) as n from {o}", "hour", "complete"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("query", "keys", "mode"), GROUPS)
def test_a_group_by_without_a_window(query: str, keys: str, mode: str, tmp_path) -> None:
    hint = f"{HEADER}, and write: group by {keys}. Or keep running totals: set output_mode: {mode}."
    found = only(findings(tmp_path, {"models/m.sql": STREAM + query.replace("{o}", ORDERS)}))
    assert (found.code, found.hint) == ("agg-needs-event-time", hint)


@pytest.mark.parametrize(("query", "keys", "mode"), GROUPS)
def test_running_totals_have_no_errors(query: str, keys: str, mode: str, tmp_path) -> None:
    text = f"/*---\nstreams: [shop.orders]\noutput_mode: {mode}\n---*/\n{query.replace('{o}', ORDERS)}"
    assert [str(d) for d in findings(tmp_path, {"models/m.sql": text}) if d.is_error] == []


def test_a_column_beside_an_aggregate(tmp_path) -> None:
    found = only(findings(tmp_path, {"models/m.sql": f"select id, count(*) as n from {ORDERS}"}))
    assert (found.code, found.hint) == ("agg-not-grouped", "Add it to the GROUP BY, or write max(id) or any_value(id).")


def test_a_star_over_a_join_is_one_error(tmp_path) -> None:
    text = f"select * from {ORDERS} o join {{{{ ref('sales') }}}} s on o.id = s.id"
    found = only(findings(tmp_path, {**OTHERS, "models/m.sql": text}))
    names = "two columns each have the names 'id', 'ts', 'amount', 'item'"
    assert line(found) == f"duplicate-name models/m.sql:1:1 {names}"
    assert found.hint == "Select the columns of one input by name instead of '*', or give them aliases."


SETTINGS = "/*---\nmaterialized: table\npartition_by: [id]\ncolumns: {id: {description: number}}\n---*/\n"


@pytest.mark.parametrize(
    ("select", "places"),
    [("idd", ["7"]), ("idd as id", ["7"]), ("idd as number", ["3", "4", "7"])],
    ids=["consequences", "alias", "two-causes"],
)
def test_settings_that_name_a_misspelt_column_are_no_faults_of_their_own(
    select: str, places: list[str], tmp_path
) -> None:
    found = findings(tmp_path, {"models/m.sql": f"{SETTINGS}select\n    {select}\nfrom {ORDERS}\n"})
    assert [line(one).split(":")[1] for one in found] == places


WINDOWED = """\
/*---
streams: {sales: {watermark: ts delay 1 hour}}
windows: {hour: "tumbling(ts, 1 hour)"}
---*/
select hour.start as hour, count(*) as n from {{ ref('%s') }} group by hour
"""


@pytest.mark.parametrize(("name", "codes"), [("salse", ["unknown-ref"]), ("sales", [])], ids=["mistyped", "right"])
def test_a_name_that_is_not_found_is_the_only_error(name: str, codes: list[str], tmp_path) -> None:
    sales = f"/*---\nstreams: [shop.orders]\n---*/\nselect * from {ORDERS}\n"
    found = findings(tmp_path, {"models/sales.sql": sales, "models/m.sql": WINDOWED % name})
    assert [one.code for one in found] == codes


@pytest.mark.parametrize(
    ("select", "places"),
    [("idd, ts", ["sales"]), ("idd as id, ts", ["sales"]), ("id as number, ts", ["m", "deep"])],
    ids=["misspelt", "alias", "renamed"],
)
def test_a_column_that_is_misspelt_is_no_error_of_other_models(select: str, places: list[str], tmp_path) -> None:
    files = {
        "models/sales.sql": f"select {select} from {ORDERS}\n",
        "models/m.sql": "select id, ts from {{ ref('sales') }}\n",
        "models/deep.sql": "select s.id from {{ ref('sales') }} as s\n",
    }
    assert sorted(one.node for one in findings(tmp_path, files)) == sorted(places)


def test_a_misspelled_key_is_the_only_finding(tmp_path) -> None:
    query = "select id, status, count(*) as n from {o} group by id, staus having max(id) > 1 and status > ''"
    source = sources_yaml(orders="id int, status string")
    files = {"sources/shop.yml": source, "models/m.sql": query.replace("{o}", ORDERS)}
    assert only(findings(tmp_path, files)).code == "unknown-column"
