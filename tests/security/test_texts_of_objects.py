"""Whatever a template makes a text of: nothing of the environment, and no address of memory, is in it."""

from __future__ import annotations

import json
import re

import pytest

from engine.compile.templates.dbt_functions import value_names
from engine.compile.templates.template_names import TemplateNames
from engine.jinja import FAILURES, MacroFile, Sandbox
from tests.project.small_projects import PROJECT, compiled

pytestmark = pytest.mark.slow

ENV = {
    "ENGINE_SECRET_X": "Sup3r-s3cret-value",
    "PLAIN": "what-the-environment-has",
    "AWS_SECRET_ACCESS_KEY": "a-key-of-aws",
}
ADDRESS = re.compile(r"0x[0-9a-f]{6,}", re.IGNORECASE)
MACROS = (
    "{% macro inner(a, b=1) %}{{ varargs }}{{ kwargs }}{{ VALUE }}{% endmacro %}"
    "{% macro outer() %}{{ caller('x') }}{% endmacro %}"
)
# How a template makes a text of a value `v`.
TEXTS = (
    "{{ [v] | string }}", "{{ {'a': v} | string }}", "{{ (v, v) | list | string }}", "{{ v ~ '' }}", "{{ '' ~ [v] }}",
    "{{ '%s' % [v] }}", "{{ '%r' % [v] }}", "{{ '%s %r' | format(v, v) }}", "{{ '{} {!r} {0!s}'.replace('{0!s}', '').format(v, v) }}",
    "{{ '{0!r:>9}'.format([v]) }}", "{{ '{x}'.format_map({'x': v}) }}", "{{ v | pprint }}", "{{ [v] | tojson }}", "{{ tojson([v]) }}",
    "{{ toyaml({'a': v}) }}", "{{ [v, 1] | join(',') }}", "{{ [v] | map('string') | list }}", "{{ [v] | map('upper') | join }}",
    "{{ [[v] | map('string')] | string }}", "{{ [[v] | select] | string }}", "{{ [v] | string | urlize }}", "{{ v | urlencode }}",
    "{{ v | list | string }}", "{{ v | string }}", "{{ v | replace('a', v) }}", "{{ v | title }}", "{{ v | indent }}", "{{ v | escape }}",
    "{{ {'a': v} | xmlattr }}", "{{ [v] | batch(1) | list }}", "{{ [[v] | batch(1)] | string }}", "{{ [[v] | slice(1)] | string }}",
    "{{ [[v, v] | unique] | string }}", "{{ [[v] | reverse] | string }}", "{{ [{'a': v} | items] | string }}",
    "{{ [v] | groupby('a') | string }}", "{{ {v: 1}[[v]] }}", "{{ {'a': 1}[v] }}", "{{ [].index(v) }}", "{{ [1][v] }}", "{{ v.nothing }}",
    "{{ [v.nothing] | string }}", "{{ v['__init__'] }}", "{{ v | attr('__class__') }}", "{{ v | int(v) | string }}", "{{ v() }}",
    "{{ ref(v) }}", "{{ var(v) }}", "{{ env_var(v) }}", "{{ env_var('X' ~ v) }}", "{{ var('x', [v]) | string }}",
    "{{ exceptions.raise_compiler_error([v]) }}", "{{ config(x=v) }}", "{{ config(x=[v]) }}", "{{ fromjson(v) }}", "{{ zip([v], [v]) | string }}",
    "{{ namespace(a=v) ~ '' }}", "{{ [namespace(a=v)] | string }}", "{{ set([v]) | string }}", "{{ [v] | sum(start=v) }}", "{{ v + 'x' }}",
    "{{ [v] | sort(attribute='a') }}", "{{ [v, v] | max }}", "{{ inner(v, v, v, v, q=v) }}", "{{ [inner] | string }}",
    "{% call outer() %}{{ [v] }}{% endcall %}", "{% set x %}{{ [v] }}{% endset %}{{ x }}", "{% filter upper %}{{ [v] }}{% endfilter %}",
    "{% for i in [v] %}{{ loop }}{{ [loop, loop.cycle, loop.changed, i] }}{{ loop.cycle([i]) }}{% endfor %}",
    "{{ log([v]) }}", "{{ v is mapping }}{{ v is sameas v }}", "{% do v.append(1) %}", "{% if v > 1 %}{% endif %}",
)  # fmt: skip
# Values that no template is given, but can get.
MADE = (
    "''.upper", "''.format", "[].append", "{}.items", "{}.items()", "{}.keys()", "[1] | map('string')", "[1] | select", "self", "loop",
    "caller", "varargs", "range(3)", "(1).to_bytes", "'x'.encode()", "this.x", "config.get", "exceptions.warn", "inner.arguments",
    "run_started_at", "run_started_at.strftime", "dict(a=1)", "dict.fromkeys", "namespace", "namespace(a=[])", "none", "true",
    "cycler", "joiner", "lipsum", "context", "model", "graph", "target.schema", "target.nothing", "package", "package.inner", "[1] | first",
)  # fmt: skip


