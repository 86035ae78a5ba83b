"""Errors in SQL, Jinja, sources, targets and across models: one message each, at its place, with a hint.

Errors in a header are the fixture pairs of test_header_errors.py.
"""

from __future__ import annotations

import pytest

from tests.project.small_projects import FROM, ORDERS, PROJECT, check, compiled, findings, line, lines, model, only

SQL = [
    ("select a b c {o}", "sql-syntax models/a.sql:1:12 syntax error near 'c'", ""),
    ("select *\n{o}\nwhere (id = 1\n", "sql-syntax models/a.sql:3:7 a bracket is not closed", ""),
    ("select\n{% for x in [1, 2, 3] %}\n  {{ x }} as a{{ x }},\n{% endfor %}\n  id frm x\n{o}",
     "sql-syntax models/a.sql:5:10 syntax error near 'x'", ""),
    ("select * frm {{ source('shop', 'orders') }}",
     "sql-syntax models/a.sql:1:14 syntax error near 'source('shop', 'orders')'", ""),
    ("select id,\n{o}", "sql-syntax models/a.sql:1:10 a comma with nothing after it", "Remove the comma"),
    ("select id,, ts {o}", "sql-syntax models/a.sql:1:10 a comma with nothing after it", ""),
    ("select 'its,\n{o}", "sql-syntax models/a.sql:1:8 the SQL ends inside a quote or comment", "Close the quote"),
    ("select 1 -- it's\n /* open\n{o}", "sql-syntax models/a.sql:2:2 the SQL ends inside a quote or comment", ""),
    ("select 1 as a {o};\n\nselect 2", "not-a-query models/a.sql:3:1 a second statement in the model", "a model is one query"),
    ("insert into t select * {o}", "not-a-query models/a.sql:1:1 a model is a SELECT, not INSERT", "the SELECT only"),
    ("with a as (select 1) insert into t select * from a",
     "not-a-query models/a.sql:1:1 a model is a SELECT, not INSERT", ""),
    ("create table t as select * {o}", "not-a-query models/a.sql:1:1 a model is a SELECT, not CREATE", ""),
    ("execute immediate 'x'", "not-a-query models/a.sql:1:1 a model is a SELECT, not EXECUTE", ""),
    ("select 1 as n, stream a {o}", "unknown-column models/a.sql:1:16 column 'stream' not found", ""),
    ("select id, amonut {o}", "unknown-column models/a.sql:1:12 column 'amonut' not found", "'amount'"),
    ("select id, id as ID {o}", "duplicate-name models/a.sql:1:1 two columns have the name 'ID'", "alias"),
    ("from {{ source('shop', 'orders') }} |> where _metadata.file_path > 'a'",
     "misplaced-expression models/a.sql:1:6 '_metadata' would be a column of the result, which has no '*' that leaves it out", "select *"),
    ("table {{ source('shop', 'orders') }} |> where _metadata.file_path > 'a' |> drop id",
     "misplaced-expression models/a.sql:1:7 '_metadata' would be a column of the result, which has no '*' that leaves it out", ""),
    ("select q from (select id as x, 1 as y from {{ source('shop', 'orders') }}) t", "unknown-column models/a.sql:1:8 column 'q' not found", "Known: x, y."),
    ("from {{ source('shop', 'orders') }} |> keep id", "sql-syntax models/a.sql:1:40 syntax error near 'keep'", "Steps are SELECT"),
    ("from {{ source('shop', 'orders') }} |> aggregate group by 1", "sql-syntax models/a.sql:1:59 syntax error near '1'", "Write the name of the column."),
    ("", "not-a-query models/a.sql:1:1 the model has no SQL", "Write a SELECT"),
    ("-- soon\n", "not-a-query models/a.sql:2:1 the model has no SQL", ""),
    ("select " + "(" * 2000 + "1" + ")" * 2000, "sql-too-deep models/a.sql:1:208 the SQL is nested more than 200 levels deep", ""),
    ("select " + "not " * 20_000 + "id {o}", "sql-too-deep models/a.sql:1:1 the SQL is nested too deeply", "CTEs"),
    ("\nselect " + ".".join(["id"] * 3000) + " as x {o}",
     "sql-too-deep models/a.sql:2:610 the SQL is nested more than 200 levels deep", "CTEs"),
    ("select cast(id as " + "array<" * 500 + "int" + ">" * 500 + ") as x {o}",
     "sql-too-deep models/a.sql:1:1219 the SQL is nested more than 200 levels deep", "CTEs"),
    ("select id {o} qualify row_number() over (order by id) = 1", "qualify-not-supported models/a.sql:1:55 Spark has no QUALIFY", "outer"),
    ("select * from tumble({{ source('shop', 'orders') }}, ts)",
     "sql-syntax models/a.sql:1:15 Spark has no TUMBLE()", "tumbling(ts, 1 hour)"),
    ("select * from table(hop(table {{ source('shop', 'orders') }}, descriptor(ts), interval 1 hour))",
     "sql-syntax models/a.sql:1:21 Spark has no HOP()", "the size before the slide"),
    ("select * from stream {{ source('shop', 'orders') }}",
     "stream-clause models/a.sql:1:15 FROM STREAM is not allowed in a model", "in the header"),
    ("select * from stream({{ source('shop', 'orders') }})",
     "stream-clause models/a.sql:1:15 FROM STREAM is not allowed in a model", ""),
    ("select * {o} o, stream {{ source('shop', 'customers') }}",
     "stream-clause models/a.sql:1:49 FROM STREAM is not allowed in a model", ""),
    ("select * {o} watermark ts delay of interval 1 hour",
     "stream-clause models/a.sql:1:59 the WATERMARK clause is not allowed in a model", ""),
    ("select * from {{ ref('order') }}", "unknown-ref models/a.sql:1:15 model 'order' not found", "Did you mean 'b_orders'?"),
    ("select * from {{ ref('orders') }}", "unknown-ref models/a.sql:1:15 model 'orders' not found", "{{ source("),
    ("select * from {{ ref('off') }}", "unknown-ref models/a.sql:1:15 model 'off' not found", "is disabled"),
    ("select *\n  from {{ source('shop', 'oders') }}",
     "unknown-source models/a.sql:2:8 source 'shop.oders' not found", "Did you mean 'shop.orders'"),
    ("select * from lake.main.b_orders",
     "undeclared-relation models/a.sql:1:15 'lake.main.b_orders' is neither a model, a source nor a CTE", "{{ ref("),
    ("with c as (select * {o}) select * from c join d using (id)",
     "undeclared-relation models/a.sql:1:79 'd' is neither a model, a source nor a CTE", ""),
    ("select {{ ref('b_orders') }} {o}", "sql-syntax models/a.sql:1:8 ref('b_orders') is used where no table is read", "FROM"),
    ("select '{{ ref('b_orders') }}' {o}", "sql-syntax models/a.sql:1:8 ref('b_orders') is used where no table is read", ""),
    ("select * from {{ ref('a') }}", "ref-cycle models/a.sql:1:15 the model reads itself", "{{ this }}"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "finding", "hint"), SQL, ids=lambda value: str(value)[:40])
