"""`docs generate --compare`: what a project adds, removes and changes, on the graph and on each page."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.main import invoke
from engine.compile import compile_project
from engine.compile.artifacts.write_artifacts import write_artifacts
from engine.compile.selection.previous_state import load_previous
from engine.docs.site.differences import Differences, differences
from engine.project import load_project
from tests.docs.build import Site

PROJECT = """\
name: shop
target: dev
targets:
  dev: {catalog: {type: sqlite, name: lake, path: .engine/lake}, schema: main}
"""
SOURCES = """\
sources:
  - name: ops
    tables:
      - {name: orders, format: json, path: landing/orders, schema: "id int, price double, at timestamp"}
      - {name: returns, format: json, path: landing/returns, schema: "id int"}
"""
ORDERS = "select id, price from {{ source('ops', 'orders') }}"
TOTAL = "select sum(price) as total from {{ ref('orders') }}"
OLD = "select id from {{ source('ops', 'returns') }}"


def project(root: Path, **models: str) -> Path:
    (root / "models").mkdir(parents=True, exist_ok=True)
    (root / "sources").mkdir(exist_ok=True)
    (root / "project.yml").write_text(PROJECT)
    (root / "sources" / "ops.yml").write_text(SOURCES)
    for name, sql in models.items():
        (root / "models" / f"{name}.sql").write_text(sql)
    return root


def before(root: Path) -> Path:
    """The folder of the manifest of an earlier project."""
    made = project(root, orders=ORDERS, total=TOTAL, old=OLD)
    write_artifacts(compile_project(load_project(made)).manifest, root / "kept")
    return root / "kept"


def against(root: Path, **models: str) -> Differences:
    kept = before(root / "before")
    manifest = compile_project(load_project(project(root / "now", **models))).manifest
    return differences(manifest, load_previous(kept, must_exist=True))


def test_the_same_project_has_no_differences(tmp_path):
    found = against(tmp_path, orders=ORDERS, total=TOTAL, old=OLD)
    assert (dict(found.changes), found.removed) == ({}, ())


def test_what_is_added_removed_and_changed_is_found(tmp_path):
    edited = "select id, price * 2 as price, at from {{ source('ops', 'orders') }}"
    found = against(tmp_path, orders=edited, total=TOTAL, fresh="select id from {{ ref('orders') }}")
    assert {node: change.kind for node, change in found.changes.items()} == {
        "model.orders": "changed",
        "model.fresh": "added",
    }
    orders = found.changes["model.orders"]
    assert ("Columns added", "at") in orders.details
    assert ("Expression of price", "price → price * 2") in orders.details
    assert f"-{ORDERS}" in orders.sql
    assert f"+{edited}" in orders.sql
    assert orders.action
    assert orders.action != "unchanged"
    assert [(node.id, node.reads, node.kind) for node in found.removed] == [
        ("model.old", ("source.ops.returns",), "table")
    ]


def test_a_changed_type_and_a_changed_input_are_named(tmp_path):
    total = "select cast(count(id) as int) as total from {{ source('ops', 'returns') }}"
    details = against(tmp_path, orders=ORDERS, total=total, old=OLD).changes["model.total"].details
    assert ("Type of total", "double → int") in details
    assert ("Reads", "ops.returns") in details
    assert ("No longer reads", "orders") in details


@pytest.fixture
def site(tmp_path: Path) -> Site:
    kept = before(tmp_path / "before")
    now = project(tmp_path / "now", orders=ORDERS, total="select max(price) as total from {{ ref('orders') }}")
    assert invoke(["docs", "generate", "--compare", str(kept), "--project-dir", str(now)]) == 0
    return Site(now / "target" / "docs")


def test_the_site_shows_the_differences(site):
    shown = {node["id"]: node.get("change") for node in site.index["nodes"]}
    assert shown == {
        "source.ops.orders": None, "source.ops.returns": None, "model.orders": None, "model.total": "changed",
        "model.old": "removed",
    }  # fmt: skip
    place = list(shown)
    assert [place.index("source.ops.returns"), place.index("model.old"), 0] in site.index["links"]
    assert site.index["compared"] is True
    changes = site.data("changes")
    assert [(change["node"], change["kind"]) for change in changes] == [(3, "changed"), (4, "removed")]
    assert site.node("model.old")["sql"] == OLD
    assert len(site.data("lineage")) == len(site.data("texts")) == len(shown)


def test_without_a_manifest_there_is_nothing_to_compare_with(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    now = project(tmp_path / "now", orders=ORDERS)
    assert invoke(["docs", "generate", "--compare", str(tmp_path / "empty"), "--project-dir", str(now)]) == 2
    assert "there is no readable manifest.json in" in capsys.readouterr().err
