"""One model's template cannot change what another model's template sees."""

from __future__ import annotations

import contextlib

import pytest

from engine.compile.declarations.compile_context import own_macros
from engine.compile.templates.template_names import TemplateNames
from engine.jinja import FAILURES, OWN, MacroFile, Sandbox
from tests.project.small_projects import clean, compiled, line, lines

MACROS = """\
{% set names = ['a', 'b'] %}{% set nested = ([1], {'k': [2]}) %}{% set ns = namespace(items=[], n=0) %}
{% set mapping = {'k': [3]} %}{% set items = mapping.values() %}{% set push = names.append %}
{% with hidden = [4] %}{% macro inner() %}{{ caller(hidden) if caller is defined else hidden }}{% endmacro %}{% set ns.inner = inner %}{% endwith %}
{% macro shown() %}{{ names }} {{ nested }} {{ ns.items }} {{ ns.n }} {{ mapping }} {{ ns.inner() }} {{ items | list }}{% endmacro %}
{% macro lent(name) %}{{ return({'names': names, 'nested': nested, 'ns': ns, 'mapping': mapping, 'items': items, 'push': push,
 'inner': ns.inner}[name]) }}{% endmacro %}
{% macro with_arguments(a, b) %}{{ a }}{{ b }}{% endmacro %}
{% macro itself() %}{{ return(engine_macro__with_arguments) }}{% endmacro %}
{% macro other() %}other{% endmacro %}
"""
HONEST = """\
{{ shown() }} {{ other() }} {{ with_arguments(1, 2) }} {{ star(except=['x']) }} {{ package.one() }} {{ var('list') }} {{ target.schema }}
{{ ref('m') }} {{ ['a', 'b'] | join(',') }} {{ dict(a=1) }} {{ range(3) | list }} {% for x in [1, 2] %}{{ loop.index }}{% endfor %}
{{ tojson({'a': 1}) }} {{ env_var('HOME', 'none') }} {% set x = namespace(a=1) %}{{ x.a }} {{ surrogate_key(['id']) }} {{ '<' ~ '>' }}"""
ATTACKS = (
    "{% do star.load.func('x') %}", "{{ star.load.args }}", "{% do star.load() %}", "{% set star = other %}", "{% set x = star.body %}{{ x() }}",
    "{% macro star() %}evil{% endmacro %}{{ star() }}", "{% macro shown() %}evil{% endmacro %}", "{% set names = ['evil'] %}",
    "{% do lent('names').append('evil') %}", "{% do lent('push')('evil') %}", "{% do lent('nested')[0].append('evil') %}",
    "{% do lent('nested')[1].update({'k': 'evil'}) %}", "{% do lent('nested')[1].k.append('evil') %}", "{% do lent('ns').items.append('evil') %}",
    "{% set n = lent('ns') %}{% set n.n = 'evil' %}", "{% do lent('mapping').k.append('evil') %}", "{% do lent('mapping').clear() %}",
    "{% for v in lent('items') %}{% do v.append('evil') %}{% endfor %}", "{% do (lent('items') | list | first).append('evil') %}",
    "{% do (lent('mapping') | items | list)[0][1].append('evil') %}", "{% do dict.update(lent('mapping'), {'k': 'evil'}) %}",
    "{% call(h) lent('inner')() %}{% do h.append('evil') %}{% endcall %}", "{% do itself().arguments.append('evil') %}",
    "{% do lent('names').sort(reverse=true) %}", "{% do lent('names').__setitem__(0, 'evil') %}", "{% do lent('names').__iadd__(['evil']) %}",
    "{% do [lent('names')] | map(attribute='append') | list | first %}{% do ([lent('names')] | map(attribute='append') | first)('evil') %}",
    "{% do (lent('names') | attr('append'))('evil') %}", "{% do lent('names')['append']('evil') %}", "{{ '{0.append}'.format(lent('names')) }}",
    "{% do package.one.load.func() %}", "{% set package.one = 1 %}", "{% set target.schema = 'evil' %}", "{% do target.update({'schema': 'evil'}) %}",
    "{% do var('list').append('evil') %}", "{% do var('map').deep.append('evil') %}", "{% do config.update({'a': 1}) %}",
    "{% autoescape true %}{{ lent('names') }}{% endautoescape %}", "{% import 'macros/m.sql' as m %}", "{% include 'macros/m.sql' %}",
    "{% from 'macros/m.sql' import names %}", "{% extends 'macros/m.sql' %}", "{% block b %}{{ self.b.append(1) }}{% endblock %}",
    "{% for x in [1] %}{% do loop.changed('evil') %}{% set loop.index = 9 %}{% endfor %}", "{% do range.update(1) %}", "{% do self.update(1) %}",
    "{% do engine_macro__star %}", "{% set engine_macro__shown = 1 %}", "{% do tojson.update() %}", "{% do namespace.update({}) %}",
    "{% do shown.body.update() %}", "{{ shown.name }}{% set shown.file = 'x' %}", "{% set ref = other %}{{ ref() }}", "{% macro ref() %}evil{% endmacro %}",
    "{{ return(lent('names')) }}", "{{ 1 / 0 }}", "{% macro r() %}{{ r() }}{% endmacro %}{{ r() }}", "{% do env_var.update(1) %}",
)  # fmt: skip


