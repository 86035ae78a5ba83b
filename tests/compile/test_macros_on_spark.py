"""The engine's macros on Spark itself: the values that they give, and that streams take them."""

from __future__ import annotations

import hashlib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from engine.compile.declarations.compile_context import own_macros
from engine.compile.templates.template_names import TemplateNames
from engine.jinja import Sandbox
from tests.lab import LabSession

pytestmark = pytest.mark.spark
FAILURES = (PySparkException, Py4JJavaError)
GIVEN = """
select * from values
    ('1', '2024-01-01T00:00:00Z', named_struct('name', 'pen', 'price', 1.5D), 10L)
    as orders(id, time, item, n)
"""


def rendered(sql: str) -> str:
    sandbox = Sandbox(TemplateNames({}).for_models())
    sandbox.add_macros(own_macros())
    return sandbox.render(sql, "a.sql").text


@pytest.fixture(scope="module")
def spark(lab_session: LabSession) -> Any:
    spark = lab_session.spark
    spark.sql(GIVEN).createOrReplaceTempView("orders")
    yield spark
    spark.catalog.dropTempView("orders")


def rows(spark: Any, sql: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.sql(rendered(sql)).collect()]


COLUMNS = [
    ("star()", ["id", "time", "item", "n"]),
    ("star(except=['item', 'n'])", ["id", "time"]),
    ("star('o', except='item')", ["id", "time", "n"]),
    ("rename({'id': 'order_id', 'n': 'count'}, from='o')", ["time", "item", "order_id", "count"]),
    ("set_type({'time': 'timestamp', 'id': 'int'})", ["item", "n", "time", "id"]),
    ("flatten('item')", ["name", "price"]),
    ("flatten('o.item', ['name', 'price'], prefix='item_')", ["item_name", "item_price"]),
]


@pytest.mark.parametrize(("call", "columns"), COLUMNS)
def test_the_columns_of_a_select_list(call, columns, spark):
    assert spark.sql(rendered(f"select {{{{ {call} }}}} from orders as o")).columns == columns


def test_set_type_gives_the_types(spark):
    (row,) = rows(spark, "select {{ set_type({'time': 'timestamp', 'id': 'int'}) }} from orders")
    assert row["id"] == 1
    assert str(row["time"]) == "2024-01-01 00:00:00"


def test_set_type_stops_at_what_cannot_be_cast_unless_told_otherwise(spark):
    with pytest.raises(FAILURES, match="CAST_INVALID_INPUT"):
        rows(spark, "select {{ set_type({'time': 'int'}) }} from orders")
    assert rows(spark, "select {{ set_type({'time': 'int'}, safe=true) }} from orders")[0]["time"] is None


KEYS = [
    ("ab", "c"), ("a", "bc"), ("abc", None), (None, "abc"), ("abc", ""), ("", "abc"), (None, None), ("", ""),
    ("1:a", "b"), ("1:a1:b", None), ("-", None), (None, "-"), ("2:ab", "1:c"), ("é", "e"),
]  # fmt: skip


def test_no_two_rows_share_a_surrogate_key(spark):
    frame = spark.createDataFrame(KEYS, "a string, b string")
    frame.createOrReplaceTempView("surrogates")
    found = rows(spark, "select a, b, {{ surrogate_key(['a', 'b']) }} as k from surrogates")
    keys = {(row["a"], row["b"]): row["k"] for row in found}
    assert all(keys[one] != keys[other] for one, other in combinations(KEYS, 2))


def test_a_surrogate_key_stays_what_it_was(spark):
    """Keys are stored in tables, so their making is as the handbook says, for good."""
    (row,) = rows(
        spark,
        "select {{ surrogate_key(['id', 'n', 'cast(null as string)', 'date \\'2024-01-31\\'', 'true']) }} as k from orders",
    )
    assert row["k"] == hashlib.md5(b"1:12:10-10:2024-01-314:true").hexdigest() == "a09e3c3faec1a26ea6e663215f4092fd"


JSON = [
    ('{"id": 1, "name": "a", "more": 2}', {"id": 1, "name": "a", "_malformed": None}),
    ("{}", {"id": None, "name": None, "_malformed": None}),
    ('{"id": "x", "name": "a"}', {"id": None, "name": "a", "_malformed": '{"id": "x", "name": "a"}'}),
    ('{"id": 1,', {"id": None, "name": None, "_malformed": '{"id": 1,'}),
    ("not json", {"id": None, "name": None, "_malformed": "not json"}),
    ("null", {"id": None, "name": None, "_malformed": "null"}),
    ('[{"id": 1}]', {"id": None, "name": None, "_malformed": '[{"id": 1}]'}),
    ("", None),
    (None, None),
]


@pytest.mark.parametrize(("text", "expected"), JSON)
def test_malformed_json_is_visible(text, expected, spark):
    spark.createDataFrame([(text,)], "text string").createOrReplaceTempView("texts")
    (row,) = rows(spark, "select {{ parse_json('text', 'id int, name string') }} as j from texts")
    assert row["j"] == expected


def test_malformed_json_stops_the_query_if_it_is_to(spark):
    spark.createDataFrame([("{",)], "text string").createOrReplaceTempView("texts")
    with pytest.raises(FAILURES, match="MALFORMED_RECORD_IN_PARSING"):
        rows(spark, "select {{ parse_json('text', 'id int', on_error='fail') }} as j from texts")


