"""Rendered text is what plain Jinja gives, and every literal word of it is found again in the template."""

from __future__ import annotations

import re

import jinja2
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.errors import ProjectError
from engine.jinja import MacroFile, Sandbox
from tests.project.small_projects import lines

NAMES = {"yes": True, "no": False, "three": [1, 2, 3], "nobody": [], "word": "value"}
PLAIN = jinja2.Environment(keep_trailing_newline=True, undefined=jinja2.StrictUndefined)


def sandbox() -> Sandbox:
    return Sandbox(NAMES)


# Literal words are numbered, so that each stands once in its template; no expression gives such a word.
LITERAL = "\x00"
blank = st.sampled_from(["", " ", "\n", "  \n ", "\n\n", "\t"])
left = st.sampled_from(["", "-", "+"])
right = st.sampled_from(["", "-"])
literal = st.builds("{}{}{}".format, blank, st.just(LITERAL), blank)
expression = st.builds(
    "{{{{{}{}{}}}}}".format,
    left,
    st.sampled_from([" word ", " 1 + 2 ", "\n word\n ", " word | upper ", " three | length ", " '}}' ", ' "\n" ']),
    right,
)
comment = st.builds("{{#{} some\ncomment {}#}}".format, st.sampled_from(["", "-"]), right)
raw = st.builds(
    "{{%{} raw {}%}}{}{{{{ {} }}}}{}{{%{} endraw {}%}}".format,
    left, right, blank, st.just(LITERAL), blank, left, right,
)  # fmt: skip
setting = st.builds("{{%{} set x = [1, 2] {}%}}".format, left, right)
leaf = st.one_of(literal, literal, expression, comment, raw, setting)


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    many = st.lists(inner, max_size=3).map("".join)
    condition = st.sampled_from(["yes", "no", "word == 'value'"])
    values = st.sampled_from(["three", "nobody", "range(2)"])
    return st.one_of(
        st.builds("{{%{} if {} {}%}}{}{{%{} endif {}%}}".format, left, condition, right, many, left, right),
        st.builds("{{% if {} %}}{}{{%{} else {}%}}{}{{% endif %}}".format, condition, many, left, right, many),
        st.builds("{{%{} for i in {} {}%}}{}{{%{} endfor {}%}}".format, left, values, right, many, left, right),
        st.builds("{{% set y %}}{}{{% endset %}}{{{{ y | length }}}}".format, many),
        st.builds("{{% filter upper %}}{}{{% endfilter %}}".format, many),
        st.builds("{{% macro m() %}}{}{{% endmacro %}}{{{{ m() }}}}{{{{ m() | length }}}}".format, many),
        st.builds("{{% with z = 1 %}}{}{{{{ z }}}}{{% endwith %}}".format, many),
        st.builds("{{% for i in three recursive %}}{}{{% endfor %}}".format, many),
    )


def numbered(text: str) -> str:
    parts = text.split(LITERAL)
    return "".join(f"{part}lit{i}x" for i, part in enumerate(parts[:-1])) + parts[-1]


templates = st.lists(st.recursive(leaf, blocks, max_leaves=12), max_size=5).map("".join).map(numbered)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(templates)
def test_rendering_is_jinjas_and_words_keep_their_place(template):
    rendered = sandbox().render(template, "a.sql")
    assert rendered.text == PLAIN.from_string(template).render(NAMES | {"range": range})
    text_lines = template.split("\n")
    captured = re.findall(r"(?s)\{% (?:set y|filter|macro|for i in three recursive).*?\{% end", template)
    inside = {word for part in captured for word in re.findall(r"lit\d+x", part)}
    for match in re.finditer(r"lit\d+x", rendered.text):
        place = rendered.location(match.start())
        assert place.line <= len(text_lines)
        if match[0] not in inside and not _captured(template, match[0]):
            assert text_lines[place.line - 1][place.column - 1 :].startswith(match[0])


def _captured(template: str, word: str) -> bool:
    """Whether a word stands inside a block whose output goes into a value: it counts where that is used."""
    depth, position = 0, template.index(word)
    for tag in re.finditer(r"\{%[-+]?\s*(set y|filter|macro|for i in three recursive|for|end\w+)", template):
        if tag.start() > position:
            break
        name = tag[1]
        if name in {"set y", "filter", "macro", "for i in three recursive"}:
            depth += 1
        elif name in {"endset", "endfilter", "endmacro"}:
            depth -= 1
    return depth > 0


def place(template: str, word: str) -> str:
    rendered = sandbox().render(template, "a.sql")
    location = rendered.location(rendered.text.index(word))
    return f"{location.line}:{location.column}"


@pytest.mark.parametrize(
    ("template", "word", "expected"),
    [
        ("select a\nfrom b", "from", "2:1"),
        ("{# a\nb #}\nselect a", "select", "3:1"),
        ("{% for x in three %}\n a{{ x }} z\n{% endfor %}end", "end", "3:13"),
        ("{% for x in three %}\n a{{ x }} z\n{% endfor %}end", "z", "2:11"),
        ("select {{ word }}, b", "value", "1:8"),
        ("select\n  {{ word }}{{- ' ' -}}\n  b", "b", "3:3"),
        ("{% if yes -%}\n\n  a\n{%- endif %}", "a", "3:3"),
        ("{% raw -%}\n {{ a }}\n{%- endraw -%}\n\n b", "b", "5:2"),
        ("{% raw -%}\n {{ a }}\n{%- endraw -%}\n\n b", "{{", "2:2"),
        ("{% set x %}one{% endset %}\n  {{ x }}", "one", "2:3"),
    ],
)
def test_places(template, word, expected):
    assert place(template, word) == expected


