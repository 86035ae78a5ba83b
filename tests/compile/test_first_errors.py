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


def test_a_misspelled_column_is_no_hint_for_itself(tmp_path) -> None:
    text = f"select o.itme, count(*) as n from {ORDERS} as o group by o.itme"
    hints = [found.hint for found in findings(tmp_path, {"models/m.sql": text})]
    assert len(hints) == 2
    assert all("'o.item'" in hint and "itme" not in hint for hint in hints)


def test_a_misspelled_aggregate_is_one_error(tmp_path) -> None:
    text = f"select item, summ(amount) as total from {ORDERS} group by item having summ(amount) > 1"
    found = findings(tmp_path, {"models/m.sql": text})
    assert {line(d) for d in found} == {
        f"unknown-function models/m.sql:1:{place} Spark has no function 'summ'"
        for place in (14, text.rindex("summ") + 1)
    }
    assert "Did you mean 'sum'" in found[0].hint


@pytest.mark.parametrize(("others", "inputs"), [("o", "o.id or s.id"), ("", "orders.id or s.id")])
def test_an_ambiguous_column_is_written_with_its_inputs(others: str, inputs: str, tmp_path) -> None:
    on = f"on {others or 'orders'}.id = s.id"
    text = f"select id from {ORDERS} {others} join {{{{ ref('sales') }}}} s {on}"
    found = only(findings(tmp_path, {**OTHERS, "models/m.sql": text}))
    assert (found.code, found.hint) == ("ambiguous-column", f"Write {inputs}.")


def test_the_cause_comes_before_its_consequences(tmp_path) -> None:
    files = {
        "models/a.sql": "select nope from {{ ref('m') }}",
        "models/m.sql": f"select id from {ORDERS}",
        "models/x/m.sql": f"select ts from {ORDERS}",
    }
    found = [d for d in findings(tmp_path, files) if d.is_error]
    assert [d.code for d in found] == ["duplicate-name", "unknown-column"]


WINDOWS = [
    ("hopping(ts, 1 hour, 10 minutes)", "Write sliding(ts, 1 hour, 10 minutes)."),
    ("HOP(ts, 10 minutes, 1 hour)", "Write sliding(ts, 1 hour, 10 minutes)."),
    ("tumble(ts, 2 hours)", "Write tumbling(ts, 2 hours)."),
    ("sliding(ts, 2 hours)", "Add the slide as the third argument, or write tumbling(ts, 2 hours)."),
    ("sesion(ts, 5 minutes)", "Write session(ts, 5 minutes)."),
]


@pytest.mark.parametrize(("window", "hint"), WINDOWS)
def test_a_window_of_another_system(window: str, hint: str, tmp_path) -> None:
    header = f'/*---\nstreams: [shop.orders]\nwindows: {{hour: "{window}"}}\n---*/\n'
    found = only(findings(tmp_path, {"models/m.sql": f"{header}select id from {ORDERS}"}))
    assert (found.code, found.hint) == ("window-syntax", hint)


WATERMARKS = [
    ("ts 10 minutes", "Write 'ts delay 10 minutes'."),
    ("ts, 30 seconds", "Write 'ts delay 30 seconds'."),
    ("ts interval '1 hour'", "Write 'ts delay 1 hour'."),
    ("ts", "Write 'ts delay 10 minutes'."),
    ("item.ts delay 1 hour", "Give it a name: 'item.ts as ts delay 1 hour'."),
    ("Start Time delay 1 hour", "Write '`Start Time` delay 1 hour'."),
    ("10 minutes", "Write '<column> delay <interval>', or '<SQL> as <name> delay <interval>'."),
]


@pytest.mark.parametrize(("watermark", "hint"), WATERMARKS)
def test_a_watermark_is_written_with_its_own_column(watermark: str, hint: str, tmp_path) -> None:
    header = f'/*---\nstreams: {{shop.orders: {{watermark: "{watermark}"}}}}\n---*/\n'
    found = only(findings(tmp_path, {"models/m.sql": f"{header}select id from {ORDERS}"}))
    assert (found.code, found.hint) == ("watermark-syntax", hint)


MOMENTS = [
    ("ts > »'2024-13-45'", "'2024-13-45' is not a timestamp"),
    ("»'2024-02-30' <= ts", "'2024-02-30' is not a timestamp"),
    ("ts between '2024-01-01' and »'2024-01-01 25:00'", "'2024-01-01 25:00' is not a timestamp"),
    ("ts in ('2024-01-01', »'soon')", "'soon' is not a timestamp"),
    ("cast(ts as date) = »'2023-02-29'", "'2023-02-29' is not a date"),
]


@pytest.mark.parametrize(("condition", "message"), MOMENTS)
def test_a_time_that_does_not_exist(condition: str, message: str, tmp_path) -> None:
    start = f"select id from {ORDERS} where "
    text = start + condition.replace("»", "")
    found = only(findings(tmp_path, {"models/m.sql": text}))
    column = len(start) + condition.index("»") + 1
    assert line(found) == f"type-mismatch models/m.sql:1:{column} {message}"


@pytest.mark.parametrize(
    "moment", ["2024-01", "2024-01-01T10:00:00Z", "2024-1-1 9:5", "now", "2024-01-01 10:00 Europe/Berlin"]
)
def test_a_time_that_spark_reads_is_no_error(moment: str, tmp_path) -> None:
    text = f"select id from {ORDERS} where ts > '{moment}'"
    assert [str(d) for d in findings(tmp_path, {"models/m.sql": text}) if d.is_error] == []
