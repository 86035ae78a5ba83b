"""Types and lineage without Spark: the fixtures, and what they cannot show."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlglot.errors import SqlglotError

from engine.compile.columns import ColumnFacts, InputColumns, QueryColumns
from engine.compile.columns.find_columns import columns_of
from engine.compile.sql.dialect import tokenize
from engine.compile.types import spark_types
from tests.compile.columns.cases import Case, described, found_in, parsed, read_cases, tables
from tests.fixtures import read_rows

FIXTURE = Path(__file__).parent / "fixtures/no_such_names.txt"
CASES = read_cases()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_columns_of_a_query(case: Case):
    found = found_in(case.sql, **case.windows)
    assert described(found) == case.expected
    assert found.unresolved == ()


def test_there_are_cases():
    assert len(CASES) > 110


@pytest.mark.slow
def test_the_tree_is_only_looked_at():
    for case in CASES:
        tree = parsed(case.sql)
        before = repr(tree)
        columns_of(tree, tables(), case.windows, case.sql)
        assert repr(tree) == before


@pytest.mark.slow
def test_nothing_raises_for_what_it_does_not_understand():
    chance, inputs, read = random.Random(7), tables(), 0
    while read < 400:
        case = chance.choice(CASES)
        tokens = tokenize(case.sql)
        words = [case.sql[token.start : token.end + 1] for token in tokens]
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(words))
            words[place : place + 1] = chance.choice([[], [chance.choice(words)], [words[place], chance.choice(words)]])
        sql = " ".join(words)
        try:
            tree = parsed(sql)
        except (SqlglotError, AttributeError, IndexError, TypeError, ValueError):
            continue
        columns_of(tree, inputs, case.windows, sql)
        read += 1


@pytest.mark.slow
def test_long_chains_are_no_harm():
    assert found_in(f"select {' or '.join(['rain'] * 3000)} as r from weather").columns[0].type == "boolean"
    assert found_in(f"select {' + '.join(['temp'] * 3000)} as r from weather").columns[0].type == "double"
    assert found_in(f"select {' || '.join(['origin'] * 3000)} as r from weather").columns[0].type == "string"


# The text of a column


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("select a, b as c, d + 1 e from t", ["a", "b", "d + 1"]),
        ("select distinct a, 'x, y' as b from t", ["a", "'x, y'"]),
        (
            "select f(a, b) as c, (select max(x) from u) as m, arr[1] from t",
            ["f(a, b)", "(select max(x) from u)", "arr[1]"],
        ),
        ("with w as (select 1 as q) select -- the key\n a, b /* note */ as c -- last\n from t", ["a", "b"]),
        ("select a as `from`, `group` as b from t where x = 1", ["a", "`group`"]),
        ("select case when a then 'b' end as c\nfrom t order by 1", ["case when a then 'b' end"]),
        ("select a from t union all select b from u", ["a"]),
        ("select 1 as one", ["1"]),
        ("(select a from t)", [""]),
    ],
)
def test_the_users_text_of_a_column(sql, texts):
    found = found_in(sql, {"t": InputColumns("model.t", None), "u": InputColumns("model.u", None)})
    assert [column.sql for column in found.columns] == texts


def test_the_text_of_a_star_is_the_star():
    found = found_in("select w.*, 1 as one from weather w")
    assert [column.sql for column in found.columns] == ["w.*"] * 6 + ["1"]


# Names


def test_two_columns_of_one_name_are_named_once():
    found = found_in("select carrier, origin as Carrier, 1 as n, 2 as n from flights")
    assert found.duplicates == ("Carrier", "n")


@pytest.mark.parametrize(
    "sql", ["transform(array(1), x -> x)", "substring(carrier, 1)", "row_number() over (order by price)"]
)
def test_a_name_that_is_not_sure_says_so(sql):
    (column,) = found_in(f"select {sql} from flights").columns
    assert not column.named


# Inputs


def test_placeholders_name_models_and_sources_by_their_short_names_and_themselves():
    inputs = {
        "@ref flights": InputColumns("model.flights", (("origin", "string"),)),
        "@source ops.departures": InputColumns("source.ops.departures", (("id", "int"),)),
    }
    sql = "select flights.origin, departures.id, `@ref flights`.origin as o from `@ref flights` cross join `@source ops.departures`"
    assert described(found_in(sql, inputs)) == (
        "origin: string <- model.flights.origin\nid: int <- source.ops.departures.id\no: string <- model.flights.origin"
    )


def test_a_watermark_adds_its_column_or_replaces_one_of_its_name():
    columns = (("at", "string"), ("data", "struct<at: timestamp>"), ("id", "int"))
    added = InputColumns("source.a.b", columns, added=(("at", "data.at"), ("day", "date(data.at)")))
    assert described(found_in("select * from t", {"t": added})) == (
        "at: timestamp <- source.a.b.data.at\n"
        "data: struct<at:timestamp> <- source.a.b.data\n"
        "id: int <- source.a.b.id\n"
        "day: date <- source.a.b.data.at"
    )


def test_a_star_leaves_hidden_columns_out():
    hidden = (("_metadata", "struct<file_path: string>"),)
    inputs = {"t": InputColumns("source.a.b", (("id", "int"),), hidden=hidden)}
    sql = "select *, _metadata.file_path as p, t._metadata as m from t"
    assert described(found_in(sql, inputs)).splitlines()[1:] == [
        "p: string <- source.a.b._metadata.file_path",
        "m: struct<file_path:string> <- source.a.b._metadata",
    ]


def test_a_table_nobody_declares_is_unknown():
    assert described(found_in("select a, count(*) as n from nowhere group by a", {})) == "a: ?\nn: bigint"


def test_a_query_becomes_the_input_of_the_next():
    found = found_in("select tiny as t, array(struct(small as s)) as l, count(*) from numbers group by all")
    assert found.as_input("model.a", in_table=True) == InputColumns(
        "model.a", (("t", "int"), ("l", "array<struct<s:int>>"), ("count(1)", "bigint"))
    )
    assert found.as_input("model.a", in_table=False).columns[0] == ("t", "tinyint")
    assert QueryColumns(None).as_input("model.a", in_table=True) == InputColumns("model.a", None)


def test_an_input_with_an_unsure_name_has_other_columns_too():
    found = QueryColumns((ColumnFacts("a", "int"), ColumnFacts("f", "int", named=False)))
    following = {"t": found.as_input("model.x", in_table=True)}
    assert described(found_in("select a, b from t", following)) == "a: int <- model.x.a\nb: ? <- model.x.b"
    assert found_in("select * from t", following).columns is None
    assert found_in("select b from t", following).unresolved == ()


def test_why_something_is_not_known():
    assert found_in("select * from events").unknown == ("the columns of source.lost.events are unknown",)
    assert found_in("select my_udf(price) as p from flights").unknown == ("the type of p is not known",)


# Names that nothing has


@pytest.mark.parametrize(("sql", "name", "near"), read_rows(FIXTURE, "names", 3))
def test_a_name_that_no_input_has(sql, name, near):
    (missing,) = columns_of(parsed(sql), tables(), {}, sql).unresolved
    assert (missing.name, *missing.near[:1]) == tuple(filter(None, (name, near)))
    assert sql[missing.offset :].startswith((name, name.rsplit(".", 1)[-1]))


@pytest.mark.parametrize(
    "sql",
    [
        "select anything from events",
        "select anything from flights join events",
        "select carrier from flights order by price, carrier",
        "select count(*) as n from flights group by carrier having n > 1 and max(price) > 1",
        "select price * 2 as p from flights group by p",
        "select _metadata.file_path from flights",
        "select current_user, user, current_date from flights",
        "select timestampadd(hour, 1, scheduled_at), datediff(day, scheduled_at, departed_at) from flights",
        "select transform(legs, (l, i) -> l.miles + i) from departures",
        "select xx from (select carrier, price from flights) pivot (sum(price) for carrier in ('a' as xx))",
        "select window.start from flights group by window(scheduled_at, '1 hour')",
        "select sum(price) from flights group by carrier having `sum(price)` > 1 order by -`sum(price)`",
        "select substring(carrier, 1) from flights order by `substring(carrier, 1, 2147483647)`",
        "select /*+ broadcast(w) */ 1 from flights f join weather w using (origin)",
    ],
)
def test_what_may_be_right_is_not_reported(sql):
    assert found_in(sql).unresolved == ()


# Types as text


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("struct<a: int, `b c`: array<LONG> not null comment 'x, y', d map<string,decimal>>",
         "struct<a:int,`b c`:array<bigint>,d:map<string,decimal(10,0)>>"),
        ("varchar(10)", "string"),
        ("TIMESTAMP_LTZ", "timestamp"),
        ("numeric(5)", "decimal(5,0)"),
        ("interval day to second", "interval day to second"),
        ("time", "time(6)"),
        ("string collate UNICODE", None),
        ("geography(4326)", None),
        ("struct<a", None),
        ("int int", None),
        ("", None),
    ],
)  # fmt: skip
def test_types_are_read_as_spark_prints_them(written, normal):
    assert spark_types.normal(written) == normal


def test_fields_of_a_struct():
    assert spark_types.fields("struct<a:int,`b:c`:array<struct<x:int,y:int>>,d:decimal(3,1)>") == (
        ("a", "int"),
        ("b:c", "array<struct<x:int,y:int>>"),
        ("d", "decimal(3,1)"),
    )
    assert spark_types.entry("map<string,struct<a:int,b:int>>") == ("string", "struct<a:int,b:int>")
