"""Errors while a query runs: place and text of the user's file, no names of the engine's or of Java's, no trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.runtime.spark_support.error_places import explained
from tests.lab import Lab

HUGE = "(99999999999999999999999999999999999999BD)"
# By name: the expression, where in it the error is (None: Spark does not tell, and no single function can be meant),
# and how the message begins.
CASES = {
    "cast": ("cast(concat('x', id) as int)", 0, "The value 'x"),
    "boolean": ("cast(concat('x', id) as boolean)", 0, "The value 'x"),
    "day": ("cast(concat('2024-13-', id) as date)", 0, "The value '2024-13-"),
    "division": ("1 / (id - 1)", 0, "Division by zero [DIVIDE_BY_ZERO]"),
    "modulo": ("3 + 5 % (id - 1)", 4, "Remainder by zero [REMAINDER_BY_ZERO]"),
    "overflow": ("cast(id as int) + 2147483647", 0, "integer overflow [ARITHMETIC_OVERFLOW]"),
    "narrowing": ("cast(sqrt(-1 - id) as int)", 0, "The value NaN of the type"),
    "array": ("array(1, 2)[cast(id as int) + 5]", 0, "The index "),
    "element": ("element_at(array(1), cast(id as int) + 3)", 0, "The index "),
    "decimal": ("cast(id * 0 + 1000 as decimal(4, 2))", 0, "1000 cannot be represented as Decimal(4, 2)"),
    "decimal_sum": (f"(select sum(v) from values {HUGE}, {HUGE} as t(v)) + id", 8, "1" + "9" * 37 + "8 cannot be represented"),
    "date_text": ("to_date(concat('x', id), 'yyyy-MM-dd')", 0, "Text 'x"),
    "make_date": ("make_date(2024, 13, cast(id as int))", 0, "Invalid value for MonthOfYear"),
    "map_key": ("map(id, 1, id, 2)", 0, "Duplicate map key "),
    "regex": ("regexp_extract(concat('a', id), concat('(', id), 1)", 0, "The value of parameter(s) `regexp`"),
    "group": ("regexp_extract(concat('a', id), '(a)', cast(id as int) + 5)", 0, "The value of parameter(s) `idx`"),
    "zone": ("from_utc_timestamp(timestamp_seconds(id), concat('x', id))", 0, "The timezone: x"),
    "url": ("url_decode(concat('%', id))", 0, "The provided URL cannot be decoded"),
    "number": ("to_number(concat('x', id), '999')", 0, "The format is invalid: 999"),
    "charset": ("encode(concat('x', id), concat('utf-', id))", 0, "The value of parameter(s) `charset` in `encode`"),
    "json": ("from_json(concat('{', id), 'a int', map('mode', 'FAILFAST'))", 0, "the query parses a malformed string"),
    "variant": ("to_json(parse_json(concat('{', id)))", 8, "the query parses a malformed string"),
    "raised": ("case when id < 9 then raise_error('no such row') else 1 end", 22, "no such row [USER_RAISED_EXCEPTION]"),
    "subquery": ("id + (select v from values (1), (2) as t(v))", 5, "More than one row returned by a subquery"),
    "pattern": ("format_string('%d', concat('x', id))", 0, "a pattern of format_string() does not fit its value"),
    "sequence": ("sequence(1, 5, cast(-1 - id as int))", 0, "Illegal sequence boundaries"),
}  # fmt: skip
STREAMED = ("cast", "division", "overflow", "array", "element", "day", "regex", "json", "raised", "decimal_sum")
UNTYPED = "upper(from_json('{}', schema_of_json('{\"v\": [1]}')).v)"
HINTS = {
    "b_division": "Use `try_divide` to tolerate divisor being 0 and return NULL instead.",
    "b_array": "Use the SQL function `get()` to tolerate accessing element at invalid index and return NULL instead.",
    "b_overflow": "Use 'try_add' to tolerate overflow and return NULL instead.",
    "b_decimal": "",
}
# What nobody who wrote the project knows: names of the engine's, of Spark's classes and settings, of tasks, plans.
UNKNOWN = re.compile(
    r"__\w+|@(ref|source|input|output)|engine_staged|\bo\d+\.|org\.apache|java\.|scala\.|\.py\b|Traceback|\bat [\w.]+\("
    r"|#\d+|stage \d|TID|Job aborted|awaitResult|spark\.sql\.|ansi|SQLSTATE|Query \[|line \d+,? pos|== SQL",
    re.IGNORECASE,
)


def made(lab: Lab) -> dict[str, str]:
    """Models that fail, each with the place where it does."""
    places = {}
    for name, (expression, at, _) in CASES.items():
        lab.model(f"b_{name}", f"select\n  id,\n  {expression} as x\nfrom range(3)\n")
        places[f"b_{name}"] = "1:1" if at is None else f"3:{3 + at}"
    for name in STREAMED:
        expression, at, _ = CASES[name]
        query = f"select\n  id,\n  {expression} as x\nfrom {{{{ source('shop', 'events') }}}}\n"
        lab.model(f"s_{name}", f"/*---\nstreams: [shop.events]\n---*/\n{query}")
        places[f"s_{name}"] = "1:1" if at is None else f"6:{3 + at}"
    lab.model(
        "deletes",
        "/*---\nstreams: [shop.events]\nunique_key: id\nsequence_by: id\ndelete_when: 1 / (id - 1) > 3\n---*/\n"
        "select id, kind from {{ source('shop', 'events') }}\n",
    )
    lab.model(
        "grouped",
        "/*---\nstreams: {shop.events: {watermark: at delay 1 hour}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n"
        "output_mode: update\n---*/\nselect hour.start as begun,\n  sum(1 / (id - 1)) as x\n"
        "from {{ source('shop', 'events') }} group by hour\n",
    )
    lab.model("untyped", f"select id,\n  {UNTYPED} as x\nfrom {{{{ source('shop', 'events') }}}}\n")
    return {**places, "deletes": "5:14", "grouped": "7:7", "untyped": "2:3"}


UNIT = """unit_tests:
  - name: fails
    model: tested
    given: {shop.events: [{id: 1}]}
    expect: {rows: []}