def names() -> TemplateNames:
    found = TemplateNames({"x": 1, "y": [1]}, dict(ENV))
    found.target = {"name": "dev", "schema": "main", "catalog": "lake"}
    found.run_values = True
    return found


def models() -> Sandbox:
    sandbox = Sandbox(names().for_models())
    files = [
        MacroFile("macros/m.sql", MACROS.replace("{{ VALUE }}", "")),
        MacroFile("packages/package/m.sql", MACROS, "package"),
    ]
    assert sandbox.add_macros(files[:1]) == []
    sandbox.add_macros(files[1:])
    return sandbox


def values() -> Sandbox:
    return Sandbox(value_names(names().for_values()))


def said(sandbox: Sandbox, render) -> str:
    """What rendering gives, or says."""
    try:
        return render()
    except FAILURES as error:
        return str([(d.message, d.hint) for d in sandbox.explain(error)])


def leaks(text: str) -> list[str]:
    return [value for value in ENV.values() if value in text] + ADDRESS.findall(text)


@pytest.mark.parametrize("kind", [models, values])
def test_no_text_of_a_value_holds_the_environment_or_an_address(kind, caplog):
    sandbox = kind()
    env = sandbox._env
    templates = {text: env.from_string(text) for text in TEXTS}
    made = {}
    for name in sorted({*env.globals, *MADE}):
        try:
            made[name] = env.compile_expression(name, undefined_to_none=False)()
        except FAILURES as error:
            made[name] = str(error)
    with caplog.at_level("DEBUG"):
        for name, value in made.items():
            for text, template in templates.items():
                rendered = said(sandbox, lambda template=template, value=value: template.render(v=value))
                assert leaks(rendered) == [], (name, text)
    assert len(made) > 40
    assert leaks(caplog.text) == []


def test_no_filter_and_no_test_makes_such_a_text():
    sandbox = models()
    env = sandbox._env
    held = {name: env.compile_expression(name)() for name in ("env_var", "config", "star", "target", "run_started_at")}
    held |= {"list": [held["env_var"]], "mapping": {"a": held["env_var"]}, "function": held["env_var"]}
    made = [
        f"v | {name}{arguments}"
        for name in sorted(env.filters)
        for arguments in ("", "(1)", "('upper')", "(f)", "('a', f)")
    ] + [f"v is {name}{argument}" for name in sorted(env.tests) for argument in ("", "(1)", "(f)", "('upper')")]
    for expression in made:
        for text in (
            f"{{{{ {expression} }}}}",
            f"{{{{ [{expression}] | string }}}}",
            f"{{{{ ({expression}) | list | string }}}}",
        ):
            try:
                template = env.from_string(text)
            except FAILURES:
                continue
            for value in held.values():
                rendered = said(
                    sandbox, lambda template=template, value=value: template.render(v=value, f=held["env_var"])
                )
                assert leaks(rendered) == [], text


PLACES = {
    "models/a.sql": "/*---\ndescription: \"{{ [env_var, var, target] | string }}\"\nmeta: {a: \"{{ {'f': env_var} | pprint }}\"}\n"
    "materialized: table\npre_hook: [\"select '{{ [this, env_var] | string | replace(\\\"'\\\", '') }}'\"]\n"
    "columns: {x: {description: \"{{ env_var ~ '' }}\", tests: [{mine: {value: \"{{ '%s' % [env_var] }}\"}}]}}\n---*/\n"
    "select '{{ [env_var, ref, config, star, log] | string }}' as x, '{{ mine_too([env_var]) }}' as y",
    "macros/m.sql": "{% macro mine_too(v) %}{{ v | string }}{{ [caller, varargs, mine_too] }}{% endmacro %}"
    "{% macro test_mine(model, column_name, value) %}select '{{ [env_var, value, model] | string | replace(\"'\", '') }}' as f from {{ model }}"
    "{% endmacro %}",
    "sources/s.yml": "sources: [{name: s, tables: [{name: t, format: json, path: landing, schema: id string,"
    ' description: "{{ [env_var] | string }}"}]}]',
    "tests/one.sql": "select '{{ [env_var, ref] | string }}' as f from {{ ref('a') }}",
}  # fmt: skip


def test_no_artifact_of_a_project_holds_them(tmp_path):
    top = PROJECT + 'vars: {v: "{{ [env_var] | string }}"}\n'
    manifest = compiled(tmp_path, {"project.yml": top, **PLACES}, env=ENV).manifest
    from engine.compile.artifacts.write_artifacts import manifest_text

    text = manifest_text(manifest) + json.dumps([str(d) + d.message + d.hint for d in manifest.diagnostics])
    assert "<function env_var>" in text
    assert leaks(text) == []


def test_the_same_model_is_the_same_text_in_every_process(tmp_path):
    files = {"models/a.sql": "select '{{ [ref, ''.upper, [1] | map('string'), config.get, star] | string }}' as x"}
    assert len({compiled(tmp_path, files).manifest.model("a").sql for _ in range(3)}) == 1
    assert (
        "[<function ref>, <function upper>, <values>, <function get>, <macro star>]"
        in compiled(tmp_path, files).manifest.model("a").sql
    )
