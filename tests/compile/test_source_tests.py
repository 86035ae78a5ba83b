"""Tests that are listed for sources: nodes like those of models, over a view of the source."""

from __future__ import annotations

import graphlib
import json
from pathlib import Path

import pytest

from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.compile.nodes.manifest import Severity
from engine.compile.selection.select_nodes import select
from engine.plan.actions.action import run_order
from engine.runtime.scheduler import dependencies
from tests.project.small_projects import clean, findings, line, only

SHOP = """
sources:
  - name: shop
    tables:
      - name: orders
        format: json
        path: landing/orders
        schema: "id int, place string, amount double"
        data_tests:
          - expression: {expression: amount >= 0, severity: warn}
        columns:
          id:
            tests:
              - unique
              - not_null: {where: amount > 0, store_failures: true}
          place:
            tests:
              - relationships: {to: "source('shop', 'places')", field: name}
              - relationships: {to: known, field: name, name: known_place}
      - name: places
        format: csv
        path: landing/places
        schema: "name string"
"""
FILES: dict[str, str | bytes] = {
    "sources/shop.yml": SHOP,
    "models/clean.sql": "/*---\nmaterialized: table\n---*/\nselect id, place from {{ source('shop', 'orders') }}",
    "models/known.sql": "/*---\nmaterialized: table\n---*/\nselect name from {{ source('shop', 'places') }}",
    "tests/no_strangers.sql": "select 1 from {{ source('shop', 'places') }} join {{ ref('clean') }} on name = place",
}


@pytest.mark.slow
def test_they_are_nodes_of_the_source(tmp_path: Path) -> None:
    manifest = clean(tmp_path, FILES)
    tests = {t.name: t for t in manifest.tests}
    assert set(tests) == {
        "source_expression_shop_orders",
        "source_unique_shop_orders_id",
        "source_not_null_shop_orders_id",
        "source_relationships_shop_orders_place",
        "known_place",
        "no_strangers",
    }
    there = tests["source_not_null_shop_orders_id"]
    assert "from (select * from `shop.orders` where amount > 0\n)" in there.sql
    assert (there.model, there.column, there.depends_on) == ("source.shop.orders", "id", ("source.shop.orders",))
    assert str(there.stored) == "lake.main_test_failures.source_not_null_shop_orders_id"
    assert str(there.location) == "sources/shop.yml:15:17"
    assert tests["source_expression_shop_orders"].severity is Severity.WARN
    unique = tests["source_unique_shop_orders_id"]
    assert unique.look is not None
    assert unique.look.rows == "`shop.orders`"
    related = tests["source_relationships_shop_orders_place"]
    assert related.depends_on == ("source.shop.orders", "source.shop.places")
    assert tests["no_strangers"].depends_on == ("source.shop.places", "model.clean")

    chosen = select(manifest, ["source:shop.orders"]).nodes
    assert chosen[0] == "source.shop.orders"
    assert set(chosen[1:]) == {t.id for t in manifest.tests if t.model == "source.shop.orders"}
    # As in dbt: with a model alone its sources are not tested, with all that it reads they are.
    assert not set(chosen) & set(select(manifest, ["clean"]).nodes)
    assert set(chosen) <= set(select(manifest, ["+clean"]).nodes)

    write_artifacts(manifest, tmp_path / "target")
    nodes = json.loads((tmp_path / "target" / "manifest.json").read_text())["nodes"]
    (record,) = [node for key, node in nodes.items() if "source_unique_shop_orders_id" in key]
    assert record["attached_node"].startswith("source.")
    assert record["test_metadata"]["kwargs"]["model"] == "{{ source('shop', 'orders') }}"


def test_a_model_waits_for_the_tests_of_the_sources_that_it_reads(tmp_path: Path) -> None:
    manifest = clean(tmp_path, FILES)
    nodes = [node for node in manifest.nodes if not node.startswith("source.")]
    needed = dependencies(manifest, nodes)
    of_orders = {
        "test.source_unique_shop_orders_id.ad3e3d6b5c",
        "test.source_not_null_shop_orders_id.b73f418663",
        "test.known_place.428cce2339",
    }
    assert of_orders <= needed["model.clean"]
    # Not one that warns, and not one that reads the model itself.
    assert "test.source_expression_shop_orders.fe4575c903" not in needed["model.clean"]
    assert needed["model.known"] == set()
    assert needed["test.known_place.428cce2339"] == {"model.known"}
    order = run_order(manifest, nodes)
    assert order.index("test.source_unique_shop_orders_id.ad3e3d6b5c") < order.index("model.clean")
    assert set(order) == set(nodes)


def test_tests_that_read_models_which_would_wait_for_each_other_stop_nothing(tmp_path: Path) -> None:
    table = "/*---\nmaterialized: table\n{more}---*/\nselect {of} from {{{{ ref('a') }}}}"
    tests = (
        "columns: {id: {tests: [{relationships: {to: b, field: id}}, {relationships: {to: c, field: id, name: r}}]}}\n"
    )
    files: dict[str, str | bytes] = {
        "models/a.sql": f"/*---\nmaterialized: table\n{tests}---*/\nselect 1 as id",
        "models/b.sql": table.format(of="id", more=""),
        "models/c.sql": table.format(of="id", more=""),
    }
    manifest = clean(tmp_path, files)
    needed = dependencies(manifest, manifest.order)
    assert set(graphlib.TopologicalSorter(needed).static_order()) == set(manifest.order)


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    shop = SHOP.replace("'places')", "'place')")
    found = only(findings(tmp_path, {**FILES, "sources/shop.yml": shop}))
    place = "the test 'relationships' reads 'shop.place', which is not a source"
    assert line(found) == f"unknown-ref sources/shop.yml:18:17 {place}"
    assert "shop.places" in found.hint
