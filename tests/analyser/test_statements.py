"""Spark's own test queries: how a file is split, and what a project makes of its tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.analyser.own_queries import compared, kept, report
from tests.analyser.own_tables import Asked, as_model, declared
from tests.analyser.statements import DropView, MakeView, Query, files, statements
from tests.analyser.verdicts import BROKEN

FILE = """\
-- a comment; it ends no statement
--SET spark.sql.ansi.enabled=false
--CONFIG_DIM1 spark.sql.codegen.wholeStage=true
--IMPORT tables.sql
create temporary view v as select 1 as id;
/* before a query */ select id from v
where id = 1 -- no line of comments: it stays
;
select 'a\\;b' as x;
set spark.sql.caseSensitive=true;
insert into t values (1);
--QUERY-DELIMITER-START
select 1; -- one text
--QUERY-DELIMITER-END
with a as (select 1) select * from a; drop view if exists v;
"""


def test_a_file_is_split_as_by_sparks_suite(tmp_path: Path) -> None:
    (tmp_path / "tables.sql").write_text("create table T (a int, b decimal(10, 2)) using parquet;")
    (tmp_path / "a.sql").write_text(FILE)
    assert list(statements(tmp_path / "a.sql", tmp_path)) == [
        MakeView("t", columns="a int, b decimal(10, 2)"),
        MakeView("v", "create or replace temporary view v as select 1 as id"),
        Query("/* before a query */ select id from v\nwhere id = 1 -- no line of comments: it stays"),
        Query("select 'a\\;b' as x"),
        Query("select 1; -- one text"),
        Query("with a as (select 1) select * from a"),
        DropView("v"),
    ]


def test_files_of_other_functions_are_left_out(tmp_path: Path) -> None:
    for name in ("a.sql", "postgreSQL/b.sql", "udf/c.sql", "udf/postgreSQL/d.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("select 1")
    assert [str(path.relative_to(tmp_path)) for path in files(tmp_path)] == ["a.sql", "postgreSQL/b.sql"]


def test_tables_are_read_by_source_and_ctes_by_name() -> None:
    sql = "with T as (select t.id from t) select T.id, '{{' from T join u on u.id = T.id"
    assert as_model(sql, {"t": "s0", "u": "s1"}) == (
        "with T as (select t.id from {{ source('s0', 't') }}) select T.id, '{{ '{{' }}' from T "
        "join {{ source('s1', 'u') }} on u.id = T.id"
    )


def test_a_table_that_no_source_can_have_is_not_declared() -> None:
    assert declared((("a b", "int"), ("c", "struct<x:int>"))) == "`a b` int, `c` struct<x:int>"
    assert declared((("a", "int"), ("A", "int"))) is None
    assert declared((("a", "time(6)"),)) is None


def test_differences_are_counted_by_cause(tmp_path: Path) -> None:
    tables = {"t": (("id", "int"), ("s", "string"))}
    asked = [
        Asked("a.sql", 0, "select id from t", "", "", (("id", "int"),), tables),
        Asked("a.sql", 1, "select id from t", "", "", (("id", "bigint"),), tables),
        Asked("a.sql", 2, "select nothing from t", "", "", (("nothing", "int"),), tables),
        Asked("a.sql", 3, "select s from t", "SOME_ERROR", "no", None, tables),
        Asked("a.sql", 4, "select id, s from t", "", "", (("id", "int"),), tables),
        Asked("a.sql", 5, "select 1 as one", BROKEN, "", None, tables),
    ]
    kept_as = tmp_path / "verdicts.jsonl"
    assert list(kept(kept_as, asked)) == list(kept(kept_as, ())) == asked
    found, counts = compared(tmp_path / "project", asked)
    assert [(one.asked.number, one.kind, one.cause) for one in found] == [
        (1, "types", "int / bigint"), (2, "rejected", "unknown-column: column .. not found"),
        (3, "accepted", "SOME_ERROR"), (4, "count", "+1"),
    ]  # fmt: skip
    assert counts == Counter(agreed=1, types=1, rejected=1, accepted=1, count=1, **{"left out": 1})
    assert report(found, counts, 1).splitlines()[-1] == (
        "6 queries: 1 agreed, 1 rejected, 1 accepted, 1 count, 0 names, 1 types, 1 left out"
    )