def test_sql(sql, finding, hint, tmp_path):
    others = {"models/b_orders.sql": ORDERS, "models/off.sql": f"/*---\nenabled: false\n---*/\n{ORDERS}"}
    check(tmp_path, {**others, "models/a.sql": sql.replace("{o}", FROM)}, finding, hint)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "select 'a,,b' as x, -- ,,\n id {o}",
        "select " + " + ".join(["amount"] * 800) + " as total {o}",
        "select id {o} group by id, window(ts, '1 hour')",
        "from {{ source('shop', 'orders') }} |> where id = 1",
        "(select id {o})",
        "select id {o};;\n-- the end",
    ],
)
def test_sql_that_is_right(sql, tmp_path):
    assert lines(findings(tmp_path, {"models/a.sql": sql.replace("{o}", FROM)})) == []


def test_a_watermark_of_too_many_brackets(tmp_path):
    watermark = "(" * 300 + "x" + ")" * 300 + " as t delay 1 hour"
    finding = f"watermark-syntax models/a.sql:2:36 '{'(' * 57}...' is not an SQL expression"
    check(tmp_path, model(f"streams: {{shop.orders: {{watermark: {watermark}}}}}"), finding)


def test_a_window_with_the_name_of_an_upstream_models_column(tmp_path):
    hourly = 'windows: {hour: "tumbling(ts, 1 hour)"}'
    files = model(hourly, "select count(*) as n from {{ ref('b') }} group by hour")
    finding = "window-name-clash models/a.sql:2:17 the window 'hour' has the name of a column of 'b'"
    check(tmp_path, {**files, "models/b.sql": f"select ts, id as hour {FROM}"}, finding)


