"""Exposures: what reads the tables of a project from outside."""

from __future__ import annotations

import json

import pytest

from engine.compile.artifacts.write_artifacts import manifest_text
from engine.compile.selection.select_nodes import select
from tests.project.small_projects import ORDERS, check, clean, compiled, findings, line, lines, only

BOARD = """\
exposures:
  - name: board
    label: Sales board
    type: dashboard
    description: Sales of the day.
    url: https://bi.example/board
    maturity: high
    owner: {name: Sales, email: sales@shop.example, slack: '#sales'}
    depends_on: [ref('b'), "source('shop', 'customers')"]
    tags: [daily]
    meta: {tool: superset}
"""
MODELS = {"models/a.sql": ORDERS, "models/b.sql": "select id from {{ ref('a') }}", "models/c.sql": ORDERS}


def one(text: str) -> dict[str, str | bytes]:
    return {**MODELS, "models/board.yml": text}


def test_an_exposure_is_a_node(tmp_path):
    (board,) = clean(tmp_path, one(BOARD)).exposures
    assert (board.id, board.name, board.label, board.kind) == ("exposure.board", "board", "Sales board", "dashboard")
    assert board.owner == {"name": "Sales", "email": "sales@shop.example", "slack": "#sales"}
    assert board.depends_on == ("model.b", "source.shop.customers")
    assert (board.url, board.maturity, board.tags) == ("https://bi.example/board", "high", ("daily",))
    assert str(board.location) == "models/board.yml:2:11"


def test_names_may_be_written_without_ref_and_options_under_config(tmp_path):
    text = "exposures: [{name: x, type: ml, owner: {email: a@b.c}, depends_on: [b, shop.orders], config: {tags: t}}]"
    (exposure,) = clean(tmp_path, one(text)).exposures
    assert (exposure.depends_on, exposure.tags) == (("model.b", "source.shop.orders"), ("t",))


def test_one_that_is_not_enabled_is_not_there(tmp_path):
    assert clean(tmp_path, one(BOARD + "    config: {enabled: false}\n")).exposures == ()


@pytest.mark.parametrize(
    ("selection", "nodes"),
    [
        ("exposure:board", ["exposure.board"]),
        ("+exposure:board", ["source.shop.customers", "source.shop.orders", "model.a", "model.b", "exposure.board"]),
        ("1+exposure:*", ["source.shop.customers", "model.b", "exposure.board"]),
        ("a+", ["model.a", "model.b", "exposure.board"]),
        ("tag:daily", ["exposure.board"]),
        ("resource_type:exposure", ["exposure.board"]),
        ("path:models/board.yml", ["exposure.board"]),
    ],
)
def test_selection(selection, nodes, tmp_path):
    assert sorted(select(clean(tmp_path, one(BOARD)), [selection]).nodes) == sorted(nodes)


def test_its_name_alone_selects_models_only(tmp_path):
    choice = select(clean(tmp_path, one(BOARD)), ["board"])
    assert choice.nodes == []
    assert len(choice.unmatched) == 1


def test_the_manifest_has_it_as_dbt_has(tmp_path):
    data = json.loads(manifest_text(clean(tmp_path, one(BOARD))))
    record = data["exposures"]["exposure.shop.board"]
    assert {key: record[key] for key in ("resource_type", "type", "label", "url", "maturity", "tags")} == {
        "resource_type": "exposure", "type": "dashboard", "label": "Sales board", "url": "https://bi.example/board",
        "maturity": "high", "tags": ["daily"],
    }  # fmt: skip
    assert record["depends_on"]["nodes"] == ["model.shop.b", "source.shop.shop.customers"]
    assert record["refs"] == [{"name": "b", "package": None, "version": None}]
    assert record["sources"] == [["shop", "customers"]]
    assert data["child_map"]["model.shop.b"] == ["exposure.shop.board"]
    assert data["parent_map"]["exposure.shop.board"] == ["model.shop.b", "source.shop.shop.customers"]