def sandbox() -> Sandbox:
    names = TemplateNames({"list": [1, 2], "map": {"deep": [1]}}, {})
    names.target = {"name": "dev", "schema": "main", "catalog": "lake"}
    made = Sandbox(names.for_models())
    files = [
        *own_macros(),
        MacroFile("macros/m.sql", MACROS),
        MacroFile("package/m.sql", "{% macro one() %}one{% endmacro %}", "package"),
    ]
    assert made.add_macros(files) == []
    return made


def rendered(made: Sandbox, text: str) -> str:
    return made.render(text, "models/honest.sql", {"not_quick": 1}).text


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_a_hostile_model_changes_nothing_for_an_honest_one(first):
    fresh = rendered(sandbox(), HONEST)
    assert "evil" not in fresh
    for attack in ATTACKS:
        made = sandbox()
        if not first:
            assert rendered(made, HONEST) == fresh
        with contextlib.suppress(FAILURES):
            made.render(attack, "models/hostile.sql", {"not_quick": 1})
        assert rendered(made, HONEST) == fresh, attack


@pytest.mark.slow
def test_the_engines_macros_cannot_be_replaced(tmp_path):
    files = {
        "models/a.sql": "{% do star.load.func('engine/macros/columns.sql') %}select 1 as x",
        "models/b.sql": "select {{ star(except=['amount', 'ts', 'item']) }} from {{ source('shop', 'orders') }}",
    }
    (found,) = compiled(tmp_path / "both", files).manifest.errors
    assert line(found).startswith(
        "jinja-security models/a.sql:1:12 not allowed in a template: access to attribute 'load'"
    )
    both = compiled(tmp_path / "both", files).manifest.model("b").sql
    alone = clean(tmp_path / "alone", {"models/b.sql": files["models/b.sql"]}).model("b").sql
    assert both == alone


ONCE = [
    "{% set once = ['a'] | map('upper') %}",
    "{% set held = {'k': (['a'] | select,)} %}",
    "{% set ns = namespace() %}{% for x in [1, 2] %}{% set ns.loop = loop %}{% endfor %}",
]


@pytest.mark.parametrize("text", ONCE)
def test_what_can_be_read_once_is_no_value_of_a_macro_file(tmp_path, text):
    found = compiled(tmp_path, {"macros/m.sql": text, "models/a.sql": "select 1 as x"}).manifest.errors
    assert ["can be read only once" in d.message for d in found] == [True], lines(found)
    assert found[0].code == "jinja-security"


def test_a_model_may_still_change_what_is_its_own(tmp_path):
    text = """{% set names = ['a'] %}{% do names.append('b') %}{% set ns = namespace(x=[]) %}{% do ns.x.append('c') %}{% set ns.y = 'd' %}
{% set own = lent() | list %}{% do own.append('e') %}{% set m = {} %}{% do m.update({'f': 1}) %}{% do var('list').append('g') %}
select '{{ (names + ns.x + [ns.y] + own + (m | list)) | join }}' as x"""
    macros = "{% set shared = ['s'] %}{% macro lent() %}{{ return(shared) }}{% endmacro %}"
    top = {
        "project.yml": "name: shop\nvars: {list: [1]}\ntargets: {dev: {catalog: {type: sqlite, name: lake, path: l}, schema: main}}\n"
    }
    manifest = clean(tmp_path, {**top, "models/a.sql": text, "macros/m.sql": macros})
    assert "'abcdsef'" in manifest.model("a").sql


def test_own_macros_are_among_what_is_tried():
    assert {file.package for file in own_macros()} == {OWN}
    assert "star" in sandbox().macros