def test_a_window_that_fits_two_inputs(tmp_path):
    join = f"select count(*) as n {FROM} a join {{{{ ref('b') }}}} as b using (id) group by hour"
    files = {**model('windows: {hour: "tumbling(ts, 1 hour)"}', join), "models/b.sql": f"select id, ts {FROM}"}
    finding = "window-ambiguous models/a.sql:2:17 the window 'hour' matches columns of 'shop.orders' and 'b'"
    check(tmp_path, files, finding, "tumbling(a.ts, ...)")


@pytest.mark.parametrize(
    ("header", "kind"), [("materialized: view", "view"), ("materialized: table", "table"), ("tags: []", "table")]
)
def test_a_stream_on_what_cannot_be_streamed(header, kind, tmp_path):
    files = {
        "models/base.sql": ORDERS,
        "models/b.sql": f"/*---\n{header}\n---*/\nselect * from {{{{ ref('base') }}}}",
        **model("streams: [b]", "select * from {{ ref('b') }}"),
    }
    finding = f"stream-not-streamable models/a.sql:2:11 'b' cannot be read as a stream: it is a {kind}"
    check(tmp_path, files, finding, "Remove 'b' from 'streams:'")


def test_max_files_of_a_model(tmp_path):
    files = model("streams: {b: {max_files_per_trigger: 3}}", "select * from {{ ref('b') }}")
    files["models/b.sql"] = f"/*---\nstreams: [shop.orders]\n---*/\n{ORDERS}"
    finding = "bad-value models/a.sql:2:11 max_files_per_trigger does not apply to the model 'b'"
    check(tmp_path, files, finding, "Remove it")


@pytest.mark.parametrize(
    ("reads", "finding"),
    [
        ({"a": "b", "b": "a"}, "ref-cycle models/a.sql:2:7 a cycle: a reads b reads a"),
        ({"c": "a", "a": "b", "b": "c"}, "ref-cycle models/a.sql:2:7 a cycle: a reads b reads c reads a"),
        ({"x": "y", "y": "z", "z": "y"}, "ref-cycle models/y.sql:2:7 a cycle: y reads z reads y"),
    ],
)
def test_cycles(reads, finding, tmp_path):
    files = {f"models/{name}.sql": f"select *\n from {{{{ ref('{other}') }}}}" for name, other in reads.items()}
    check(tmp_path, files, finding, "{{ this }}")


def test_each_knot_has_its_own_message(tmp_path):
    reads = {"a": "b", "b": "a", "c": "d", "d": "c"}
    files = {f"models/{name}.sql": f"select * from {{{{ ref('{other}') }}}}" for name, other in reads.items()}
    manifest = compiled(tmp_path, files).manifest
    assert [d.message for d in manifest.diagnostics] == ["a cycle: a reads b reads a", "a cycle: c reads d reads c"]
    assert all(model.broken for model in manifest.models)


def test_two_models_with_one_table(tmp_path):
    files = {**model("alias: b"), "models/x/b.sql": ORDERS}
    finding = "duplicate-table models/x/b.sql:1:1 'b' and 'a' (models/a.sql) both write lake.main.b"
    check(tmp_path, files, finding, "alias")


def test_the_place_of_an_alias_that_collides(tmp_path):
    files = {"models/a.sql": ORDERS, "models/b.sql": f"/*---\nalias: a\n---*/\n{ORDERS}"}
    check(tmp_path, files, "duplicate-table models/b.sql:2:8 'b' and 'a' (models/a.sql) both write lake.main.a")


