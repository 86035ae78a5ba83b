"""A project full of mistakes shows all of them in one compile, in the order of the files."""

from __future__ import annotations

import pytest

from tests.project.small_projects import PROJECT, compiled, lines

FILES = {
    "project.yml": PROJECT + "modles: {}\nrequire_engine_version: '>=9'\nmodels:\n  +tgs: [a]\n",
    "profiles.yml": "shop: {}\n",
    "macros/broken.sql": "{% macro broken() %}\n{{ 1 + }}\n{% endmacro %}\n",
    "sources/shop.yml": """\
sources:
  - name: shop
    tables:
      - name: orders
        format: json
        path: ../orders
        schema: id strin
      - name: customers
        format: jsn
        path: landing/customers
        schema: id string
        colums: {}
""",
    "models/a_sql.sql": "select *\nfrom {{ source('shop', 'orders') }}\nwhere (id = 1\n",
    "models/b_header.sql": "/*---\ntgas: [x]\nmaterialized: incremental\n---*/\nselect * from {{ ref('a_sql') }}\n",
    "models/c_refs.sql": "select * from {{ ref('nobody_here') }} join {{ source('shop', 'oders') }} join raw.t\n",
    "models/d_jinja.sql": "select {{ broken() }}, {{ undefined_name }} from {{ ref('a_sql') }}\n",
    "models/e_jinja.sql": "select {{ undefined_name }},\n{{ var('no_such') }} from {{ ref('a_sql') }}\n",
    "models/f_yaml.sql": "/*---\ntags: [a\n---*/\nselect * from {{ ref('a_sql') }}\n",
    "models/g_header.sql": "/*---\nalias: G\nselect 1\n",
    "models/h_insert.sql": "insert into t select 1\n",
    "models/i_cycle.sql": "select * from {{ ref('j_cycle') }}\n",
    "models/j_cycle.sql": "select * from {{ ref('i_cycle') }}\n",
    "models/k_windows.sql": """\
/*---
streams: {shop.orders: {watermark: id delay soon}}
windows: {hour: tumbling(ts, 1 hour)}
partition_by: dya(ts)
columns: {id: {tests: [not_nul]}}
---*/
select count(*) as n from {{ source('shop', 'orders') }} group by hour
""",
    "models/l_stream.sql": "/*---\nstreams: [b_header, shop.customers]\n---*/\nselect * from {{ ref('i_cycle') }}\n",
    "models/m/a_sql.sql": "select 1 as a",
    "models/n.yml": "version: 2\n",
    "models/Bad Name.sql": "select 1 as a",
    "models/o_text.sql": b"select '\xe4'",
    "models/p_control.sql": "select 1\x07",
    "models/q_deep.sql": "select " + "(" * 300 + "1" + ")" * 300,
}

