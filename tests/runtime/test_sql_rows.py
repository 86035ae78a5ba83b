"""`engine sql` and `engine export duckdb` give the rows that Spark gives: delete files, deletion vectors, types."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark

UPSERT = """/*---
streams: [shop.events]
unique_key: [id]
sequence_by: at
format_version: {version}
{more}
---*/
select id, at, kind, amount from {{{{ source('shop', 'events') }}}}
"""
TYPES = """/*---
materialized: table
---*/
select true as yes, cast(7 as tinyint) as small, 9223372036854775807 as large, cast(1.5 as float) as single,
  cast('NaN' as double) as nan, 12345678901234567890123456789.123456789bd as exact, cast(1.20 as decimal(5,2)) as money,
  timestamp'2024-05-01 00:00:00.25' as moment, timestamp_ntz'2024-05-01 00:00:00' as plain, date'2024-02-29' as day,
  timestamp'+12345-01-01 00:00:00' as far, timestamp'0001-01-01 00:00:00' as first, cast('abc' as binary) as bytes,
  array(1, null, 3) as listed, map('a', 1) as mapped, 'ü|n' as text, cast(null as string) as none,
  named_struct('x', 1, 'y', array(named_struct('at', timestamp'2024-05-01 00:00:00'))) as inside
"""


def rows(lab: Lab, *command: str) -> list[dict[str, Any]]:
    result = lab.run(*command, "--all", "--output", "json")
    assert result.code == 0, result.text
    return sorted((json.loads(line) for line in result.out.splitlines()), key=str)


@pytest.mark.nightly
def test_deleted_rows_are_gone_in_both_versions_of_the_format(lab: Lab) -> None:
    for version in (2, 3):
        lab.model(f"v{version}", UPSERT.format(version=version, more=""))
        lab.model(f"by_kind{version}", UPSERT.format(version=version, more="partition_by: [kind]"))
    models = ("v2", "by_kind2", "v3", "by_kind3")
    lab.land("a", [event(i, "10:00", kind="new", amount=i) for i in range(200)])
    lab.build()
    lab.land("b", [event(i, "10:05", kind="paid", amount=-i) for i in range(0, 300, 7)])
    lab.build()
    for name in models:
        table = lab.table(name)
        assert table is not None
        # Without delete files this would show nothing.
        assert int(table.history[0].summary["total-position-deletes"]) > 0, name
        query = f"from {{{{ ref('{name}') }}}}"
        spark = rows(lab, "show", "--inline", f"select * {query}")
        assert len(spark) == 214
        assert rows(lab, "sql", f"select * {query}") == spark
        total = f"select kind, count(*) as n, cast(sum(id) as bigint) as ids, sum(amount) as amount {query} group by kind order by kind"
        assert rows(lab, "sql", total) == rows(lab, "show", "--inline", total)
    # A later commit, with the same table open to nobody.
    lab.land("c", [event(i, "10:10", kind="gone", amount=0) for i in range(50)])
    lab.build()
    assert rows(lab, "sql", "select * from v3") == rows(lab, "show", "--inline", "select * from {{ ref('v3') }}")
    file = lab.root / "lab.duckdb"
    assert lab.run("export", "duckdb", str(file)).code == 0
    with duckdb.connect(str(file), read_only=True) as database:
        for name in models:
            found = database.execute(f"select count(*), sum(id), sum(amount) from {name}").fetchone()
            (spark_,) = rows(lab, "show", "--inline",
                             f"select count(*) as n, sum(id) as i, sum(amount) as a from {{{{ ref('{name}') }}}}")  # fmt: skip
            assert found == tuple(spark_.values()), name


def test_types_are_shown_as_spark_shows_them(lab: Lab) -> None:
    lab.model("types", TYPES)
    lab.build()
    (found,) = rows(lab, "sql", "select * from types")
    assert [found] == rows(lab, "show", "types", "--table")
    # PySpark has other objects for structs, maps and bytes.
    others = ("inside", "mapped", "bytes")
    (spark,) = rows(lab, "show", "--inline", f"select * except ({', '.join(others)}) from {{{{ ref('types') }}}}")
    assert {name: value for name, value in found.items() if name not in others} == spark
    (sums,) = rows(lab, "sql", "select sum(exact) as e, sum(large) as l, count(distinct moment) as n from types")
    assert sums == {"e": "12345678901234567890123456789.123456789", "l": "9223372036854775807", "n": 1}


def test_a_table_with_a_variant_is_left_to_spark(lab: Lab) -> None:
    lab.model("v", "/*---\nmaterialized: table\nformat_version: 3\n---*/\nselect 1 as id, parse_json('{}') as v")
    lab.build()
    result = lab.run("sql", "select id from v")
    assert result.codes() == ["sql-query"]
    assert "engine show --inline" in result.out
    assert lab.run("export", "duckdb", str(lab.root / "x.duckdb")).code == 0
    with duckdb.connect(str(lab.root / "x.duckdb"), read_only=True) as database:
        assert database.execute("select table_name from duckdb_tables()").fetchall() == [("headrace_export",)]