VALUES = [
    ("epoch_to_timestamp('1700000000')", "2023-11-14 22:13:20"),
    ("epoch_to_timestamp('1700000000123L', 'millis')", "2023-11-14 22:13:20.123"),
    ("epoch_to_timestamp('1700000000123456L', 'micros')", "2023-11-14 22:13:20.123456"),
    ("any_timestamp(\"'31.01.2024'\", ['yyyy-MM-dd', 'dd.MM.yyyy'])", "2024-01-31 00:00:00"),
    ("any_timestamp(\"'2024-01-31T10'\", [\"yyyy-MM-dd'T'HH\"])", "2024-01-31 10:00:00"),
    ("any_timestamp(\"'soon'\", ['yyyy-MM-dd', 'dd.MM.yyyy'])", None),
    ("safe_cast(\"'x'\", 'int')", None),
    ("safe_cast(\"'7'\", 'int')", "7"),
]


@pytest.mark.parametrize(("call", "expected"), VALUES)
def test_values(call, expected, spark):
    assert rows(spark, f"select cast({{{{ {call} }}}} as string) as x")[0]["x"] == expected


def test_a_stream_takes_them_all(spark, tmp_path: Path):
    """One streaming query with every macro, started twice: what it computes does not differ."""
    select = rendered(
        "select {{ star(except=['value']) }}, {{ surrogate_key(['value', 'timestamp']) }} as k,"
        " {{ safe_cast('value', 'int') }} as n, {{ epoch_to_timestamp('value') }} as at,"
        " {{ parse_json('cast(value as string)', 'a int') }} as j, {{ any_timestamp('cast(value as string)', 'yyyy') }} as t,"
        " {{ flatten('j0', ['a'], prefix='j_') }} from"
        " (select {{ set_type({'timestamp': 'timestamp'}) }}, named_struct('a', value) as j0 from {{ 'ticks' }})"
    )
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).option("numPartitions", 1).load()
    frame.createOrReplaceTempView("ticks")
    results = []
    for name in ("one", "two"):
        query = spark.sql(select).writeStream.format("memory").queryName(name).trigger(once=True).start()
        query.awaitTermination(60)
        results.append(spark.table(name).count())
        assert query.exception() is None
    assert results == [5, 5]


# What dbt-core 1.12.0 with dbt-duckdb 1.11.1 gives for generate_surrogate_key() of dbt_utils over the same rows: of a,
# of a and b, of all columns. Rows 2 and 3 share a key there, too.
ROWS_OF_KEYS = """
values
    ('ann', 'bob', 7, true, date '2024-05-01', cast(1.50 as decimal(10, 2))),
    ('ann-', 'bob', -7, false, date '1999-12-31', cast(0 as decimal(10, 2))),
    ('ann', '-bob', 0, null, null, null),
    (null, 'bob', null, true, date '0099-01-02', cast(-12.30 as decimal(10, 2))),
    ('', '', 9007199254740993, false, date '2024-02-29', cast(99999999.99 as decimal(10, 2))),
    (null, null, 2, null, null, cast(1 as decimal(10, 2))),
    ('Zoë ☃', "O'Brien", 3, true, date '2024-01-01', cast(2.5 as decimal(10, 2))),
    ('_dbt_utils_surrogate_key_null_', 'x', 4, false, date '2024-01-01', cast(2.5 as decimal(10, 2)))
    as rows(a, b, i, t, d, m)
"""
KEYS_OF_DBT = [
    ("7e0d7f8a5d96c24ffcc840f31bce72b2", "c1b15c531ec7407244415a1926b05bf5", "0c500d8b7f4fa6623a6a8e4b3ffda53e"),
    ("ef828bfef543fa1500d62911f8de5666", "749b38c796158e1040f2a52d1265e257", "90fe06b3aef53c9f20acafdf7124526f"),
    ("7e0d7f8a5d96c24ffcc840f31bce72b2", "749b38c796158e1040f2a52d1265e257", "08b1777d6174c5777a1298a700d65632"),
    ("f14cc5cdce0420f4a5a6b6d9d7b85f39", "d929d7955992ec9da2c7b4827502b882", "04265f17d3be958ae9b011c3e08ccb1e"),
    ("d41d8cd98f00b204e9800998ecf8427e", "336d5ebc5436534e61d16e63ddfca327", "0af304e5b752dc6e5723216ca76dd266"),
    ("f14cc5cdce0420f4a5a6b6d9d7b85f39", "92fd475bc0821b474d4c2da142257152", "3a1e0b1efbfa56c54f3396a7cd0a39eb"),
    ("e513284752aefb18023eca8e1db3c631", "001f6203b748600ee5a06b699ac6ddc6", "26831431b91d7a2700c6177476f63076"),
    ("f14cc5cdce0420f4a5a6b6d9d7b85f39", "3b4eefe862272d14394cff0e43854ab0", "53b12ee153032c85e57a493d0198f8d7"),
]


def test_keys_of_imported_models_are_those_that_dbt_gives(spark):
    from engine.jinja import MacroFile
    from engine_import.dbt.compatible_macros import package_text

    sandbox = Sandbox(TemplateNames({}).for_models())
    sandbox.add_macros([MacroFile("packages/dbt_utils/macros/dbt_utils.sql", package_text("dbt_utils"), "dbt_utils")])
    keys = [["a"], ["a", "b"], ["a", "b", "i", "t", "d", "m"]]
    calls = ", ".join(f"{{{{ dbt_utils.generate_surrogate_key({key}) }}}} as k{n}" for n, key in enumerate(keys))
    query = sandbox.render(f"select {calls} from {ROWS_OF_KEYS}", "a.sql").text
    assert [tuple(row) for row in spark.sql(query).collect()] == KEYS_OF_DBT
