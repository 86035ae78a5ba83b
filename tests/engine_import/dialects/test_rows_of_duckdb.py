"""Expressions of DuckDB: its result of each beside Spark's result of the translation."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from engine_import.dialects.translate import translated
from tests.lab import LabSession

ROWS = """select * from (values
    (1, 'a,b', 7, 2, 2.5::double, timestamp '2024-01-31 23:30:00.25', timestamp '2024-02-01 00:10:00', 'x1y2', 10),
    (2, 'b', -7, 2, -3.5::double, timestamp '2023-12-31 10:00:00', timestamp '2024-01-07 10:00:00', 'It''s\\d', null),
    (3, 'c.d', 9, 4, 0.5::double, timestamp '2024-03-04 00:00:00', timestamp '2024-03-04 00:00:00', '', 30),
    (4, null, 8, 3, null, null, timestamp '2024-12-30 12:00:00', 'X', 40)
) as t(id, s, i, j, f, a, b, r, n)"""
# Each is compared over the four rows.
VALUES = [
    "i / j", "i // j", "i % j", "i ^ 2", "-i ^ 2", "cast(i / j as int)", "(i / j)::int", "cast(f / 1 as bigint)",
    "s ~ 'b'", "s ~ '[a-z]'", "s !~ 'b'", "s || 'x'", "concat(s, '-', n)", "split(s, ',')", "str_split(s, '.')",
    "split(s, ',')[1]", "split(s, ',')[2]", "split(s, ',')[-1]", "[i, j][1]", "{'k': i, 'v': s}.v",
    "regexp_matches(r, '\\d')", "regexp_extract(r, '([a-z])(\\d)')", "regexp_extract(r, '([a-z])(\\d)', 2)",
    "regexp_replace(r, '([a-z])(\\d)', '\\2\\1', 'g')", "regexp_full_match(r, 'X')", "'it''s \\n'", "r = 'It''s\\d'",
    "r ilike 'x%'", "starts_with(r, 'x')", "strpos(r, '1')", "length(r)", "upper(r)", "substring(r, 2, 2)",
    "date_diff('month', a, b)", "datediff('day', a, b)", "date_diff('week', a, b)", "date_diff('year', a, b)",
    "date_diff('hour', a, b)", "date_diff('quarter', a, b)", "date_sub('month', a, b)", "date_sub('day', a, b)",
    "date_trunc('month', a)", "date_trunc('week', a)", "extract(dow from a)", "date_part('dow', a)", "dayofweek(a)",
    "isodow(a)", "extract(isodow from a)", "extract(week from b)", "week(b)", "extract(second from a)",
    "date_part('second', a)", "extract(epoch from a)", "epoch(a)", "extract(doy from b)", "extract(isoyear from b)",
    "dayname(a)", "monthname(a)", "strftime(a, '%Y-%m-%d %H:%M:%S')", "strftime(a, '%d.%m.%y')", "a::date",
    "strptime('1/2/2024', '%m/%d/%Y')", "strptime('20240102', '%Y%m%d')", "last_day(a)", "a + interval 1 day",
    "log(i * i)", "ln(j)", "trunc(f)", "round(f)", "greatest(n, 20)", "least(n, 20)", "coalesce(n, 0)",
    "list_contains([1, 2], j)", "array_to_string(['a', null, 'b'], '-')", "list_distinct([1, 1])",
    "generate_series(1, j)", "len(s)", "nullif(i, 7)", "try_cast(s as int)", "s::varchar", "i::decimal(10, 2)",
    "case when n > 10 then 'big' else 'small' end", "if(n is null, 0, 1)", "n is distinct from 10",
]  # fmt: skip
# Each is one value, or a row of a query.
QUERIES = [
    "select count(*), sum(n), avg(n), min(s), max(s) from t", "select string_agg(s, ';' order by s) from t",
    "select string_agg(s, ',' order by id desc) from t", "select any_value(n) from t where id in (2, 3)",
    "select array_agg(n) from (select n from t order by id) where n is null", "select arg_max(s, i), arg_min(s, i) from t",
    "select quantile_cont(n, 0.5), median(n), stddev(i) from t", "select count(*) filter (where n > 10) from t",
    "select id, row_number() over (order by n) as p from t", "select id, row_number() over (order by n desc, id) as p from t",
    "select id, first_value(n) over (order by n, id) as p from t", "select id from t order by n limit 2",
    "select id, n from t qualify row_number() over (order by n) = 1", "select id, i + 1 as k from t qualify rank() over (order by k) <= 2",
    "select id, rank() over (order by i) as k from t qualify k < 3", "select id, n, from t where i in (7, 9)",
    "select * exclude (a, b, f, r, s) from t", "select id, x from t, unnest(split(s, ',')) as u(x)",
    "select id, unnest(split(s, ',')) as x from t", "select u.x from unnest([3, 4]) as u(x)",
    'with p as (select id, s as "my s" from t) select "my s" from p where id = 1',
    "select j, count(*) as c, list(id order by id) as l from t group by all order by j limit 5",
]  # fmt: skip


def shown(value: Any) -> Any:
    """A value as it can be compared: of either engine."""
    if isinstance(value, float | Decimal | int) and not isinstance(value, bool):
        return round(float(value), 9) if not math.isnan(value) else "nan"
    if isinstance(value, dict):
        return [shown(part) for part in value.values()]
    if isinstance(value, list | tuple):
        return [shown(part) for part in value]
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        return text.removesuffix("T00:00:00")
    return value


@pytest.fixture(scope="module")
def warehouse():
    connection = duckdb.connect()
    connection.execute(f"create table t as {ROWS}")
    return connection


@pytest.mark.spark
def test_translations_have_the_rows_of_duckdb(lab_session: LabSession, warehouse: Any) -> None:
    spark: Any = lab_session.spark
    spark.sql(translated(ROWS, "duckdb").text).createOrReplaceTempView("t")
    different = []
    queries = [f"select id, {value} as x from t" for value in VALUES] + QUERIES
    for query in queries:
        expected = sorted(map(str, shown(warehouse.execute(query).fetchall())))
        new = translated(query, "duckdb").text
        try:
            rows = [list(row) for row in spark.sql(new).collect()]
            found = sorted(map(str, shown([[*row] for row in rows])))
        except Exception as error:  # noqa: BLE001 - whatever Spark says is what differs
            found = [str(error).splitlines()[0][:200]]
        if found != expected:
            different.append((query, new, expected, found))
    assert different == []
    assert len(queries) > 90