EXPECTED = [
    "duplicate-name models/m/a_sql.sql:1:1 two models have the name 'a_sql': models/a_sql.sql and models/m/a_sql.sql",
    "bad-schema sources/shop.yml:7:17 the column 'id' has the type 'strin', which Spark does not know",
    "jinja-syntax macros/broken.sql:2:8 Jinja: unexpected '}}'",
    "bad-name models/Bad Name.sql:1:1 'Bad Name' is not a valid model name",
    "sql-syntax models/a_sql.sql:3:7 a bracket is not closed",
    "unknown-key models/b_header.sql:2:1 a model has no key 'tgas'",
    "dbt-materialization models/b_header.sql:3:15 'incremental' is not a materialization",
    "unknown-ref models/c_refs.sql:1:15 model 'nobody_here' not found",
    "unknown-source models/c_refs.sql:1:45 source 'shop.oders' not found",
    "undeclared-relation models/c_refs.sql:1:80 'raw.t' is neither a model, a source nor a CTE",
    "jinja-undefined models/e_jinja.sql:1:11 'undefined_name' is undefined",
    "yaml-syntax models/f_yaml.sql:3:1 YAML: did not find expected ',' or ']'",
    "header-unclosed models/g_header.sql:1:1 the header is not closed",
    "not-a-query models/h_insert.sql:1:1 a model is a SELECT, not INSERT",
    "ref-cycle models/i_cycle.sql:1:15 a cycle: i_cycle reads j_cycle reads i_cycle",
    "bad-duration models/k_windows.sql:2:36 'soon' is not a duration",
    "yaml-split-item models/k_windows.sql:3:17 YAML splits 'tumbling(ts, 1 hour)' at its comma",
    "bad-value models/k_windows.sql:4:15 'dya(ts)' is not a partition field",
    "unknown-macro models/k_windows.sql:5:24 test 'not_nul' not found",
    "stream-unread models/l_stream.sql:2:11 the query does not read the stream 'b_header'",
    "stream-unread models/l_stream.sql:2:21 the query does not read the stream 'shop.customers'",
    "properties-file models/n.yml:1:1 properties files under models/ are dbt syntax",
    "file-unreadable models/o_text.sql:1:9 the file is not UTF-8",
    "control-character models/p_control.sql:1:9 the file contains the control character U+0007",
    "sql-too-deep models/q_deep.sql:1:208 the SQL is nested more than 200 levels deep",
    "profiles-file profiles.yml:1:1 profiles.yml is dbt syntax",
    "unknown-key project.yml:6:1 project.yml has no key 'modles'",
    "engine-version project.yml:7:25 the project requires Headrace >=9, but this is 0.1.0",
    "unknown-key project.yml:9:3 a model has no key 'tgs'",
    "path-outside sources/shop.yml:6:15 the path '../orders' is outside the project",
    "bad-value sources/shop.yml:9:17 unknown format 'jsn'",
    "unknown-key sources/shop.yml:12:9 a source table has no key 'colums'",
]


@pytest.mark.slow
def test_all_of_them_at_once(tmp_path):
    manifest = compiled(tmp_path, FILES).manifest
    assert lines(manifest.diagnostics) == EXPECTED
    assert all(d.hint for d in manifest.diagnostics)


@pytest.mark.slow
def test_a_broken_model_stays_in_the_manifest(tmp_path):
    manifest = compiled(tmp_path, FILES).manifest
    broken = {model.name for model in manifest.models if model.broken}
    assert broken == {model.name for model in manifest.models} - {"q_fine"}
    assert {"a_sql", "d_jinja", "f_yaml", "g_header", "o_text"} <= broken
    assert manifest.model("c_refs").columns == ()


def test_one_mistake_in_a_file_that_others_need_is_reported_once(tmp_path):
    files = {
        "sources/shop.yml": "sources: [\n",
        "models/a.sql": "/*---\nstreams: [shop.orders]\n---*/\nselect * from {{ source('shop', 'orders') }}",
        "models/b.sql": "/*---\nstreams: [a]\n---*/\nselect * from {{ ref('a') }}",
    }
    assert [d.code for d in compiled(tmp_path, files).manifest.diagnostics] == ["yaml-syntax"]


def test_a_header_that_cannot_be_read_makes_no_other_message(tmp_path):
    files = {
        "models/a.sql": "/*---\nstreams: [shop.orders\n---*/\nselect * from {{ source('shop', 'orders') }}",
        "models/b.sql": "/*---\nstreams: [a]\n---*/\nselect * from {{ ref('a') }}",
    }
    assert [d.code for d in compiled(tmp_path, files).manifest.diagnostics] == ["yaml-syntax"]


def test_a_template_that_fails_makes_no_other_message(tmp_path):
    files = {
        "models/a.sql": "{{ config(streams=['shop.orders'], alias=nope) }}\nselect * from {{ source('shop', 'orders') }}",
        "models/b.sql": "/*---\nstreams: [a]\n---*/\nselect * from {{ ref('a') }}",
    }
    assert [d.code for d in compiled(tmp_path, files).manifest.diagnostics] == ["jinja-undefined"]