"""


@pytest.mark.spark
def test_every_error_is_told_in_the_users_words_at_its_place(lab: Lab) -> None:
    places = made(lab)
    lab.model("good", "select id from range(3)")
    lab.model(
        "tested", "/*---\nstreams: [shop.events]\n---*/\nselect 1 / (id - 1) as x from {{ source('shop', 'events') }}"
    )
    lab.model("checked", "/*---\nexpectations: [{name: c, check: 1 / (id - 1) > 0}]\n---*/\nselect id from range(3)")
    lab.write("tests/singular.sql", "select id\nfrom {{ ref('good') }}\nwhere id < 10 and\n  1 / (id - 1) > 0\n")
    lab.write("tests/unit.yml", UNIT)
    lab.land("a", [{"id": i, "at": "2024-05-01T10:05:00Z", "kind": "paid"} for i in range(3)])
    result = lab.run("build")
    assert not result.err
    ended = {e["node"].partition(".")[2]: e["status"] for e in result.events if e["event"] == "ModelFinished"}
    # A check that cannot be computed fails for its row, and not for the model.
    rest = {name: status for name, status in ended.items() if status != "error"}
    assert rest == {"good": "success", "checked": "success", "tested": "skipped"}
    found = {e["node"]: e for e in result.events if e["event"] == "Diagnosed" and e["node"] in ended}
    assert {name: f"{e['line']}:{e['column']}" for name, e in found.items() if name in places} == places
    assert {e["file"] for e in found.values()} == {f"models/{name}.sql" for name in found}
    for name in places:
        kind, _, case = name.partition("_")
        if kind in {"b", "s"} and case in CASES:
            assert found[name]["message"].startswith(CASES[case][2]), found[name]
    assert {name: found[name]["hint"] for name in HINTS} == HINTS
    assert found["untyped"]["message"].startswith(f"'{UNTYPED}': The first parameter requires")
    tests = {e["node"]: e for e in result.events if e["event"] == "TestFinished"}
    assert tests["test.singular"]["message"] == "Division by zero [DIVIDE_BY_ZERO]"
    told = {e["node"]: e for e in result.events if e["event"] == "Diagnosed" and e["node"] not in ended}
    assert (told["singular"]["file"], told["singular"]["line"], told["singular"]["column"]) == (
        "tests/singular.sql",
        4,
        3,
    )
    unit = next(e for e in result.events if e["event"] == "TestFinished" and e["node"].startswith("unit_test."))
    assert (unit["status"], unit["message"]) == ("error", "Division by zero [DIVIDE_BY_ZERO]")
    for event in result.events:
        for part in (str(event.get("message") or ""), str(event.get("hint") or "")):
            assert not UNKNOWN.search(part), event
            assert "\n" not in part or event["event"] != "Diagnosed"


@pytest.mark.parametrize(
    ("text", "trace", "fragment", "message", "advice"),
    [
        (("[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: [DIVIDE_BY_ZERO] Division by zero. Use "
         '`try_divide` to tolerate divisor being 0 and return NULL instead. If necessary set "spark.sql.ansi.enabled" to '
         '"false" to bypass this error. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nselect 1 / 0\n       ^^^^^'),
         "", "", "Division by zero [DIVIDE_BY_ZERO]", "Use `try_divide` to tolerate divisor being 0 and return NULL instead."),
        (("An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
         "\tat a.B.c(B.scala:1)\nCaused by: java.lang.RuntimeException: outer\nCaused by: org.apache.spark.SparkArithmeticException: "
         "[X_Y] Too large. SQLSTATE: 22003"), "", "", "Too large [X_Y]", ""),
        ("[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: Exception thrown in awaitResult:  SQLSTATE: XXKST",
         "Caused by: java.lang.IllegalStateException: the reason", "", "the reason", ""),
        (("Job aborted due to stage failure: Task 1 in stage 14.0 failed 1 times, most recent failure: Lost task 1.0 in stage "
         "14.0 (TID 29) (192.0.2.2 executor driver): java.util.IllegalFormatConversionException: d != "
         "org.apache.spark.unsafe.types.UTF8String"), "", "", "a pattern of format_string() does not fit its value: d != string", ""),
        (": java.lang.IllegalStateException: Invalid schema for v2:\n- Invalid type for x: unknown is not supported until v3",
         "", "", "Invalid schema for v2: Invalid type for x: unknown is not supported until v3", ""),
        ('[DATATYPE_MISMATCH.A] Cannot resolve "upper(c)" due to data type mismatch: It requires text. ; line 3 pos 2;', "",
         "upper( c )", "'upper( c )': It requires text [DATATYPE_MISMATCH.A]", ""),
        ("", "", "", "Spark failed without a message", ""),
    ],
)  # fmt: skip
def test_what_an_error_says(text: str, trace: str, fragment: str, message: str, advice: str) -> None:
    assert explained(text, trace, fragment) == (message, advice)


def test_this_file_knows_no_jvm() -> None:
    """The texts are read without Spark."""
    source = Path(explained.__code__.co_filename).read_text(encoding="utf-8")
    assert "pyspark" not in source
