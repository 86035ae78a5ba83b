"""The fixture pairs under fixtures/jinja, and what dbt users try that is answered by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.compile.templates.dbt_functions import dbt_names
from tests.fixtures import Pair, read_pairs, read_rows
from tests.project.small_projects import FROM, PROJECT, clean, compiled, findings, line, lines, model, only

FIXTURE = Path(__file__).parent / "fixtures/mistakes.txt"
CASES = read_pairs(Path(__file__).parent / "fixtures" / "jinja")
VARS = (
    "vars: {limits: [1, '{{ 1 + 1 }}'], root: 's3://{{ env_var(\"BUCKET\") }}', path: \"{{ var('root') }}/orders\"}\n"
)
MACROS = """\
{% macro wrapped(function) %}{{ function }}({{ caller() }}){% endmacro %}
{% macro each(names) %}{% for name in names %}{{ caller(name) }}{{ ', ' if not loop.last }}{% endfor %}{% endmacro %}
{% macro keys() %}{% set names = ['id'] %}{% do names.append('ts') %}{{ return(names) }} never{% endmacro %}
{% macro sign(name, minus=true) %}{% if not minus %}{{ return(name) }}{% endif %}-{{ name }}{% endmacro %}
"""
FILES = {"project.yml": PROJECT + VARS, "macros/m.sql": MACROS}
ENV = {"BUCKET": "bucket"}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_template_becomes(case: Pair, tmp_path):
    manifest = compiled(tmp_path, {**FILES, **model(case.parts["header"], case.given)}, env=ENV).manifest
    assert [line(d) for d in manifest.errors if d.code not in {"unknown-column", "type-mismatch"}] == []
    assert manifest.model("a").sql.strip() == case.expected


def test_there_are_cases():
    assert len(CASES) > 15


ANSWERS = read_rows(FIXTURE, "dbt_names", 3)


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "finding", "hint"), ANSWERS, ids=lambda value: str(value)[:40])
def test_what_cannot_hold_is_answered_by_name(sql, finding, hint, tmp_path):
    found = only(findings(tmp_path, {**FILES, "models/a.sql": f"{sql}select id {FROM}"}, env=ENV))
    code, place, message = finding.split(" ", 2)
    assert line(found) == f"{code} models/a.sql:{place} {message}"
    assert hint in found.hint


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(dbt_names().keys() - {"safe_cast", "run_started_at", "invocation_id"}))
def test_every_name_of_dbt_has_an_answer(name, tmp_path):
    uses = {"a": f"{{{{ {name} }}}}", "b": f"{{{{ {name}() }}}}", "c": f"{{{{ {name}.part }}}}"}
    found = findings(tmp_path, {f"models/{m}.sql": f"{sql}select id {FROM}" for m, sql in uses.items()})
    assert [d.node for d in found] == list(uses)
    assert {d.code for d in found} <= {"jinja-undefined", "run-varying-value"}
    assert all(f"'{name}" in d.message and d.hint.endswith(".") for d in found)


def test_a_name_of_dbt_can_be_asked_for(tmp_path):
    sql = f"select {{{{ 1 if run_query is defined else 2 }}}} as x {FROM}"
    assert clean(tmp_path, {"models/a.sql": sql}).model("a").sql.startswith("select 2 as x")


HOOKS = """\
pre_hook: "call system.compact('{{ target.catalog }}')"
post_hook: ["optimize {{ this }}", "grant select on {{ this }} to {{ var('who') }}"]
alias: b
"""


@pytest.mark.parametrize("form", ["header", "config"])
def test_hooks_name_the_models_table(form, tmp_path):
    text = f"/*---\n{HOOKS}---*/\nselect id {FROM}"
    if form == "config":
        text = (
            "{{ config(alias='b', pre_hook=\"call system.compact('{{ target.catalog }}')\",\n"
            "post_hook=['optimize {{ this }}', \"grant select on {{ this }} to {{ var('who') }}\"]) }}\n"
            f"select id {FROM}"
        )
    files = {"project.yml": f"{PROJECT}vars: {{who: readers}}\n", "models/a.sql": text}
    run = clean(tmp_path, files).model("a").operation
    assert run.pre_hook == ("call system.compact('lake')",)
    assert run.post_hook == ("optimize `lake`.`main`.`b`", "grant select on `lake`.`main`.`b` to readers")


STREAM = "/*---\nstreams: [shop.orders]\n---*/\n"
KEPT = {
    "a stream": (f"{STREAM}select id, {{{{ stamp() }}}} as at {FROM}", "models/a.sql:4:15"),
    "config": (
        f"{{{{ config(streams=['shop.orders']) }}}}\nselect id, {{{{ stamp() }}}} as at {FROM}",
        "models/a.sql:2:15",
    ),
    "a view": ("/*---\nmaterialized: view\n---*/\nselect {{ stamp() }} as at", "models/a.sql:4:11"),
    "ephemeral": ("/*---\nmaterialized: ephemeral\n---*/\nselect {{ stamp() }} as at", "models/a.sql:4:11"),
}
STAMP = "{% macro stamp() %}'{{ run_started_at.strftime('%Y') }} {{ invocation_id }}'{% endmacro %}"


@pytest.mark.parametrize(("text", "place"), KEPT.values(), ids=KEPT)
def test_a_text_that_is_kept_holds_no_value_of_the_run(text, place, tmp_path):
    found = only(findings(tmp_path, {"macros/m.sql": STAMP, "models/a.sql": text}))
    message = "run-varying-value macros/m.sql:1:24 'run_started_at.strftime' differs from run to run"
    assert line(found) == message
    assert "current_timestamp()" in found.hint
    assert found.hint.endswith(f"Called from {place}.")


@pytest.mark.slow
def test_a_batch_table_may_hold_values_of_the_run(tmp_path):
    files = {"macros/m.sql": STAMP, "models/a.sql": "select {{ stamp() }} as at, '{{ run_started_at }}' as began"}
    first, second = (compiled(tmp_path, files, cached=tmp_path / "target").manifest for _ in range(2))
    assert lines(first.errors) == []
    for manifest in (first, second):
        sql = manifest.model("a").sql
        assert re.fullmatch(r"select '20\d\d [-0-9a-f]{36}' as at, '20\d\d-\d\d-\d\d .*\+00:00' as began", sql)
        assert manifest.invocation_id in sql
    assert first.model("a").fingerprint != second.model("a").fingerprint
    files["models/a.sql"] = "select '{{ invocation_id[:8] }}' as short, {{ run_started_at.year }} as year"
    sql = compiled(tmp_path, files).manifest.model("a").sql
    assert re.fullmatch(r"select '[0-9a-f]{8}' as short, 20\d\d as year", sql)


def test_the_target_in_a_setting(tmp_path):
    files = {
        "project.yml": PROJECT + "models: {+enabled: \"{{ target.name == 'dev' }}\"}\n",
        "models/a.sql": f'/*---\nalias: "a_{{{{ target.name }}}}"\n---*/\nselect id {FROM}',
    }
    assert clean(tmp_path, files).model("a").relation.name == "a_dev"


def test_the_target_in_its_own_settings(tmp_path):
    text = PROJECT.replace("schema: main", 'schema: "{{ target.name }}"')
    found = only(findings(tmp_path, {"project.yml": text}))
    assert line(found) == "jinja-undefined project.yml:5:13 'target' cannot be used in the target's own settings"


VARIABLES = [
    ("a: \"{{ env_var('NOBODY') }}\"", "env-missing", "the environment variable 'NOBODY' is not set"),
    ("a: \"{{ var('b') }}\", b: \"{{ var('a') }}\"", "jinja-error", "the variable 'a' refers to itself"),
    ("a: '{{ wrod }}'", "jinja-undefined", "'wrod' is undefined"),
    ("a: '{{ 1 + }}'", "jinja-syntax", "Jinja: unexpected '}}'"),
    ("a: \"{{ env_var('ENGINE_SECRET_X') }}\"", "secret-outside-target", "the secret 'ENGINE_SECRET_X' is used outside a target"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "code", "reason"), VARIABLES)
def test_a_variable_whose_jinja_fails(variables, code, reason, tmp_path):
    files = {"project.yml": f"{PROJECT}vars: {{{variables}}}\n", "models/a.sql": f"select {{{{ var('a') }}}} {FROM}"}
    found = only(findings(tmp_path, files, env={"ENGINE_SECRET_X": "hunter2"}))
    assert found.code == code
    assert str(found.location) == "models/a.sql:1:15"
    assert found.message.startswith("the value of the variable 'a' cannot be computed: ")
    assert found.message.endswith(reason)


def test_a_variable_that_no_one_uses_is_not_rendered(tmp_path):
    files = {"project.yml": PROJECT + "vars: {a: \"{{ env_var('NOBODY') }}\"}\n", "models/a.sql": f"select id {FROM}"}
    assert clean(tmp_path, files)


def test_models_do_not_see_each_others_changes(tmp_path):
    sql = f"{{% set names = var('names') %}}{{% do names.append('ts') %}}select {{{{ names | join(', ') }}}} {FROM}"
    files = {"project.yml": f"{PROJECT}vars: {{names: [id]}}\n", "models/a.sql": sql, "models/b.sql": sql}
    manifest = clean(tmp_path, files)
    assert manifest.model("a").sql == manifest.model("b").sql


SHARED = "{% set names = [['id']] %}{% set count = namespace(n=0) %}\n"


@pytest.mark.parametrize(
    ("body", "name", "place"),
    [
        ("{% do names.append('x') %}", "append", "2:33"),
        ("{% do names[0].append('x') %}", "append", "2:36"),
        ("{% set count.n = 1 %}", "n", "2:34"),
    ],
)
def test_what_a_file_of_macros_keeps_is_not_changed(body, name, place, tmp_path):
    files = {
        "macros/m.sql": f"{SHARED}{{% macro change() %}}{body}{{% endmacro %}}",
        "models/a.sql": f"select {{{{ change() }}}} id {FROM}",
    }
    found = only(findings(tmp_path, files))
    assert line(found) == (f"jinja-security macros/m.sql:{place} '{name}' would change a value that all models share")
    assert lines(compiled(tmp_path, {"models/a.sql": f"{SHARED}{body}select id {FROM}"}).manifest.errors) == []
