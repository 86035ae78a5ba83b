"""Which types of columns are certain, so that they may reject; and the types of parts of times."""

from __future__ import annotations

import pytest

from engine.compile.columns import InputColumns
from engine.compile.columns.find_columns import columns_of
from engine.compile.nodes.column_facts import ColumnFacts
from engine.compile.streaming.parse_statement import parse
from tests.lab import LabSession

COLUMNS = {
    "id": "int", "amount": "double", "kind": "string", "ts": "timestamp", "d": "date", "ntz": "timestamp_ntz",
    "item": "struct<name:string,price:double>", "span": "interval day to second", "months": "interval year to month",
    "m": "map<string,int>",
}  # fmt: skip
CERTAIN = [
    "id", "item.price", "1", "'x'", "null", "cast(id as string)", "kind::date", "id + 1", "(amount * 2) - id", "id > 3",
    "kind in ('a')", "struct(id as n)", "array(amount)", "map('k', id)", "upper(kind)", "count(*)", "sum(amount)", "max(item.name)",
    "coalesce(id, 0)", "cast(extract(secs from ts) as int)",
]  # fmt: skip
BELIEVED = [
    "extract(secs from ts)",
    "extract(secs from ts) + 1",
    "struct(extract(hour from ts) as n)",
    "max(date_part('secs', ts))",
]
SECONDS = ("s", "sec", "secs", "second", "seconds")
PARTS = (
    "year", "y", "years", "yr", "yrs", "yearofweek", "quarter", "qtr", "month", "mon", "mons", "months", "week", "w", "weeks",
    "day", "d", "days", "dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy", "hour", "h", "hours", "hr", "hrs", "minute", "m",
    "min", "mins", "minutes", *SECONDS,
)  # fmt: skip


def column(expression: str) -> ColumnFacts:
    sql = f"select {expression} as c from t"
    tree = parse(sql).tree
    assert tree is not None, sql
    (found,) = columns_of(tree, {"t": InputColumns("model.t", tuple(COLUMNS.items()))}, {}, sql).columns or ()
    return found


@pytest.mark.parametrize("expression", CERTAIN)
def test_a_type_that_is_declared_or_follows_from_declared_ones_is_certain(expression: str) -> None:
    assert column(expression).certain


@pytest.mark.parametrize("expression", BELIEVED)
def test_a_type_that_compile_only_takes_for_it_is_not(expression: str) -> None:
    assert column(expression).type is not None
    assert not column(expression).certain


def test_a_step_of_the_query_hands_on_whether_a_type_is_certain() -> None:
    for inner, certain in (("id", True), ("extract(secs from ts)", False)):
        sql = f"with q as (select {inner} as x from t) select x + 1 as c from (select * from q)"
        tree = parse(sql).tree
        assert tree is not None
        (found,) = columns_of(tree, {"t": InputColumns("model.t", tuple(COLUMNS.items()))}, {}, sql).columns or ()
        assert found.certain is certain


@pytest.mark.parametrize("part", SECONDS)
@pytest.mark.parametrize("of", ["ts", "d", "ntz", "span"])
def test_seconds_have_fractions_by_each_of_their_names(part: str, of: str) -> None:
    assert {column(f"extract({part} from {of})").type, column(f"date_part('{part}', {of})").type} == {"decimal(8,6)"}


@pytest.mark.nightly_cases("months", "span")
@pytest.mark.spark
@pytest.mark.parametrize("of", ["ts", "d", "ntz", "span", "months"])
def test_parts_of_times_have_the_types_that_spark_gives_them(lab_session: LabSession, of: str) -> None:
    view = ", ".join(f"cast(null as {type_}) as {name}" for name, type_ in COLUMNS.items())
    spark, other = lab_session.spark, []
    for part in PARTS:
        for call in (f"extract({part} from {of})", f"date_part('{part.upper()}', {of})", f"datepart('{part}', {of})"):
            try:
                (field,) = spark.sql(f"select {call} as c from (select {view})").schema.fields
            except Exception:  # noqa: BLE001 - a part that such a value does not have
                continue
            ours = column(call).type
            if ours != field.dataType.simpleString():
                other.append((call, ours, field.dataType.simpleString()))
    assert other == []
