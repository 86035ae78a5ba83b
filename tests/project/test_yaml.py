"""YAML as Headrace reads it: the 1.2 core schema, with positions, and the traps of YAML answered."""

from __future__ import annotations

import pytest

from engine.project.parse_yaml import load_yaml
from tests.project.small_projects import line


def data(text: str) -> object:
    document, found = load_yaml(text, "f.yml")
    assert [line(d) for d in found] == []
    return document.data


def problems(text: str) -> list[tuple[str, bool]]:
    return [(line(d), bool(d.hint)) for d in load_yaml(text, "f.yml")[1]]


@pytest.mark.parametrize(
    "text",
    ["NO", "no", "on", "off", "yes", "Y", "2013-01-01", "2013-01-01 10:05:00", "12:30", "0123", "1_000", "0b1",
     "1" * 30, "1e999", ".inf", ".nan", "+", "1.2.3", "="],
)  # fmt: skip
def test_stays_text(text):
    assert data(f"key: {text}") == {"key": text}
    assert data(f"{text}: x") == {text: "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-5", -5), ("0", 0), ("0x1F", 31), ("0o17", 15), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5),
     ("true", True), ("False", False), ("null", None), ("~", None), ("", None)],
)  # fmt: skip
def test_core_schema(text, value):
    assert data(f"key: {text}") == {"key": value}


@pytest.mark.parametrize("text", ["'1'", '"true"', "'null'"])
def test_quoted_is_text(text):
    assert data(f"key: {text}") == {"key": text[1:-1]}


def test_places_of_keys_and_values():
    document, _ = load_yaml("a: 1\nb:\n  - x\n  - {c: d}\n", "f.yml")
    assert str(document.value_at(("b", 1, "c"))) == "f.yml:4:9"
    assert str(document.key_at(("b", 1, "c"))) == "f.yml:4:6"
    assert str(document.key_at(("b",))) == "f.yml:2:1"
    assert str(document.value_at(("b", 1, "nothing"))) == "f.yml:4:5"


def test_numbers_are_remembered_as_written():
    assert load_yaml("version: 1.10\n", "f.yml")[0].written == {("version",): "1.10"}


def test_an_alias_is_its_value():
    assert data("a: &x [1]\nb: *x\n") == {"a": [1], "b": [1]}


BOMB = "\n".join(
    ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    + [f"{n}: &{n} [{','.join([f'*{m}'] * 10)}]" for m, n in zip("abcd", "bcde", strict=True)]
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: 1\nb: 2\na: 3\n", "yaml-duplicate-key f.yml:3:1 'a' is set twice (first in line 1)"),
        ("a: {b: 1, b: 1}\n", "yaml-duplicate-key f.yml:1:11 'b' is set twice (first in line 1)"),
        ("k: [bucket(16, id)]", "yaml-split-item f.yml:1:5 YAML splits 'bucket(16, id)' at its comma"),
        ("k: [a, f(b, c, d), e]", "yaml-split-item f.yml:1:8 YAML splits 'f(b, c, d)' at its comma"),
        ("k: [f(b, c]", "yaml-split-item f.yml:1:5 YAML splits 'f(b, c' at its comma"),
        ("k: {h: tumbling(ts, 1 hour)}",
         "yaml-split-item f.yml:1:8 YAML splits 'tumbling(ts, 1 hour)' at its comma"),
        ("a:\n\t- b\n", "yaml-syntax f.yml:2:1 YAML: a character that cannot start a value"),
        ("a: b: c\n", "yaml-syntax f.yml:1:5 YAML: unexpected ':'"),
        ("a: b\nfoo\nc: d\n", "yaml-syntax f.yml:3:1 YAML: a key without a colon"),
        ("a: 'b\nc: d\n", "yaml-syntax f.yml:1:4 YAML: an unclosed quote"),
        ("a: *b\n", "yaml-syntax f.yml:1:4 YAML: an undefined alias"),
        ("a: b\n---\nc: d\n", "yaml-syntax f.yml:2:1 YAML: a second document"),
        ("a: {{ var('x') }}\n", "yaml-syntax f.yml:1:4 YAML: a key is not plain text"),
        ("a: {{ var('x') }}_y\n", "yaml-syntax f.yml:1:18 YAML: did not find expected key"),
        (BOMB, "yaml-too-large f.yml:5:1 YAML: more than 100,000 values, aliases counted out"),
        ("a: &a [*a]\n", "yaml-too-large f.yml:1:4 YAML: more than 40 levels"),
        ("[" * 100_000, "yaml-too-large f.yml:1:41 YAML: more than 40 levels"),
        ("- " * 5_000, "yaml-too-large f.yml:1:81 YAML: more than 40 levels"),
    ],
)  # fmt: skip
def test_refused(text, finding):
    assert problems(text) == [(finding, True)]


def test_a_cut_item_is_read_whole_so_that_nothing_else_is_reported():
    document, found = load_yaml("k: [bucket(16, id), day(ts)]\nw: {h: f(a, b), g: c}\n", "f.yml")
    assert document.data == {"k": ["bucket(16, id)", "day(ts)"], "w": {"h": "f(a, b)", "g": "c"}}
    assert [d.hint for d in found] == ['Quote it: "bucket(16, id)".', 'Quote it: "f(a, b)".']
    assert str(document.value_at(("k", 1))) == "f.yml:1:21"


@pytest.mark.parametrize("text", ['k: ["f(a", "b)"]', "k:\n  - f(a, b)\n", "k: [see (above]", "k: f(a, b)"])
def test_not_cut(text):
    data(text)


def test_a_jinja_value_without_quotes_is_shown_with_them():
    assert load_yaml("a: {{ var('x') }}\n", "f.yml")[1][0].hint.endswith("\"{{ var('x') }}\".")