@pytest.mark.slow
def test_a_changed_exposure_compiles_no_model_again(tmp_path):
    files = one(BOARD)
    compiled(tmp_path, files, cached=tmp_path / "kept")
    again = compiled(tmp_path, {**files, "models/board.yml": BOARD.replace("high", "low")}, cached=tmp_path / "kept")
    assert [e.maturity for e in again.manifest.exposures] == ["low"]
    compiled(tmp_path, {**files, "models/board.yml": "exposures: []"}, cached=tmp_path / "kept")
    kept = compiled(tmp_path, {**files, "models/board.yml": "exposures: []"}, cached=tmp_path / "kept")
    assert kept.manifest.exposures == ()


ERRORS = [
    ("  - type: ml", "missing-key models/board.yml:2:5 an exposure has no 'name'"),
    ("  - {name: x, owner: {name: a}}", "missing-key models/board.yml:2:5 the exposure 'x' has no 'type'"),
    ("  - {name: x, type: ml}", "missing-key models/board.yml:2:5 the exposure 'x' has no owner"),
    ("  - {name: x, type: ml, owner: {team: a}}", "missing-key models/board.yml:2:32 the exposure 'x' has no owner"),
    ("  - {name: x, type: chart, owner: {name: a}}", "bad-value models/board.yml:2:21 'type' cannot be 'chart'"),
    ("  - {name: My X, type: ml, owner: {name: a}}", "bad-name models/board.yml:2:12 'My X' is not a valid name"),
    ("  - {name: x, type: ml, owner: {name: a}, url: 'javascript:alert(1)'}",
     "bad-value models/board.yml:2:48 'javascript:alert(1)' is not a web address"),
    ("  - {name: x, type: ml, owner: {name: a}, depends_on: [ref('bb')]}",
     "unknown-ref models/board.yml:2:56 model 'bb' not found"),
    ("  - {name: x, type: ml, owner: {name: a}, depends_on: [shop.order]}",
     "unknown-source models/board.yml:2:56 source 'shop.order' not found"),
    ("  - {name: x, type: ml, owner: {name: a}, depend_on: [b]}",
     "unknown-key models/board.yml:2:43 an exposure has no key 'depend_on'"),
    ("  - {name: x, type: ml, owner: {name: a}}\n  - {name: x, type: ml, owner: {name: b}}",
     "duplicate-name models/board.yml:3:5 the exposure 'x' is defined twice"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "finding"), ERRORS)
def test_mistakes(text, finding, tmp_path):
    check(tmp_path, one(f"exposures:\n{text}\n"), finding)


def test_an_exposure_that_is_no_mapping(tmp_path):
    found = only(findings(tmp_path, one("exposures:\n  - board\n")))
    assert line(found) == (
        "wrong-type models/board.yml:2:5 item 1 must be an exposure with name, type, owner and depends_on, not 'board'"
    )


def test_a_model_that_has_no_table(tmp_path):
    text = "exposures: [{name: x, type: ml, owner: {name: a}, depends_on: [e, off]}]"
    disabled = "/*---\nenabled: false\n---*/\nselect 1 as id"
    files = {"models/e.sql": "/*---\nmaterialized: ephemeral\n---*/\nselect 1 as id", "models/off.sql": disabled}
    found = compiled(tmp_path, {**one(text), **files}).manifest.errors
    assert lines(found) == [
        "bad-value models/board.yml:1:64 'e' is ephemeral and has no table",
        "unknown-ref models/board.yml:1:67 model 'off' not found",
    ]
    assert found[1].hint == "'off' is disabled (enabled: false)."


def test_other_properties_belong_into_headers(tmp_path):
    check(tmp_path, one("models:\n  - name: a\n"),
          "properties-file models/board.yml:1:1 properties files under models/ are dbt syntax")  # fmt: skip
    check(
        tmp_path,
        one("exposures: []\nmodels: []\n"),
        "unknown-key models/board.yml:2:1 a file of exposures and sinks has no key 'models'",
    )