JINJA = [
    ("select\n  foo, {{ foo }}\n{o}", "jinja-undefined models/a.sql:2:11 'foo' is undefined", "var('foo')"),
    ("select {{ target.typ }} {o}", "jinja-undefined models/a.sql:1:18 'target' has no attribute 'typ'", ""),
    ("select {{ broken('x') }} {o}", "jinja-undefined macros/m.sql:2:16 'boo' is undefined", "Called from models/a.sql:1:11."),
    ("select {{ amount('x') }} {o}", "unknown-column models/a.sql:1:8 column 'amout' not found",
     "Did you mean 'amount'? The template rendered to: round(amout, 2) as x"),
    ("select {{ amount('x,') }} {o}", "sql-syntax models/a.sql:1:8 a comma with nothing after it",
     "The template rendered to: round(amout, 2) as x,"),
    ("select {{ var('min') }} {o}", "var-missing models/a.sql:1:15 the variable 'min' is not defined", "Did you mean 'minimum'?"),
    ("select {{ env_var('HOME_X') }} {o}", "env-missing models/a.sql:1:19 the environment variable 'HOME_X' is not set", "export"),
    ("select '{{ env_var('ENGINE_SECRET_X') }}' {o}",
     "secret-outside-target models/a.sql:1:20 the secret 'ENGINE_SECRET_X' is used outside a target", "target"),
    ("select * {o}\n{% if is_incremental() %} where 1 = 1 {% endif %}",
     "run-varying-value models/a.sql:2:7 'is_incremental()' is not supported", "runs the same query"),
    ("{{ config(materialized='view') }}select '{{ run_started_at }}' {o}", "run-varying-value models/a.sql:1:45 'run_started_at' differs from run to run",
     "current_timestamp()"),
    ("select {{ dbt_utils.star() }} {o}", "jinja-undefined models/a.sql:1:11 'dbt_utils.star' is not available here", "star(except="),
    ("{{ config(alias=foo) }} select * {o}", "jinja-undefined models/a.sql:1:17 'foo' is undefined", ""),
    ("{{ config(alias=ref) }} select * {o}",
     "wrong-type models/a.sql:1:11 'alias' in config() is not a string, number, list or mapping", "config(tags="),
    ("{{ config(tags=['a'],\n tgs=['b']) }} select * {o}", "unknown-key models/a.sql:2:2 a model has no key 'tgs'", "tags"),
    ("{{ config(materialized='incremental') }} select * {o}",
     "dbt-materialization models/a.sql:1:24 'incremental' is not a materialization", "streams:"),
    ("select * from {{ ref() }}", "jinja-error models/a.sql:1:15 the template failed: ref() missing 1 required positional argument: 'name'", ""),
    ("select * from {{ ref(5) }}", "wrong-type models/a.sql:1:18 'ref()' takes a quoted name", "ref('flights')"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "finding", "hint"), JINJA, ids=lambda value: str(value)[:40])
def test_jinja(sql, finding, hint, tmp_path):
    files = {
        "project.yml": f"{PROJECT}vars: {{minimum: 3}}\n",
        "macros/m.sql": "{% macro broken(a) %}\n  {{ a }} + {{ boo }}\n{% endmacro %}"
        "{% macro amount(name) %}round(amout,\n 2) as {{ name }}{% endmacro %}",
        "models/a.sql": sql.replace("{o}", FROM),
    }
    check(tmp_path, files, finding, hint, env={"ENGINE_SECRET_X": "hunter2"})


def test_an_error_that_the_project_raises(tmp_path):
    sql = f"select 1 as a,\n {{{{ exceptions.raise_compiler_error('no orders today') }}}}\n{FROM}"
    found = only(findings(tmp_path, {"models/a.sql": sql}))
    assert line(found) == "compiler-error models/a.sql:2:16 no orders today"


def test_header_and_config_that_disagree(tmp_path):
    files = model("materialized: table\nalias: b", "{{ config(materialized='view', alias='b') }}\n" + ORDERS)
    finding = "config-conflict models/a.sql:5:11 'materialized' is set twice to different values (also in line 2)"
    assert finding in lines(findings(tmp_path, files))


def source(body: str) -> dict[str, str | bytes]:
    indented = "".join(f"        {text}\n" for text in body.split("\n"))
    return {"sources/x.yml": f"sources:\n  - name: s\n    tables:\n      - name: t\n{indented}"}


