"""The header of a model: where it begins and ends, and that the SQL below keeps its place."""

from __future__ import annotations

import pytest

from engine.project.model_header import split_header
from tests.project.small_projects import line, sql


def problems(text: str) -> list[tuple[str, bool]]:
    return [(line(d), bool(d.hint)) for d in split_header(text, "a.sql").problems]


def test_the_sql_keeps_every_line_and_column():
    parts = split_header("/*---\ntags: [a]\n---*/ select 1\n  from x\n", "a.sql")
    assert parts.header is not None
    assert parts.header.data == {"tags": ["a"]}
    assert parts.sql == "     \n         \n      select 1\n  from x\n"
    assert parts.problems == ()


def test_places_in_the_header_are_those_of_the_file():
    parts = split_header("\n/*---\ntags: [a]\n---*/\nselect 1\n", "a.sql")
    assert parts.header is not None
    assert str(parts.header.value_at(("tags", 0))) == "a.sql:3:8"
    assert str(parts.header.value_at(("nothing",))) == "a.sql:3:1"


def test_a_header_on_one_line():
    parts = split_header("/*--- {tags: [a]} ---*/ select 1", "a.sql")
    assert parts.header is not None
    assert str(parts.header.value_at(("tags", 0))) == "a.sql:1:15"


def test_an_empty_header_is_an_empty_mapping():
    parts = split_header("/*---\n# nothing yet\n---*/\nselect 1", "a.sql")
    assert parts.header is not None
    assert parts.header.data == {}


@pytest.mark.parametrize(
    "text", ["select 1", "/*-----\n Orders\n------*/\nselect 1", "/* --- */ select 1", "-- /*--- x\nselect 1"]
)
def test_no_header(text):
    parts = split_header(text, "a.sql")
    assert (parts.header, parts.sql, parts.problems) == (None, text, ())


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("/*---\ntags: [a]\nselect 1\n", "header-unclosed a.sql:1:1 the header is not closed"),
        ("/*---\ntags: [a]\n*/\nselect 1\n", "header-unclosed a.sql:3:1 the header ends with */ instead of ---*/"),
        ("/*---\nmeta: {glob: data/*/x.json}\n---*/\nselect 1\n",
         "header-comment-end a.sql:2:19 '*/' closes the SQL comment inside the header"),
        ("-- orders\n/*---\ntags: [a]\n---*/\nselect 1\n",
         "header-position a.sql:2:1 the header is not at the top of the file"),
        ("/*---\ntags: [a]\n---*/\n/*---\ntags: [b]\n---*/\nselect 1\n",
         "header-position a.sql:4:1 a second header"),
        ("---\ntags: [a]\n\nmeta: {b: c}\n---\nselect {{ a }}\n", "header-position a.sql:1:1 the header is not in a comment"),
        ("\n---  \n tags: [a]\n---\nselect 1\n", "header-position a.sql:2:1 the header is not in a comment"),
        ("/*---\n- a\n---*/\nselect 1\n", "wrong-type a.sql:2:1 the header is not a mapping"),
        ("/*--- Orders ---*/\nselect 1\n", "wrong-type a.sql:1:7 the header is not a mapping"),
        ("/*---\na: b: c\n---*/\nselect 1\n", "yaml-syntax a.sql:2:5 YAML: unexpected ':'"),
    ],
)  # fmt: skip
def test_refused(text, finding):
    assert problems(text) == [(finding, True)]


def test_after_a_star_slash_the_sql_begins_at_the_real_end():
    text = sql("""
        /*---
        description: a */ b
        ---*/
        select 1
    """)
    assert split_header(text, "a.sql").sql.strip() == "select 1"
