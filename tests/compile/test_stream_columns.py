"""Columns that streams and windows name, and what beginners write; errors of streams are in fixtures/headers."""

from __future__ import annotations

import pytest

from tests.project.small_projects import FROM, PROJECT, clean, findings, line, model, only, orders_with

SOURCE = orders_with(
    "id string, ts timestamp, day date, plain timestamp_ntz, item struct<name string, at timestamp>, at string"
)
HOUR = f"select hour.start as s, count(*) as n {FROM} group by hour"


def files(stream: str, more: str = "", sql: str = f"select id {FROM}") -> dict[str, str | bytes]:
    header = f"streams:\n  shop.orders:\n    {stream}\n{more}"
    return {**SOURCE, **model(header, sql)}


FITTING = [
    "watermark: ts delay 1 hour",
    "watermark: TS delay 1 hour",
    "watermark: item.at as at2 delay 1 hour",
    "watermark: cast(at as timestamp) as at delay 1 hour",
    "watermark: cast(plain as timestamp) as t delay 1 hour",
    "watermark: from_json(id, schema_of_json('1')).x as t delay 1 hour",
    "watermark: _metadata.file_modification_time as t delay 1 hour",
    "{watermark: ts delay 1 hour, dedup: [id, ts]}",
    "{watermark: cast(at as timestamp) as t delay 1 hour, dedup: [ID, t, item.name]}",
]


@pytest.mark.parametrize("stream", FITTING)
def test_what_fits(stream, tmp_path):
    assert clean(tmp_path, files(stream))


def test_a_watermark_of_the_source_is_judged_where_it_is_declared(tmp_path):
    source = orders_with("id string, at string\n        watermark: at delay 1 hour")
    found = only(findings(tmp_path, {**source, **model("streams: [shop.orders]", f"select id {FROM}")}))
    assert (found.code, str(found.location)) == ("watermark-type", "sources/shop.yml:4:9")


WINDOWS = [
    ("tumbling(tss, 1 hour)", HOUR, "the window 'hour' is over 'tss', which no input has", "'ts'"),
    ("tumbling(item.tss, 1 hour)", HOUR, None, ""),
    ("tumbling(made, 1 hour)", f"select hour.start as s, count(*) as n from (select ts as made {FROM}) group by hour", None, ""),
    ("tumbling(tss, 1 hour)", f"select hour.start as s, count(*) as tss {FROM} group by hour",
     "the window 'hour' is over 'tss', which no input has", "'ts'"),
    ("tumbling(x.ts, 1 hour)", f"select hour.start as s, count(*) as n {FROM} x group by hour", None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("window", "sql", "message", "hint"), WINDOWS)
def test_the_time_of_a_window(window, sql, message, hint, tmp_path):
    found = findings(tmp_path, files("watermark: ts delay 1 hour", f"windows:\n  hour: {window}", sql))
    said = [d for d in found if d.code == "unknown-column" and "window" in d.message]
    assert [(d.message, str(d.location)) for d in said] == ([(message, "models/a.sql:6:9")] if message else [])
    assert all(hint in d.hint for d in said)
    if message:
        assert [d for d in found if d.is_error] == said


def test_a_part_of_a_window_that_does_not_exist(tmp_path):
    sql = f"select hour.strat as s, count(*) as n {FROM} group by hour"
    found = only(findings(tmp_path, files("watermark: ts delay 1 hour", "windows:\n  hour: tumbling(ts, 1 hour)", sql)))
    assert line(found) == "unknown-column models/a.sql:8:13 column 'hour.strat' not found"
    assert found.hint == "Did you mean 'hour.start'?"


FUNCTIONS = f"select twice(id) as x {FROM}"


@pytest.mark.parametrize(
    ("project", "header"),
    [
        (PROJECT + "    spark: {conf: {spark.sql.extensions: org.example.Functions}}\n", ""),
        (PROJECT, "/*---\npre_hook: create temporary function twice as 'org.example.Twice'\n---*/\n"),
    ],
)
def test_a_function_that_something_else_may_bring(project, header, tmp_path):
    assert clean(tmp_path / "with", {"project.yml": project, "models/a.sql": header + FUNCTIONS})
    found = only(findings(tmp_path / "without", {"models/a.sql": FUNCTIONS}))
    assert line(found) == "unknown-function models/a.sql:1:8 Spark has no function 'twice'"


@pytest.mark.parametrize(
    ("sql", "finding", "hint"),
    [
        ("select cast(id as strin) as x {o}", "sql-syntax 1:19 unknown type 'strin'", "'string'"),
        ("select id::bigin as x {o}", "sql-syntax 1:12 unknown type 'bigin'", "'bigint'"),
        ("select round(id as x {o}", "sql-syntax 1:13 a bracket is not closed", "Add ')'."),
        ("select id) as x {o}", "sql-syntax 1:10 a closing bracket without an opening one", ""),
        ("with a as (select 1), select 2", "sql-syntax 1:21 a comma with nothing after it", ""),
        ("select * from { ref('a') }", "sql-syntax 1:15 a single brace is not valid SQL", "{{ ref('flights') }}"),
        ("select * from {{ ref(orders) }}", "jinja-undefined 1:22 'orders' is undefined", "ref('orders')"),
        ("{% if 1 %}{% else if 2 %}{% endif %}", "jinja-syntax 1:19 Jinja: expected '%}', got 'if'", "{% elif ... %}"),
        ("select {{ cents('x') }} {o}", "jinja-undefined 1:11 'cents' is undefined", "macros/"),
        ("select {{ scale('x') }} {o}", "jinja-undefined 1:11 'scale' is undefined", "Did you mean 'kit.scale'?"),
        ("select project {o}", "unknown-column 1:8 column 'project' not found", "Known: amount, id, item, ts."),
        ("select * {o} o join {o2} c using (idd)", "unknown-column 1:96 column 'idd' not found", "'id'"),
    ],
)
def test_what_beginners_write(sql, finding, hint, tmp_path):
    other = "{{ source('shop', 'customers') }}"
    kit = {"packages/kit/macros/m.sql": "{% macro scale(x) %}{{ x }}{% endmacro %}"}
    found = only(findings(tmp_path, {**kit, "models/a.sql": sql.replace("{o}", FROM).replace("{o2}", other)}))
    assert line(found).replace("models/a.sql:", "") == finding
    assert hint in found.hint