SOURCES = [
    ("formt: json", "unknown-key sources/x.yml:8:9 a source table has no key 'formt'", "format"),
    ("freshness: {}", "missing-key sources/x.yml:8:9 'freshness' needs 'warn_after' or 'error_after'", "1 hour"),
    ("options: {mode: PERMISSIVE}", "bad-value sources/x.yml:8:19 the option 'mode' is set by the engine", ""),
    ("timezone: Europe/Berln", "bad-value sources/x.yml:8:19 unknown time zone 'Europe/Berln'", "Europe/Berlin"),
    ("on_bad_record: ignore", "bad-value sources/x.yml:8:24 'on_bad_record' cannot be 'ignore'", ""),
    ("watermark: id 5", "watermark-syntax sources/x.yml:8:20 'id 5' is not a watermark", ""),
    ("dedup: [id]", "dedup-needs-watermark sources/x.yml:8:9 dedup on 's.t' needs a watermark", ""),
    ("columns: {foo: x}", "bad-value sources/x.yml:8:19 the schema has no column 'foo'", "Known: id."),
    ("columns: [{name: foo}]", "bad-value sources/x.yml:8:19 the schema has no column 'foo'", ""),
    ("columns: {id: {tests: [uniqe]}}", "unknown-macro sources/x.yml:8:32 test 'uniqe' not found", "unique"),
    ("data_tests: [{unique: {where: ' '}}]", "missing-key sources/x.yml:8:23 the test 'unique' applies to a column", ""),
    ("targets: {dev: {pth: x, path: y}}", "unknown-key sources/x.yml:8:25 targets.dev has no key 'pth'", "path"),
    ("targets: {dev: {path: ../y}}", "path-outside sources/x.yml:8:31 the path '../y' is outside the project", ""),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("more", "finding", "hint"), SOURCES, ids=lambda value: str(value)[:40])
def test_sources(more, finding, hint, tmp_path):
    check(tmp_path, source(f"format: json\npath: x\nschema: id string\n{more}"), finding, hint)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("path: x\nschema: id string", "missing-key sources/x.yml:4:9 source 's.t' has no 'format'"),
        ("format: json\nschema: id string", "missing-key sources/x.yml:4:9 source 's.t' has no 'path'"),
        ("format: json\npath: x", "missing-key sources/x.yml:4:9 source 's.t' has no 'schema'"),
        ("format: jsn\npath: x\nschema: id string", "bad-value sources/x.yml:5:17 unknown format 'jsn'"),
        ("format: json\npath: ../x\nschema: id string", "path-outside sources/x.yml:6:15 the path '../x' is outside the project"),
    ],
)  # fmt: skip
def test_source_tables(body, finding, tmp_path):
    check(tmp_path, source(body), finding)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("source: []\n", "unknown-key sources/x.yml:1:1 a source file has no key 'source'"),
        ("sources:\n  - name: s\n    tables: [events]\n", "missing-key sources/x.yml:3:14 a source table needs a 'name'"),
        ("sources:\n  - name: s\n", "missing-key sources/x.yml:2:5 a source needs 'name' and 'tables'"),
        ("sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: x, schema: id int}\n",
         "duplicate-name sources/x.yml:4:9 the source 'shop.orders' is declared twice"),
    ],
)  # fmt: skip
def test_source_files(text, finding, tmp_path):
    check(tmp_path, {"sources/x.yml": text}, finding)


TARGETS = [
    ("dev: {schema: x, catalog: {type: sqlite}, spak: {}}", "unknown-key project.yml:3:45 target 'dev' has no key 'spak'", "spark"),
    ("dev: {schema: x, catalog: {type: sqlite, pth: y}}", "unknown-key project.yml:3:44 a catalog of type sqlite has no key 'pth'", "path"),
    ("dev: {schema: x, catalog: {type: sqlite}, connections: {m: {servers: 'a:1'}}}",
     "unknown-key project.yml:3:63 the connection 'm' has no key 'servers'", "bootstrap_servers"),
    ("dev: {schema: x, catalog: {type: sqlite}, connections: {m: {bootstrap_servers: 'a:1', security: {pasword: x}}}}",
     "unknown-key project.yml:3:100 security has no key 'pasword'", "'password'"),
    ("dev: {schema: x, catalog: {type: sqlit}}", "bad-value project.yml:3:36 'type' cannot be 'sqlit'", "sqlite"),
    ("dev: {schema: x, state: 'gs://bucket/state', catalog: {type: sqlite}}", "not-supported project.yml:3:27 'state' cannot be at 'gs://bucket/state'", "s3a://bucket/engine-state"),
    ("dev: {schema: x, catalog: {type: nessie, uri: y}}", "not-supported project.yml:3:36 the catalog type 'nessie' is not supported in this version", "rest"),
    ("dev: {schema: x, catalog: {type: sqlite}, spark: {mastr: y}}", "unknown-key project.yml:3:53 spark has no key 'mastr'", "master"),
    ("dev: {catalog: {type: sqlite}}\n  prod: {schema: x}", "missing-key project.yml:3:3 target 'dev' has no 'schema'", "schema: dev"),
    ("dev: {schema: My-Schema, catalog: {type: sqlite}}", "bad-name project.yml:3:17 'My-Schema' is not a name", ""),
    ("dev: {schema: \"{{ env_var('WHO') }}\", catalog: {type: sqlite}}",
     "env-missing project.yml:3:17 the environment variable 'WHO' is not set", "export WHO"),
    ("prod: {schema: x, catalog: {type: sqlite}}", "unknown-target project.yml:3:3 target 'dev' not found", "Known: prod."),
]  # fmt: skip


