"""Names in double quotes of a dbt project: backticks where the warehouse quotes with them, a note elsewhere."""

from __future__ import annotations

import json

import pytest

from engine_import.dbt.import_dbt import import_dbt
from engine_import.templates.backticks import with_backticks
from tests.engine_import.imported import model, written

PAIRS = [
    ('select "product" from t', "select `product` from t"),
    ('select a."order", "a b"', "select a.`order`, `a b`"),
    ('select \'say "hi"\' as "x"', "select 'say \"hi\"' as `x`"),
    ("select 'it''s \"' as \"x\"", "select 'it''s \"' as `x`"),
    ('select "a""b", "c`d"', 'select `a"b`, `c``d`'),
    ('-- "no"\nselect "yes" /* "no" */', '-- "no"\nselect `yes` /* "no" */'),
    ('select "{{ column }}" from {{ ref("t") }}', 'select `{{ column }}` from {{ ref("t") }}'),
    ('{% set x = "a" %}{# "b" #}select "c"', '{% set x = "a" %}{# "b" #}select `c`'),
    ('select \'{{ x }}"\' as "b"', "select '{{ x }}\"' as `b`"),
    ('select $$ "no" $$, $f$ "no" $f$, "yes"', 'select $$ "no" $$, $f$ "no" $f$, `yes`'),
    ('select "never closed', 'select "never closed'),
    ("select '\\' as \"a\"", "select '\\' as `a`"),
]


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_names_get_backticks(text, expected):
    assert with_backticks(text, "postgres") == expected
    for adapter in ("spark", "databricks", "bigquery", "mysql", ""):
        assert with_backticks(text, adapter) == text


def test_a_backslash_escapes_where_the_warehouse_says_so():
    assert with_backticks("select 'it\\'s \"', \"a\"", "snowflake") == "select 'it\\'s \"', `a`"


def project(folder, adapter):
    orders = model("orders", "select 1 as id, 'tea' as product")
    sold = model("sold", 'select id,\n  "product",\n  \'a "word"\' as text\nfrom {{ ref("orders") }}')
    sold["depends_on"] = {"nodes": ["model.shop.orders"], "macros": []}
    target = written(folder, orders, sold)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["metadata"]["adapter_type"] = adapter
    (target / "manifest.json").write_text(json.dumps(manifest))
    report = import_dbt(target, folder / "new")
    (item,) = (each for each in report.items if each.name == "sold")
    return (folder / "new/models/sold.sql").read_text(), item


@pytest.mark.parametrize("adapter", ["postgres", "snowflake", "duckdb", "redshift", "trino"])
def test_a_project_is_translated(tmp_path, adapter):
    text, item = project(tmp_path, adapter)
    assert "  `product`,\n  'a \"word\"' as text" in text
    assert not any("string" in note for note in item.notes)


@pytest.mark.parametrize("adapter", ["spark", "bigquery", "another"])
def test_elsewhere_it_is_noted_at_the_line(tmp_path, adapter):
    text, item = project(tmp_path, adapter)
    assert '"product"' in text
    (note,) = (note for note in item.notes if "constant string" in note)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if '"product"' in line)
    assert note.startswith(f"line {line}: ")
    assert "`product`" in note
