"""Errors in SQL, Jinja, sources, targets and across models: one message each, at its place, with a hint.

Errors in a header are the fixture pairs of test_header_errors.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures import read_rows
from tests.project.small_projects import FROM, ORDERS, PROJECT, check, compiled, findings, line, lines, model, only

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
SQL = [
    *read_rows(FIXTURE, "sql", 3),
    (
        "select " + "(" * 2000 + "1" + ")" * 2000,
        "sql-too-deep models/a.sql:1:208 the SQL is nested more than 200 levels deep",
        "",
    ),
    ("select " + "not " * 20_000 + "id {o}", "sql-too-deep models/a.sql:1:1 the SQL is nested too deeply", "CTEs"),
    (
        "\nselect " + ".".join(["id"] * 3000) + " as x {o}",
        "sql-too-deep models/a.sql:2:610 the SQL is nested more than 200 levels deep",
        "CTEs",
    ),
    (
        "select cast(id as " + "array<" * 500 + "int" + ">" * 500 + ") as x {o}",
        "sql-too-deep models/a.sql:1:1219 the SQL is nested more than 200 levels deep",
        "CTEs",
    ),
]


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


JINJA = read_rows(FIXTURE, "jinja", 3)


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


SOURCES = read_rows(FIXTURE, "sources", 3)


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


TARGETS = read_rows(FIXTURE, "targets", 3)


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


FOLDERS = read_rows(FIXTURE, "folders", 3)


@pytest.mark.parametrize(("default", "finding", "hint"), FOLDERS, ids=lambda value: str(value)[:40])
def test_folder_defaults(default, finding, hint, tmp_path):
    files = {
        "project.yml": f"{PROJECT}models:\n  {default}\n",
        "models/marts/a.sql": ORDERS,
        "models/marts/b.sql": ORDERS,
    }
    check(tmp_path, files, finding, hint)