@pytest.mark.parametrize(("target", "finding", "hint"), TARGETS, ids=lambda value: str(value)[:40])
def test_targets(target, finding, hint, tmp_path):
    check(tmp_path, {"project.yml": f"name: shop\ntargets:\n  {target}\n"}, finding, hint)


def test_a_name_is_enough_for_a_project(tmp_path):
    files = {"project.yml": "name: shop\n", "models/a.sql": "/*---\nmaterialized: table\n---*/\nselect 1 as id"}
    result = compiled(tmp_path, files)
    assert result.manifest.errors == ()
    target = result.target
    assert (target.name, target.schema, target.catalog.type, target.catalog.path) == (
        "dev", "shop", "sqlite", tmp_path / ".engine/lake",
    )  # fmt: skip
    assert str(result.manifest.nodes["model.a"].relation) == "lake.shop.a"


@pytest.mark.parametrize("text", ["name: shop\ntarget: prod\n", "name: shop\ntargets: {prod: {schema: x}}\n"])
def test_only_dev_is_there_without_being_listed(text, tmp_path):
    result = compiled(tmp_path, {"project.yml": text, "models/a.sql": "select 1 as id"})
    assert [error.code for error in result.manifest.errors] == ["unknown-target"]


def test_the_default_target_is_pointed_at(tmp_path):
    finding = "unknown-target project.yml:6:9 target 'prod' not found"
    check(tmp_path, {"project.yml": f"{PROJECT}target: prod\n"}, finding, "Known: dev.")


def test_a_secret_is_in_no_message(tmp_path):
    text = PROJECT.replace("schema: main", "schema: \"{{ env_var('ENGINE_SECRET_X') }}\"")
    finding = "secret-misplaced project.yml:5:13 the secret 'ENGINE_SECRET_X' would be readable in 'schema'"
    check(tmp_path, {"project.yml": text}, finding, env={"ENGINE_SECRET_X": "Hunter 2"})


FOLDERS = [
    ("+tgs: [a]", "unknown-key project.yml:7:3 a model has no key 'tgs'", "tags"),
    ("tags: [a]", "unknown-key project.yml:7:3 'tags' needs a + prefix here", "+tags:"),
    ("unique_key: a", "unknown-key project.yml:7:3 'unique_key' needs a + prefix here", "+unique_key:"),
    ("+uniqe_key: a", "unknown-key project.yml:7:3 a model has no key 'uniqe_key'", "Did you mean 'unique_key'?"),
    ("+updated_at: ts", "unknown-key project.yml:7:3 a model has no key 'updated_at'", "sequence_by: updated_at"),
    ("+pre-hook: select 1", "unknown-key project.yml:7:3 a model has no key 'pre-hook'", "Write 'pre_hook'"),
    ("mart: {+tags: [a]}", "unknown-key project.yml:7:3 models/ has no folder 'mart'", "Did you mean 'marts'?"),
    ("marts: {tags: [a]}", "unknown-key project.yml:7:11 'tags' needs a + prefix here", "+tags:"),
    ("shop: {marts: {+tgs: [a]}}", "unknown-key project.yml:7:18 a model has no key 'tgs'", "tags"),
    ("+materialized: tabel", "bad-value project.yml:7:18 'materialized' cannot be 'tabel'", "table"),
    ("+alias: \"{{ var('x') }}\"", "var-missing project.yml:7:11 the variable 'x' is not defined", ""),
]  # fmt: skip


@pytest.mark.parametrize(("default", "finding", "hint"), FOLDERS, ids=lambda value: str(value)[:40])
def test_folder_defaults(default, finding, hint, tmp_path):
    files = {
        "project.yml": f"{PROJECT}models:\n  {default}\n",
        "models/marts/a.sql": ORDERS,
        "models/marts/b.sql": ORDERS,
    }
    check(tmp_path, files, finding, hint)
