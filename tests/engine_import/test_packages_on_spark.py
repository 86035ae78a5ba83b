"""The macros and tests of dbt's packages on Spark itself: the values that they give, and the rows that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pytest

from engine.compile.templates.template_names import TemplateNames
from engine.errors import ProjectError
from engine.jinja import MacroFile, Sandbox
from engine_import.dbt.compatible_macros import PACKAGES, package_text, provided
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


# The test, its arguments after the table, and the number of failing rows. A name ends with _ where it is dbt_expectations'.
FAILING = [
    ("dbt_utils.equality", "orders", "'`same`'", 0),
    ("dbt_utils.equality", "orders", "'`fewer`'", 1),
    ("dbt_utils.equality", "orders", "'`swapped`', compare_columns=['id', 'kind', 'amount']", 0),
    ("dbt_utils.equality", "orders", "'`fewer`', exclude_columns=['id', 'name', 'day', 'at']", 1),
    ("dbt_utils.equal_rowcount", "orders", "'`same`'", 0),
    ("dbt_utils.equal_rowcount", "orders", "'`fewer`'", 1),
    ("dbt_utils.equal_rowcount", "orders", "'`fewer`', group_by_columns=['kind']", 1),
    ("dbt_utils.fewer_rows_than", "fewer", "'`orders`'", 0),
    ("dbt_utils.fewer_rows_than", "orders", "'`same`'", 1),
    ("dbt_utils.fewer_rows_than", "fewer", "'`orders`', group_by_columns=['kind']", 1),
    ("dbt_utils.cardinality_equality", "orders", "'kind', to='`same`', field='kind'", 0),
    ("dbt_utils.cardinality_equality", "orders", "'kind', to='`fewer`', field='kind'", 2),
    ("dbt_utils.relationships_where", "orders", "'id', to='`fewer`', field='id'", 1),
    ("dbt_utils.relationships_where", "orders", "'id', to='`fewer`', field='id', from_condition='id < 4'", 0),
    ("dbt_utils.relationships_where", "orders", "'id', to='`fewer`', field='id', to_condition='id < 2'", 3),
    ("dbt_utils.sequential_values", "orders", "'id'", 0),
    ("dbt_utils.sequential_values", "orders", "'day', datepart='day'", 1),
    ("dbt_utils.sequential_values", "orders", "'day', datepart='day', group_by_columns=['kind']", 0),
    ("dbt_utils.mutually_exclusive_ranges", "ranges", "'low', 'high', partition_by='owner'", 2),
    ("dbt_utils.mutually_exclusive_ranges", "ranges", "'low', 'high', partition_by='owner', gaps='not_allowed'", 3),
    ("dbt_utils.mutually_exclusive_ranges", "ranges", "'low', 'high', partition_by='owner', zero_length_range_allowed=true", 1),
    ("dbt_utils.mutually_exclusive_ranges", "ranges", "'low', 'high', partition_by='owner', gaps='required'", 3),
    ("dbt_utils.at_least_one", "orders", "'amount'", 0),
    ("dbt_utils.at_least_one", "nothing", "'amount'", 1),
    ("dbt_utils.at_least_one", "orders", "'amount', group_by_columns=['id']", 1),
    ("dbt_utils.not_constant", "orders", "'kind'", 0),
    ("dbt_utils.not_constant", "orders", "'kind', group_by_columns=['kind']", 2),
    ("dbt_utils.not_null_proportion", "orders", "'amount', at_least=0.7", 0),
    ("dbt_utils.not_null_proportion", "orders", "'amount', at_least=0.7, group_by_columns=['kind']", 1),
    ("dbt_utils.not_null_proportion", "nothing", "'amount', at_least=0.7", 0),
    ("dbt_utils.recency", "recent", "'at', 'day', 1", 0),
    ("dbt_utils.recency", "orders", "'at', 'day', 1, ignore_time_component=true", 1),
    ("dbt_utils.recency", "orders", "'at', 'day', 1, group_by_columns=['kind']", 2),
    ("dbt_utils.not_accepted_values", "orders", "'name', ['Bob', \"it's\"]", 1),
    ("dbt_utils.accepted_range", "orders", "'amount', min_value=15", 1),
    ("dbt_utils.accepted_range", "orders", "'amount', max_value=30, inclusive=false", 1),
    ("dbt_utils.unique_combination_of_columns", "orders", "['kind', 'amount']", 0),
    ("dbt_utils.unique_combination_of_columns", "orders", "['kind']", 2),
    ("dbt_utils.expression_is_true", "orders", "'amount < 25'", 1),
    ("dbt_utils.not_empty_string", "orders", "'name'", 1),
    # dbt_expectations
    ("expression_is_true", "orders", "'amount > 10'", 1),
    ("expression_between", "orders", "'sum(amount)', 1, 59", 1),
    ("expect_column_values_to_be_between", "orders", "'amount', 10, 30", 0),
    ("expect_column_values_to_be_between", "orders", "'amount', 10, 30, strictly=true", 2),
    ("expect_column_values_to_be_between", "orders", "'amount', max_value=5, row_condition='id = 1'", 1),
    ("expect_column_values_to_be_null", "orders", "'amount'", 3),
    ("expect_column_values_to_not_be_null", "orders", "'amount'", 1),
    ("expect_column_values_to_be_unique", "orders", "'id'", 0),
    ("expect_column_values_to_be_unique", "orders", "'kind', row_condition=\"kind = 'a'\"", 1),
    ("expect_column_values_to_be_in_set", "orders", "'kind', ['a', 'b']", 0),
    ("expect_column_values_to_be_in_set", "orders", "'amount', [10, 20], quote_values=false", 2),
    ("expect_column_values_to_not_be_in_set", "orders", "'kind', ['a', \"it's\"]", 2),
    ("expect_column_values_to_be_increasing", "orders", "'amount', sort_column='id'", 0),
    ("expect_column_values_to_be_increasing", "orders", "'id', step=2", 3),
    ("expect_column_values_to_be_decreasing", "orders", "'id'", 3),
    ("expect_column_values_to_be_decreasing", "orders", "'id', sort_column='-id'", 0),
    ("expect_column_values_to_be_decreasing", "orders", "'amount', sort_column='day', group_by=['kind']", 1),
    ("expect_column_values_to_have_consistent_casing", "orders", "'name'", 1),
    ("expect_column_values_to_have_consistent_casing", "orders", "'kind'", 0),
    ("expect_column_values_to_match_regex", "orders", "'name', '^[A-Z]\\\\w+$'", 2),
    ("expect_column_values_to_match_regex", "orders", "'name', '^[A-Z]\\\\w+$', flags='i'", 1),
    ("expect_column_values_to_not_match_regex", "orders", "'name', 'nn'", 2),
    ("expect_column_values_to_match_regex_list", "orders", "'name', ['^A', '^B']", 2),
    ("expect_column_values_to_match_regex_list", "orders", "'name', ['^A', 'a$'], match_on='all'", 3),
    ("expect_column_values_to_not_match_regex_list", "orders", "'name', ['^A', '^B'], match_on='all'", 2),
    ("expect_column_values_to_match_like_pattern", "orders", "'name', '%nn%'", 2),
    ("expect_column_values_to_not_match_like_pattern", "orders", "'name', '%nn%'", 2),
    ("expect_column_values_to_match_like_pattern_list", "orders", "'name', ['A%', 'B%']", 2),
    ("expect_column_values_to_not_match_like_pattern_list", "orders", "'name', ['A%', 'B%'], match_on='all'", 2),
    ("expect_column_value_lengths_to_be_between", "orders", "'name', 1, 4", 1),
    ("expect_column_value_lengths_to_equal", "orders", "'name', 4", 2),
    ("expect_column_min_to_be_between", "orders", "'amount', 10, 10", 0),
    ("expect_column_max_to_be_between", "orders", "'amount', max_value=29", 1),
    ("expect_column_max_to_be_between", "orders", "'amount', max_value=29, group_by=['kind']", 1),
    ("expect_column_mean_to_be_between", "orders", "'amount', 20, 20", 0),
    ("expect_column_median_to_be_between", "orders", "'amount', 20, 20", 0),
    ("expect_column_quantile_values_to_be_between", "orders", "'amount', 0.95, min_value=30", 1),
    ("expect_column_stdev_to_be_between", "orders", "'amount', 10, 10", 0),
    ("expect_column_sum_to_be_between", "orders", "'amount', 61", 1),
    ("expect_column_unique_value_count_to_be_between", "orders", "'kind', 2, 2", 0),
    ("expect_column_proportion_of_unique_values_to_be_between", "orders", "'kind', 0.6", 1),
    ("expect_column_proportion_of_unique_values_to_be_between", "nothing", "'kind', 0.6", 0),
    ("expect_column_distinct_count_to_equal", "orders", "'kind', 2", 0),
    ("expect_column_distinct_count_to_be_greater_than", "orders", "'kind', 2", 1),
    ("expect_column_distinct_count_to_be_less_than", "orders", "'kind', 2", 1),
    ("expect_column_distinct_values_to_be_in_set", "orders", "'kind', ['a']", 1),
    ("expect_column_distinct_values_to_contain_set", "orders", "'kind', ['a', 'c']", 1),
    ("expect_column_distinct_values_to_equal_set", "orders", "'kind', ['a', 'c']", 2),
    ("expect_column_distinct_values_to_equal_set", "orders", "'kind', ['a', 'b']", 0),
    ("expect_column_most_common_value_to_be_in_set", "orders", "'kind', ['a'], top_n=1", 0),
    ("expect_column_most_common_value_to_be_in_set", "orders", "'kind', ['a'], top_n=2", 1),
    ("expect_column_pair_values_A_to_be_greater_than_B", "orders", "'amount', 'id'", 0),
    ("expect_column_pair_values_A_to_be_greater_than_B", "orders", "'id', 'id'", 4),
    ("expect_column_pair_values_A_to_be_greater_than_B", "orders", "'id', 'id', or_equal=true", 0),
    ("expect_column_pair_values_to_be_equal", "orders", "'id', 'amount'", 3),
    ("expect_column_pair_values_to_be_in_set", "orders", "'kind', 'id', [[\"'a'\", 1], [\"'a'\", 2]]", 2),
    ("expect_compound_columns_to_be_unique", "orders", "['kind', 'id']", 0),
    ("expect_compound_columns_to_be_unique", "orders", "['kind'], row_condition='id <> 1'", 1),
    ("expect_compound_columns_to_be_unique", "orders", "['amount', 'amount'], ignore_row_if='any_value_is_missing'", 0),
    ("expect_select_column_values_to_be_unique_within_record", "orders", "['id', 'amount']", 1),
    ("expect_select_column_values_to_be_unique_within_record", "orders", "['id', 'amount'], ignore_row_if='any_value_is_missing'", 0),
    ("expect_multicolumn_sum_to_equal", "orders", "['id', 'amount'], 70", 0),
    ("expect_multicolumn_sum_to_equal", "orders", "['id'], 'amount', group_by=['kind']", 2),
    ("expect_column_values_to_be_within_n_stdevs", "daily", "'amount', group_by=['at'], sigma_threshold=3", 1),
    ("expect_column_values_to_be_within_n_moving_stdevs", "daily", "'amount', 'at'", 1),
    ("expect_column_values_to_be_within_n_moving_stdevs", "daily", "'amount', 'at', sigma_threshold=100000", 0),
    ("expect_row_values_to_have_data_for_every_n_datepart", "orders", "'day'", 1),
    ("expect_row_values_to_have_data_for_every_n_datepart", "orders", "'day', interval=2", 0),
    ("expect_row_values_to_have_data_for_every_n_datepart", "orders", "'day', exclusion_condition=\"date_day <> '2024-01-03'\"", 0),
    ("expect_row_values_to_have_data_for_every_n_datepart", "orders", "'at', test_start_date='2023-12-31', test_end_date='2024-01-02'", 1),
    ("expect_table_row_count_to_be_between", "orders", "1, 4", 0),
    ("expect_table_row_count_to_be_between", "orders", "3, group_by=['kind']", 2),
    ("expect_table_row_count_to_equal", "orders", "5", 1),
    ("expect_table_row_count_to_equal_other_table", "orders", "'`same`'", 0),
    ("expect_table_row_count_to_equal_other_table", "orders", "'`fewer`', group_by=['kind']", 1),
    ("expect_table_row_count_to_equal_other_table_times_factor", "orders", "'`same`', 2", 1),
    ("expect_table_aggregation_to_equal_other_table", "orders", "'sum(id)', '`fewer`'", 1),
    ("expect_table_aggregation_to_equal_other_table", "orders", "'sum(id)', '`fewer`', tolerance=4", 0),
    ("expect_table_aggregation_to_equal_other_table", "orders", "'sum(id)', '`fewer`', tolerance_percent=0.5", 0),
    ("equal_expression", "orders", "'sum(id)', '`orders`', compare_expression='sum(amount)'", 1),
    ("expect_column_distinct_count_to_equal_other_table", "orders", "'`fewer`', 'kind'", 0),
    ("expect_column_distinct_count_to_equal_other_table", "orders", "'`fewer`', 'id'", 1),
    ("expect_column_to_exist", "orders", "'KIND'", 0),
    ("expect_column_to_exist", "nothing", "'kind', column_index=2", 0),
    ("expect_column_to_exist", "orders", "'kind', column_index=1", 1),
    ("expect_column_to_exist", "nothing", "'other'", 1),
    ("expect_table_columns_to_contain_set", "orders", "['ID', 'colour', 'size']", 2),
    ("expect_table_columns_to_not_contain_set", "orders", "['ID', 'colour']", 1),
    ("expect_table_columns_to_match_set", "nothing", "['id', 'at', 'day', 'name', 'amount', 'kind']", 0),
    ("expect_table_columns_to_match_set", "orders", "['id']", 1),
    ("expect_table_columns_to_match_ordered_list", "orders", "['id', 'kind', 'amount', 'name', 'day', 'at']", 0),
    ("expect_table_columns_to_match_ordered_list", "swapped", "['id', 'kind', 'amount', 'name', 'day', 'at']", 1),
    ("expect_table_column_count_to_equal", "nothing", "6", 0),
    ("expect_table_column_count_to_be_between", "orders", "7", 1),
    ("expect_table_column_count_to_equal_other_table", "orders", "'`ranges`'", 1),
    ("expect_column_values_to_be_of_type", "orders", "'id', 'INT'", 0),
    ("expect_column_values_to_be_of_type", "nothing", "'id', 'string'", 1),
    ("expect_column_values_to_be_in_type_list", "orders", "'name', ['date', 'string']", 0),
    ("expect_row_values_to_have_recent_data", "recent", "'at', 'day', 1", 0),
    ("expect_row_values_to_have_recent_data", "recent", "'at', 'day', 1, row_condition=\"kind = 'b'\"", 1),
    ("expect_row_values_to_have_recent_data", "nothing", "'at', 'day', 1", 1),
    ("expect_grouped_row_values_to_have_recent_data", "recent", "['kind'], 'at', 'day', 1", 1),
]  # fmt: skip


def called(kind: str, table: str, arguments: str) -> str:
    package, _, name = kind.rpartition(".")
    return f"{{{{ {package or 'dbt_expectations'}.test_{name}('{table}', {arguments}) }}}}"


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
    tried = {(kind.rpartition(".")[0] or "dbt_expectations", kind.rpartition(".")[2]) for kind, *_ in FAILING}
    assert tests - tried == set()


def test_every_macro_of_dbt_date_is_tried() -> None:
    text = " ".join(
        [*(call for call, _ in VALUES), *(call for call, _ in NOW), *(query for query, _ in ROWS), CALENDAR]
    )
    tried = set(re.findall(r"dbt_date\.(\w+)\(", text))
    # These are called by others.
    inner = {"n_weeks_ago", "n_months_away"}
    assert {name for name in provided("dbt_date") if not name.startswith("_")} - tried - inner == set()