def test_text_without_tags_is_not_rendered():
    assert sandbox().render("select '\x01 1' {", "a.sql").text == "select '\x01 1' {"


def test_marks_in_a_value_do_no_harm():
    assert sandbox().render("a{{ '\\x01' ~ '99999\\x02' }}b", "a.sql").text == "ab"


FAULTS = [
    ("a\n{{ wrod }}", "jinja-undefined a.sql:2:4 'wrod' is undefined"),
    ("wrod {{ 1 }} {{ wrod }}", "jinja-undefined a.sql:1:17 'wrod' is undefined"),
    ("{{ [1,\n  wrod + 1] }}", "jinja-undefined a.sql:2:3 'wrod' is undefined"),
    ("{% for a in three -%}\n\n{%- endfor %}\n {{ wrod }}", "jinja-undefined a.sql:4:5 'wrod' is undefined"),
    ("{% raw -%}\n\n{{ a }}\n{%- endraw -%}\n\n {{ wrod }}", "jinja-undefined a.sql:6:5 'wrod' is undefined"),
    ("{#- a\n -#}\n\n{{ word.x }}", "jinja-undefined a.sql:4:9 'str object' has no attribute 'x'"),
    ("a {{ 1 / 0 }}", "jinja-error a.sql:1:3 the template failed: division by zero"),
    ("{% include 'x' %}", "jinja-error a.sql:1:1 templates do not include or import each other"),
    ("{{ ''.__class__ }}",
     "jinja-security a.sql:1:7 not allowed in a template: access to attribute '__class__' of 'str' object is unsafe."),
    ("{% for a in three %}{% for b in range(100001) %}{% endfor %}{% endfor %}",
     "jinja-error a.sql:1:1 the template failed: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000)."),
    ("x\n{% if yes %}\n", "jinja-syntax a.sql:2:1 Jinja: 'if' is not closed"),
    ("{% for a in three %}{% if yes %}{% endfor %}", "jinja-syntax a.sql:1:21 Jinja: 'if' is not closed"),
    ("{% endif %}", "jinja-syntax a.sql:1:4 Jinja: 'endif' has no matching start"),
    ("a\n {# b", "jinja-syntax a.sql:2:2 Jinja: a tag is not closed"),
    ("{{ word | uper }}", "jinja-syntax a.sql:1:11 Jinja: no filter named 'uper'"),
    ("{{ word other }}", "jinja-syntax a.sql:1:9 Jinja: expected '}}', got 'other'"),
    ("{% snapshot a %}{% endsnapshot %}", "jinja-syntax a.sql:1:4 Jinja: unknown block 'snapshot'"),
    ("{{ " + "(" * 500 + ")" * 500 + " }}", "jinja-error a.sql:1:1 the template is nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "finding"), FAULTS)
def test_faults(template, finding):
    with pytest.raises(ProjectError) as caught:
        sandbox().render(template, "a.sql")
    assert lines(caught.value.diagnostics) == [finding]
    assert caught.value.diagnostic.hint


def test_a_fault_inside_a_macro_names_the_caller():
    box = sandbox()
    assert box.add_macros([MacroFile("macros/m.sql", "{% macro m(a) %}\n  {{ a }} {{ wrod }}\n{% endmacro %}")]) == []
    with pytest.raises(ProjectError) as caught:
        box.render("select\n\n {{ m(1) }}", "models/a.sql")
    assert lines(caught.value.diagnostics) == ["jinja-undefined macros/m.sql:2:14 'wrod' is undefined"]
    assert caught.value.diagnostic.hint == "Did you mean 'word'? Called from models/a.sql:3:5."


def test_macros_call_each_other_over_files():
    box = sandbox()
    files = [
        MacroFile("macros/a.sql", "{% macro a() %}[{{ b() }}]{% endmacro %}"),
        MacroFile("macros/b.sql", "{% macro b() %}{{ word }}{% endmacro %}"),
    ]
    assert box.add_macros(files) == []
    assert box.render("{{ a() }}", "m.sql").text == "[value]"


def test_a_broken_macro_file_is_reported_once():
    box = sandbox()
    found = box.add_macros(
        [
            MacroFile("macros/a.sql", "{% macro a() %}{{ 1 + }}{% endmacro %}"),
            MacroFile("macros/b.sql", "{% set x = 1 / 0 %}{% macro b() %}{% endmacro %}"),
        ]
    )
    assert lines(tuple(found)) == [
        "jinja-syntax macros/a.sql:1:23 Jinja: unexpected '}}'",
        "jinja-error macros/b.sql:1:1 the template failed: division by zero",
    ]
    for call in ("{{ a() }}", "{{ b() }}"):
        with pytest.raises(ProjectError) as caught:
            box.render(call, "m.sql")
        assert caught.value.diagnostics == ()
