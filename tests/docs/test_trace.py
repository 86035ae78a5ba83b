"""Column lineage over several models: up to the sources, and down to all that goes with a column."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.docs.site.column_trace import Columns, ColumnSpot, impact, spot_named, trace
from engine.errors import UsageError
from engine.project import load_project
from tests.project.small_projects import clean

ROOT = Path(__file__).parents[2]
FILES = {
    "models/cleaned.sql": "select id, item.price as price, amount from {{ source('shop', 'orders') }} where ts > '2020-01-01'",
    "models/passed.sql": "select * from {{ ref('cleaned') }}",
    "models/totals.sql": "/*---\ncolumns: {total: {tests: [not_null]}}\n---*/\nselect id, sum(price) as total from {{ ref('passed') }} group by id",
    "models/shares.sql": "select t.id, t.total / c.n as share from {{ ref('totals') }} t cross join (select count(*) as n from {{ source('shop', 'customers') }}) c",
    "tests/totals.yml": "unit_tests: [{name: sums, model: totals, given: {passed: [{id: a, amount: 1}]}, expect: [{id: a}]}]\n",
    "models/apart.sql": "select name from {{ source('shop', 'customers') }}",
}


@pytest.fixture
def columns(tmp_path) -> Columns:
    return Columns(clean(tmp_path, FILES))


def spots(found) -> list[str]:
    return [f"{spot.node}.{spot.column}" for spot in found]


def test_a_column_is_followed_to_its_sources_with_the_text_of_each_step(columns):
    found = trace(columns, spot_named(columns.manifest, "totals.total"))
    assert [(s.spot.node, s.spot.column, s.sql, s.type) for s in found.steps] == [
        ("model.totals", "total", "sum(price)", "double"),
        ("model.passed", "price", "*", "double"),
        ("model.cleaned", "price", "item.price", "double"),
        ("source.shop.orders", "item.price", "", "double"),
    ]
    assert [(d.model, d.spot.column, d.kind) for d in found.deciders] == [
        ("model.totals", "id", "group"), ("model.cleaned", "ts", "filter"),
    ]  # fmt: skip


def test_a_struct_is_touched_by_its_fields_and_the_other_way_round(columns):
    whole, field, other = (ColumnSpot("source.shop.orders", name) for name in ("item", "Item.price", "item.name"))
    assert whole.touches(field)
    assert field.touches(whole)
    assert not field.touches(other)
    assert not whole.touches(ColumnSpot("source.shop.orders", "items"))
    assert spots(impact(columns, whole).values) == spots(impact(columns, field).values)
    assert impact(columns, other).values == ()


def test_what_goes_with_a_column(columns):
    found = impact(columns, ColumnSpot("model.cleaned", "price"))
    assert spots(found.values) == ["model.passed.price", "model.totals.total", "model.shares.share"]
    assert spots(found.gone) == ["model.passed.price"]
    assert (found.breaks, found.stops) == (("model.totals",), ("model.shares",))
    assert found.tests == ("test.not_null_totals_total.525788a35b", "unit_test.totals.sums")
    assert found.rows == ()


@pytest.mark.parametrize(
    ("node", "column", "tests"),
    [
        ("passed", "amount", ("unit_test.totals.sums",)),
        ("cleaned", "AMOUNT", ("unit_test.totals.sums",)),
        ("totals", "ID", ("unit_test.totals.sums",)),
        ("shares", "share", ()),
    ],
)
def test_a_unit_test_goes_with_the_columns_that_it_names(columns, node, column, tests):
    """`amount` is handed on by a star, so only the rows of the test name it."""
    found = impact(columns, ColumnSpot(f"model.{node}", column))
    assert found.tests == tests


def test_a_column_that_only_decides_on_rows_breaks_its_reader_too(columns):
    found = impact(columns, ColumnSpot("source.shop.orders", "ts"))
    assert found.values == ()
    assert [(d.model, d.kind) for d in found.rows] == [("model.cleaned", "filter")]
    assert found.breaks == ("model.cleaned",)
    assert set(found.stops) == {"model.passed", "model.totals", "model.shares"}


def test_nothing_goes_with_a_column_that_nothing_reads(columns):
    found = impact(columns, ColumnSpot("model.apart", "name"))
    assert (found.values, found.rows, found.breaks, found.stops, found.tests) == ((), (), (), (), ())


@pytest.mark.parametrize(
    ("text", "node", "column"),
    [
        ("totals.total", "model.totals", "total"),
        ("totals.TOTAL", "model.totals", "total"),
        ("shop.orders.item.price", "source.shop.orders", "item.price"),
        ("shop.orders.item", "source.shop.orders", "item"),
    ],
)
def test_a_column_is_found_by_its_name(columns, text, node, column):
    assert spot_named(columns.manifest, text) == ColumnSpot(node, column)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("totals.totl", "'totals' has no column 'totl'", "Did you mean 'total'?"),
        ("total.id", "column 'total.id' not found", "Did you mean 'totals'?"),
        ("totals", "column 'totals' not found", "Did you mean 'totals'?"),
    ],
)
def test_a_column_that_is_not_there(columns, text, message, hint):
    with pytest.raises(UsageError) as caught:
        spot_named(columns.manifest, text)
    assert caught.value.diagnostic.message == message
    assert caught.value.diagnostic.hint == hint


@pytest.mark.slow
def test_every_column_of_the_example_leads_where_the_compiler_says():
    manifest = compile_project(load_project(ROOT)).manifest
    columns = Columns(manifest)
    for model in manifest.models:
        for column in model.columns:
            first = trace(columns, ColumnSpot(model.id, column.name)).steps[0]
            assert {(o.node, o.column) for o in first.origins} == {(o.node, o.column) for o in column.origins}
            assert (first.sql, first.type) == (column.sql, column.type)
            ends = [s.spot.node for s in trace(columns, ColumnSpot(model.id, column.name)).steps if not s.origins]
            assert all(node.startswith("source.") or not column.origins or node in manifest.nodes for node in ends)


@pytest.mark.slow
def test_up_and_down_agree_for_every_column_of_the_example():
    """A column is computed from another just when it goes with it."""
    manifest = compile_project(load_project(ROOT)).manifest
    columns = Columns(manifest)
    every = [ColumnSpot(n.id, c.name) for n in (*manifest.models, *manifest.sources) for c in n.columns]
    above = {spot: {s.spot for s in trace(columns, spot).steps} for spot in every}
    assert len(every) > 40
    for spot in every:
        below = set(impact(columns, spot).values)
        assert {other for other in every if other != spot and any(spot.touches(s) for s in above[other])} == below
