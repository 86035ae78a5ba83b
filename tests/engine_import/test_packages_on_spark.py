"""The macros and tests of dbt's packages on Spark itself: the values that they give, and the rows that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.compile.templates.template_names import TemplateNames
from engine.errors import ProjectError
from engine.jinja import MacroFile, Sandbox
from engine_import.dbt.compatible_macros import PACKAGES, package_text, provided
from tests.fixtures import read_lists
from tests.lab import LabSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]
VIEWS = {
    "orders": """
values
    (1, 'a', 10, 'Anna', date '2024-01-01', timestamp '2024-01-01 09:00:00'),
    (2, 'a', 20, 'anna', date '2024-01-02', timestamp '2024-01-02 09:00:00'),
    (3, 'b', 30, 'Bob', date '2024-01-04', timestamp '2024-01-04 09:00:00'),
    (4, 'b', null, '', date '2024-01-05', timestamp '2024-01-05 09:00:00')
    as t(id, kind, amount, name, day, at)""",
    "same": "select * from orders",
    "swapped": "select kind, id, amount, name, day, at from orders",
    "fewer": "select * from orders where id < 4",
    "nothing": "select * from orders where false",
    "ranges": "values ('x', 1, 3), ('x', 3, 5), ('x', 6, 7), ('y', 1, 4), ('y', 3, 3) as t(owner, low, high)",
    "recent": "select current_timestamp() - interval 2 hours as at, 'a' as kind union all"
    " select current_timestamp() - interval 3 days, 'b' union all select current_timestamp() + interval 9 days, 'b'",
    "daily": "select timestampadd(day, -n, current_timestamp()) as at, if(n = 1, 1000, 10 + n % 3) as amount"
    " from (select explode(sequence(1, 20)) as n)",
}
CALENDAR = "{{ dbt_date.get_date_dimension('2021-12-01', '2025-03-01') }}"


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    sandbox = Sandbox(TemplateNames({}).for_models())
    sandbox.add_macros([MacroFile(f"packages/{name}/macros/{name}.sql", package_text(name), name) for name in PACKAGES])
    return sandbox


@pytest.fixture(scope="module")
def spark(lab_session: LabSession, sandbox: Sandbox) -> Iterator[Any]:
    spark = lab_session.spark
    for name, query in {**VIEWS, "calendar": sandbox.render(CALENDAR, "a.sql").text}.items():
        spark.sql(query).createOrReplaceTempView(name)
    yield spark
    for name in (*VIEWS, "calendar"):
        spark.catalog.dropTempView(name)


VALUES = [
    # dbt's own
    ("dbt.equals('null', '1')", False),
    ("dbt.date(2024, 2, 29)", date(2024, 2, 29)),
    ("dbt.array_append('array(1)', 2)", [1, 2]),
    ("dbt.array_concat('array(1)', 'array(2)')", [1, 2]),
    ("dbt.array_construct([1, 2])", [1, 2]),
    ("dbt.array_construct(data_type='string')", []),
    # dbt_utils
    ("dbt_utils.width_bucket(35, 0, 100, 10)", 4),
    ("dbt_utils.width_bucket(100, 0, 100, 10)", 11),
    ("dbt_utils.get_url_host(\"'https://www.example.com/a/b?x=1'\")", "www.example.com"),
    ("dbt_utils.get_url_host(\"'android-app://m.example.com'\")", "m.example.com"),
    ("dbt_utils.get_url_path(\"'https://www.example.com/a/b?x=1'\")", "a/b"),
    ("dbt_utils.get_url_path(\"'www.example.com?x=1'\")", ""),
    ("dbt_utils.get_url_parameter(\"'https://example.com/?utm_source=ads&x=1'\", 'utm_source')", "ads"),
    ("dbt_utils.get_url_parameter(\"'https://example.com/'\", 'utm_source')", None),
    ("dbt_utils.safe_divide(7, 0)", None),
    ("dbt_utils.safe_add([1, 'null', 2])", 3),
    # dbt_date
    ("dbt_date.day_name(\"date '2024-02-29'\")", "Thu"),
    ("dbt_date.day_name(\"date '2024-02-29'\", short=false)", "Thursday"),
    ("dbt_date.month_name(\"date '2024-02-29'\")", "Feb"),
    ("dbt_date.month_name(\"date '2024-02-29'\", false)", "February"),
    ("dbt_date.day_of_week(\"date '2024-03-03'\")", 7),
    ("dbt_date.day_of_week(\"date '2024-03-03'\", isoweek=false)", 1),
    ("dbt_date.day_of_month(\"date '2024-02-29'\")", 29),
    ("dbt_date.day_of_year(\"date '2024-02-29'\")", 60),
    ("dbt_date.date_part('year', \"date '2024-02-29'\")", 2024),
    ("dbt_date.week_start(\"date '2024-03-02'\")", date(2024, 2, 25)),
    ("dbt_date.week_start(\"date '2024-03-03'\")", date(2024, 3, 3)),
    ("dbt_date.week_end(\"date '2024-03-03'\")", date(2024, 3, 9)),
    ("dbt_date.iso_week_start(\"date '2024-03-03'\")", date(2024, 2, 26)),
    ("dbt_date.iso_week_end(\"date '2024-03-03'\")", date(2024, 3, 3)),
    ("dbt_date.iso_week_of_year(\"date '2024-12-31'\")", 1),
    ("dbt_date.week_of_year(\"date '2024-12-31'\")", 1),
    ("dbt_date.n_days_ago(3, \"date '2024-03-01'\")", date(2024, 2, 27)),
    ("dbt_date.n_days_away(3, \"date '2024-02-27'\")", date(2024, 3, 1)),
    ("dbt_date.tomorrow(\"date '2024-02-28'\")", date(2024, 2, 29)),
    ("dbt_date.yesterday(\"date '2024-03-01'\")", date(2024, 2, 29)),
    ("dbt_date.convert_timezone(\"timestamp '2024-07-01 12:00:00'\", 'America/New_York')", "2024-07-01 08:00:00"),
    ("dbt_date.convert_timezone(\"timestamp '2024-07-01 12:00:00'\", 'UTC', 'Europe/Paris')", "2024-07-01 10:00:00"),
    ("dbt_date.from_unixtimestamp(1700000000)", "2023-11-14 22:13:20"),
    ("dbt_date.from_unixtimestamp('1700000000000L', format='milliseconds')", "2023-11-14 22:13:20"),
    ("dbt_date.to_unixtimestamp(\"timestamp '2023-11-14 22:13:20'\")", 1700000000),
    ("dbt_date.round_timestamp(\"timestamp '2024-02-29 13:00:00'\")", "2024-03-01 00:00:00"),
    ("dbt_expectations.median('1')", 1.0),
    ("dbt_expectations.regexp_instr(\"'ab12'\", '[0-9]')", 3),
    ("dbt_expectations.log_natural(1)", 0.0),
]  # fmt: skip


def shown(value: Any) -> Any:
    return str(value) if isinstance(value, datetime) else value


def test_values(spark: Any, sandbox: Sandbox) -> None:
    columns = ", ".join(f"{{{{ {call} }}}} as c{number}" for number, (call, _) in enumerate(VALUES))
    (row,) = spark.sql(sandbox.render(f"select {columns}", "a.sql").text).collect()
    assert [(call, shown(found)) for (call, _), found in zip(VALUES, row, strict=True)] == VALUES


# Calls about the time of the query, and what they are in Spark's own words.
NOW = [
    ("dbt_date.today()", "current_date()"),
    ("cast(dbt_date.now('Asia/Tokyo') as date)", "cast(from_utc_timestamp(current_timestamp(), 'Asia/Tokyo') as date)"),
    ("dbt_date.last_week()", "date_trunc('week', date_sub(current_date(), 7))"),
    ("dbt_date.next_week()", "date_trunc('week', date_add(current_date(), 7))"),
    ("dbt_date.n_weeks_away(2)", "date_trunc('week', date_add(current_date(), 14))"),
    ("dbt_date.last_month()", "date_trunc('month', add_months(current_date(), -1))"),
    ("dbt_date.next_month()", "date_trunc('month', add_months(current_date(), 1))"),
    ("dbt_date.n_months_ago(12)", "date_trunc('month', add_months(current_date(), -12))"),
    ("dbt_date.last_month_number()", "month(add_months(current_date(), -1))"),
    ("dbt_date.next_month_number()", "month(add_months(current_date(), 1))"),
    ("dbt_date.last_month_name()", "date_format(add_months(current_date(), -1), 'LLL')"),
    ("dbt_date.next_month_name(false)", "date_format(add_months(current_date(), 1), 'LLLL')"),
    ("dbt_date.periods_since('date_sub(current_date(), 3)')", "3"),
]


def test_times_of_the_query(spark: Any, sandbox: Sandbox) -> None:
    # A query has one time.
    written = [re.sub(r"dbt_date\.\w+\(.*?\)(?=$| as date)", r"{{ \g<0> }}", call) for call, _ in NOW]
    columns = ", ".join(f"{call} = {expected}" for call, (_, expected) in zip(written, NOW, strict=True))
    (row,) = spark.sql(sandbox.render(f"select {columns}", "a.sql").text).collect()
    assert [call for (call, _), same in zip(NOW, row, strict=True) if not same] == []


ROWS = [
    ("{{ dbt.generate_series(3) }}", [(1,), (2,), (3,)]),
    ("{{ dbt_utils.generate_series(2) }}", [(1,), (2,)]),
    ("{{ dbt.date_spine('month', \"date '2024-01-01'\", \"date '2024-03-01'\") }}", [("2024-01-01 00:00:00",), ("2024-02-01 00:00:00",)]),
    ("{{ dbt_date.date_spine('quarter', \"date '2024-01-01'\", \"date '2024-05-01'\") }}", [("2024-01-01 00:00:00",), ("2024-04-01 00:00:00",)]),
    ("{{ dbt_date.get_base_dates('2024-01-01', '2024-01-03') }}", [("2024-01-01 00:00:00",), ("2024-01-02 00:00:00",)]),
    ("select count(*) from ({{ dbt_date.get_base_dates(n_dateparts=2) }})", [(3,)]),
    ("{{ dbt_utils.deduplicate('orders', 'kind', 'id desc') }}", [(2, "a", 20), (4, "b", None)]),
    ("select {{ dbt_utils.pivot('kind', ['a', \"b's\"]) }} from orders", [(2, 0)]),
    ("select {{ dbt_utils.star('orders', except=['name', 'day', 'at'], rename={'amount': 'total'}) }} from orders where id = 1", [(1, "a", 10)]),
    ("select {{ dbt.listagg('kind', \"'+'\", 'order by kind desc') }} from orders", [("b+b+a+a",)]),
    ("select {{ dbt.listagg('kind', \"'+'\", limit_num=1) }} from orders where kind = 'a'", [("a",)]),
    ("select round({{ dbt_utils.haversine_distance(48.85, 2.35, 51.51, -0.13, unit='km') }}) as km", [(345.0,)]),
    # The first fiscal year whose end the calendar has begins after the last Saturday of January.
    (("select min(fiscal_year_start_date), max(fiscal_year_end_date), max(fiscal_week_of_year), count(*)"
     " from ({{ dbt_date.get_fiscal_year_dates('calendar', 1, 1) }}) where fiscal_year_number = 2023"),
     [(date(2023, 1, 29), date(2024, 2, 3), 53, 371)]),
    (("select fiscal_period_number, count(distinct fiscal_week_of_year), max(fiscal_quarter_number)"
     " from ({{ dbt_date.get_fiscal_periods('calendar', 1, 1) }}) where fiscal_year_number = 2023 and fiscal_period_number in (1, 2, 3, 12)"
     " group by 1 order by 1"),
     [(1, 4, 1), (2, 5, 1), (3, 4, 1), (12, 5, 4)]),
    (("select day_of_week, day_of_week_name, week_start_date, week_end_date, iso_week_start_date, quarter_end_date, year_end_date,"
     " prior_year_date_day, month_end_date from calendar where date_day = '2024-02-29'"),
     [(5, "Thursday", date(2024, 2, 25), date(2024, 3, 2), date(2024, 2, 26), date(2024, 3, 31), date(2024, 12, 31),
       date(2023, 2, 28), date(2024, 2, 29))]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), ROWS)
def test_rows(query: str, expected: list[tuple[Any, ...]], spark: Any, sandbox: Sandbox) -> None:
    rows = [tuple(map(shown, row)) for row in spark.sql(sandbox.render(query, "a.sql").text).collect()]
    assert [row[: len(expected[0])] for row in rows] == expected


def test_texts_without_a_query(sandbox: Sandbox) -> None:
    assert sandbox.render('{{ dbt.escape_single_quotes("it\'s") }}', "a.sql").text == "it\\'s"
    assert sandbox.render("{{ dbt_utils.slugify('2 Fast-- 2 Furious!') }}", "a.sql").text == "_2_fast_2_furious"


NOT_RENDERED = [
    "dbt_utils.star('orders', prefix='o_')", "dbt_utils.haversine_distance(1, 2, 3, 4, unit='yd')",
    "dbt_utils.test_mutually_exclusive_ranges('ranges', 'low', 'high', gaps='some')",
    "dbt_utils.test_equality('orders', '`same`', precision=2)",
    "dbt_expectations.test_expect_column_values_to_be_between('orders', 'id')",
    "dbt_expectations.test_expect_column_values_to_match_regex('orders', 'name', 'a', flags='q')",
    "dbt_date.from_unixtimestamp(1, format='days')", "dbt.listagg('a', order_by_clause='order by a', limit_num=2)",
]  # fmt: skip


@pytest.mark.parametrize("call", NOT_RENDERED)
def test_what_cannot_be_computed_is_an_error(call: str, sandbox: Sandbox) -> None:
    with pytest.raises(ProjectError):
        sandbox.render(f"{{{{ {call} }}}}", "a.sql")


# The macro, its arguments after the table, and the number of failing rows.
FAILING = [
    (f"{package}.{name}", table, arguments, int(count))
    for package, lines in read_lists(Path(__file__).with_name("failing_rows.txt")).items()
    for name, table, arguments, count in (line.split(" | ") for line in lines)
]


def called(kind: str, table: str, arguments: str) -> str:
    package, _, name = kind.rpartition(".")
    return f"{{{{ {package}.test_{name}('{table}', {arguments}) }}}}"


def counts(spark: Any, queries: list[str]) -> list[int]:
    """The numbers of rows of queries, by some queries of many: each one is a job of Spark."""
    found: dict[int, int] = {}
    for first in range(0, len(queries), 20):
        numbered = enumerate(queries[first : first + 20], first)
        parts = (f"select {number}, count(*) from (\n{query}\n)" for number, query in numbered)
        found |= dict(spark.sql(" union all ".join(parts)).collect())
    return [found[number] for number in range(len(queries))]


@pytest.mark.nightly
def test_failing_rows(spark: Any, sandbox: Sandbox) -> None:
    queries = [sandbox.render(called(*given), "a.sql").text for *given, _ in FAILING]
    found = zip(FAILING, counts(spark, queries), strict=True)
    assert [(*given, count) for (*given, _), count in found] == FAILING


def test_columns_in_another_order_are_reported(spark: Any, sandbox: Sandbox) -> None:
    call = "dbt_utils.test_equality('ranges', '`swapped_ranges`')"
    spark.sql("select high, low, owner from ranges").createOrReplaceTempView("swapped_ranges")
    spark.sql("select 1 as owner, 2 as low, 3 as high").createOrReplaceTempView("ranges_of_numbers")
    spark.sql("select 1 as low, 2 as owner, 3 as high").createOrReplaceTempView("swapped_numbers")
    call = "dbt_utils.test_equality('ranges_of_numbers', '`swapped_numbers`')"
    query = sandbox.render(f"{{{{ {call} }}}}", "a.sql").text
    assert [tuple(row) for row in spark.sql(query).collect()] == [("columns", "owner, low, high and low, owner, high")]


def test_every_test_is_tried() -> None:
    names = {(package, name) for package in ("dbt_utils", "dbt_expectations") for name in provided(package)}
    tests = {(package, name.removeprefix("test_")) for package, name in names if name.startswith("test_")}
    tried = {tuple(kind.split(".")) for kind, *_ in FAILING}
    assert tests - tried == set()


def test_every_macro_of_dbt_date_is_tried() -> None:
    text = " ".join(
        [*(call for call, _ in VALUES), *(call for call, _ in NOW), *(query for query, _ in ROWS), CALENDAR]
    )
    tried = set(re.findall(r"dbt_date\.(\w+)\(", text))
    # These are called by others.
    inner = {"n_weeks_ago", "n_months_away"}
    assert {name for name in provided("dbt_date") if not name.startswith("_")} - tried - inner == set()
