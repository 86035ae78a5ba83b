"""Templates of expressions alone are rendered piece by piece: as Jinja would, with the same way back."""

from __future__ import annotations

import pytest

from engine.errors import ProjectError
from engine.jinja import MacroFile, Sandbox, rendered_text
from engine.jinja.sandbox import spliced

QUICK = [
    "{{ ref('a') }}",
    "select {{ x }} from {{ ref(\"a\") }}\nwhere {{ m('p') }} > 1\n",
    "{{ source('s', 't') }}{{ source('s.t') }}",
    "{{ ref ('a') }}, {{ 1 + 2 }} }} %} '{{ x }}'",
    "a\n\n{{\n x }}\n",
    "{{ {'k': 1}['k'] }}",
    "{{ ref('a', 'b') }} {{ ref( 'a' , 'b' ) }}",
    "{{ m(x) | upper }} {{ x[0] }}",
    "{{ ref('a' 'b') }}",
    "{{ 'a' }}{{ \"it's\" }}",
]
SLOW = [
    "{%- if x %}a{% endif %} {{ x }}",
    "{# no #}{{ x }}",
    "a {{- x }}",
    "a {{ x -}} b",
    "{{ '}}' }}",
    "{% raw %}{{ x }}{% endraw %}",
    "{{ x }} {% set x = 2 %}{{ x }}",
]


@pytest.fixture
def sandbox() -> Sandbox:
    def ref(*names: str) -> str:
        return f"<{'.'.join(names)}>"

    made = Sandbox({"ref": ref, "source": ref, "x": "xyz"})
    made.add_macros([MacroFile("macros/m.sql", "{% macro m(c) %}[{{ c }}]{% endmacro %}")])
    return made


@pytest.mark.parametrize("text", [*QUICK, *SLOW])
def test_the_same_as_jinja_gives(sandbox, monkeypatch, text):
    quick = sandbox.render(text, "models/a.sql")
    monkeypatch.setattr("engine.jinja.sandbox.spliced", lambda *_: None)
    full = sandbox.render(text, "models/a.sql")
    assert quick.text == full.text
    places = range(len(quick.text))
    assert [quick.location(at) for at in places] == [full.location(at) for at in places]


@pytest.mark.parametrize("text", [text for text in QUICK if "{'k'" not in text])
def test_expressions_alone_are_not_compiled_as_a_template(sandbox, text):
    assert spliced(text, "models/a.sql", lambda _: "v") is not None


@pytest.mark.parametrize("text", SLOW)
def test_everything_else_is(sandbox, text):
    assert spliced(text, "models/a.sql", lambda _: "v") is None


def test_a_failure_is_told_by_jinja(sandbox):
    with pytest.raises(ProjectError) as error:
        sandbox.render("select\n  {{ y }}", "models/a.sql")
    assert str(error.value.diagnostic.location) == "models/a.sql:2:6"


def test_what_is_said_once_is_not_tried_twice():
    assert rendered_text.spliced("{{ log('a') }}", "f", lambda _: "v") is None
