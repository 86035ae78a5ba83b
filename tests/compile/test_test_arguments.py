"""Built-in tests: what they need, columns that need quotes, and columns of the other model."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import DataTest
from tests.project.small_projects import clean, findings, line, only

ORDERS = "{{ source('shop', 'orders') }}"


def model(tests: str, column: str = "id", sql: str = f"select id from {ORDERS}") -> dict[str, str | bytes]:
    return {"models/a.sql": f'/*---\ncolumns: {{"{column}": {{tests: [{tests}]}}}}\n---*/\n{sql}\n'}


def test_a_macro_of_ones_own_is_told_alike(tmp_path: Path) -> None:
    own = {
        "macros/t.sql": "{% macro test_above(model, column_name, least) %}select 1 from {{ model }} where {{ least }}{% endmacro %}"
    }
    found = only(findings(tmp_path, {**own, **model("above")}))
    assert line(found) == "missing-key models/a.sql:2:26 the test 'above' needs 'least'"
    assert found.hint == "Write above: {least: ..}."


@pytest.mark.parametrize("name", ["order id", "order-id", "2024"])
def test_columns_that_need_quotes_get_them(name: str, tmp_path: Path) -> None:
    tests = "not_null, unique, {accepted_values: {values: [a]}}, {relationships: {to: b, field: '" + name + "'}}"
    sql = f"select id as `{name}` from {ORDERS}"
    manifest = clean(tmp_path, {**model(tests, name, sql), "models/b.sql": sql})
    made = [test.sql for test in manifest.nodes.values() if isinstance(test, DataTest)]
    assert len(made) == 4
    assert all(f"`{name}`" in text for text in made)


@pytest.mark.parametrize("key", ["order id", "`order id`", "[order id, ts]"])
def test_keys_that_need_quotes(key: str, tmp_path: Path) -> None:
    header = f"streams: [shop.orders]\nunique_key: {key if key[0] == '[' else repr(key)}\nsequence_by: ts"
    sql = f"select id as `order id`, ts from {ORDERS}"
    manifest = clean(tmp_path, {"models/a.sql": f"/*---\n{header}\n---*/\n{sql}\n"})
    assert manifest.model("a").write.unique_key[0] == "order id"


@pytest.mark.parametrize(
    ("key", "hint"), [("oder id", "Did you mean 'order id'?"), ("upper(id)", "Name a column of the SELECT.")]
)
def test_a_key_that_is_no_column_names_those_near_it(key: str, hint: str, tmp_path: Path) -> None:
    header = f"streams: [shop.orders]\nunique_key: {key}\nsequence_by: ts"
    sql = f"select id as `order id`, ts from {ORDERS}"
    found = [d for d in findings(tmp_path, {"models/a.sql": f"/*---\n{header}\n---*/\n{sql}\n"}) if d.is_error]
    assert [(str(d.location), d.hint) for d in found] == [("models/a.sql:3:13", hint)]


@pytest.mark.slow
def test_relationships_to_a_column_that_is_not_there(tmp_path: Path) -> None:
    other: dict[str, str | bytes] = {"models/b.sql": f"select id as code from {ORDERS}"}
    wrong = model("{relationships: {to: b, field: cod}}")
    found = only(findings(tmp_path / "1", {**wrong, **other}))
    said = "the test 'relationships' names the column 'cod', which 'b' does not have"
    assert line(found) == f"unknown-column models/a.sql:2:27 {said}"
    assert found.hint == "Did you mean 'code'?"
    assert findings(tmp_path / "2", {**model("{relationships: {to: b, field: CODE}}"), **other}) == ()
    itself = only(findings(tmp_path / "3", model("{relationships: {to: a, field: nothing}}")))
    assert "which 'a' does not have" in itself.message
